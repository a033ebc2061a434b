// Completion for bash and zsh.
#include <fmt/format.h>

#include "base/cli_reference.hpp"

namespace kvingest::cli {
namespace {

std::string words_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// Everything of `text` in single quotes, for either shell.
std::string shell_word(std::string_view text) {
  std::string quotes = "'";
  for (const char c : text) {
    if (c == '\'')
      quotes += "'\\''";
    else
      quotes += c;
  }
  return quotes + "'";
}

// ---- bash -----------------------------------------------------------------------------------------------------------

std::string bash_action(const Option& option) {
  switch (value_kind(option)) {
    case ValueKind::words:
      return fmt::format("offer -W {}", shell_word(words_of(option.words)));
    case ValueKind::files:
      return "offer -f";
    case ValueKind::folders:
      return "offer -d";
    case ValueKind::nothing:
      break;
  }
  return "COMPREPLY=()";
}

/// The options of `command` by what may follow them, then their names.
std::string bash_case(const Command& command, const std::string& otherwise) {
  std::string text = fmt::format("    {})\n      case $before in\n", shell_word(command.name()));
  std::string names;
  std::string action = otherwise;
  for (const Option& option : command.options()) {
    if (option.positional) {
      if (action == otherwise) action = bash_action(option);
      continue;
    }
    const std::string dashes = "--" + option.name;
    names += (names.empty() ? "" : " ") + dashes;
    std::string pattern = dashes;
    if (option.letter != 0) {
      names += std::string(" -") + option.letter;
      pattern += std::string(" | -") + option.letter;
    }
    // What may stand alone may be followed by another option, too.
    if (option.kind != Option::Kind::flag && !option.alone)
      text += fmt::format("        {}) {}; return ;;\n", pattern, bash_action(option));
  }
  text += "      esac\n      case $word in\n";
  text += fmt::format("        -*) offer -W {} ;;\n        *) {} ;;\n      esac ;;\n", shell_word(names), action);
  return text;
}

// ---- zsh ------------------------------------------------------------------------------------------------------------

std::string escaped(std::string_view text, std::string_view special) {
  std::string safe;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string zsh_action(const Option& option) {
  switch (value_kind(option)) {
    case ValueKind::words:
      return "(" + escaped(words_of(option.words), ":") + ")";
    case ValueKind::files:
      return "_files";
    case ValueKind::folders:
      return "_files -/";
    case ValueKind::nothing:
      break;
  }
  return " ";
}

std::string zsh_spec(const Option& option) {
  const bool repeats = option.kind == Option::Kind::list;
  const std::string value = escaped(option.placeholder, ":") + ":" + zsh_action(option);
  if (option.positional) return shell_word((repeats ? "*:" : option.required ? ":" : "::") + value);
  const std::string explanation = "[" + escaped(option.help, "[]\\") + "]";
  const bool flag = option.kind == Option::Kind::flag;
  const std::string rest = explanation + (flag ? "" : (option.alone ? "::" : ":") + value);
  const std::string name = "--" + option.name + (flag ? "" : "=");
  if (option.letter == 0) return shell_word((repeats ? "*" : "") + name + rest);
  const std::string letter = std::string("-") + option.letter;
  return shell_word("(" + letter + " --" + option.name + ")") + "{" + letter + (flag ? "" : "+") + "," + name + "}" +
         shell_word(rest);
}

/// The call of _arguments for `command`, its lines indented by `indent`.
std::string zsh_arguments(const Command& command, const std::string& indent, const std::string& more) {
  std::string text = indent + "_arguments -C";
  for (const Option& option : command.options()) text += " \\\n" + indent + "  " + zsh_spec(option);
  return text + more + " && ret=0";
}

}  // namespace

std::string bash_completion(const Reference& reference) {
  std::vector<std::string> names;
  for (const Command& command : reference.commands) names.push_back(command.name());
  const std::string& program = reference.program;
  std::string text = fmt::format("# Completion of {0} for bash, made by `{0} --help-as bash`.\n_{0}() {{\n", program);
  text +=
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
      "  # Bash takes --option=value apart.\n"
      "  if [ \"$word\" = = ]; then word=; elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
      "  offer() {\n"
      "    [ \"$1\" = -W ] || compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$word\")\n"
      "  }\n"
      "  COMPREPLY=()\n";
  if (!names.empty()) {
    text += fmt::format(
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case ${{COMP_WORDS[i]}} in\n"
        "      {}) command=${{COMP_WORDS[i]}}; break ;;\n    esac\n  done\n",
        fmt::join(names, " | "));
  }
  text += "  case $command in\n";
  const std::string words = names.empty() ? "COMPREPLY=()" : fmt::format("offer -W {}", shell_word(words_of(names)));
  text += bash_case(reference.root, words);
  for (const Command& command : reference.commands) text += bash_case(command, "COMPREPLY=()");
  return text + fmt::format("  esac\n}}\ncomplete -F _{0} {0}\n", program);
}

std::string zsh_completion(const Reference& reference) {
  const std::string& program = reference.program;
  std::string text = fmt::format("#compdef {0}\n# Completion of {0} for zsh, made by `{0} --help-as zsh`.\n", program);
  text += fmt::format("_{}() {{\n  local curcontext=$curcontext state line ret=1\n  typeset -A opt_args\n", program);
  if (reference.commands.empty()) {
    text += zsh_arguments(reference.root, "  ", "") + "\n";
  } else {
    text += zsh_arguments(reference.root, "  ", " \\\n    '1:command:->command' \\\n    '*::argument:->argument'");
    text += "\n  case $state in\n    command)\n      local -a commands\n      commands=(\n";
    for (const Command& command : reference.commands)
      text += "        " + shell_word(command.name() + ":" + command.help()) + "\n";
    text +=
        "      )\n      _describe -t commands command commands && ret=0 ;;\n    argument)\n      case $line[1] in\n";
    for (const Command& command : reference.commands)
      text += fmt::format("        {})\n{} ;;\n", command.name(), zsh_arguments(command, "          ", ""));
    text += "      esac ;;\n  esac\n";
  }
  return text + fmt::format("  return ret\n}}\n_{} \"$@\"\n", program);
}

}  // namespace kvingest::cli
