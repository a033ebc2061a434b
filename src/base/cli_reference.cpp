#include "base/cli_reference.hpp"

#include <algorithm>
#include <array>

namespace kvingest::cli {
namespace {

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kHelpIndent = 28;  // Where the meaning of an option begins.

/// `text` from column `indent` on, broken between words.
void append_wrapped(std::string& to, std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    if (column > indent && column + 1 + space > kHelpColumns) {
      to += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      to += ' ';
      ++column;
    }
    to += text.substr(0, space);
    column += space;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  to += '\n';
}

void append_row(std::string& to, const std::string& left, std::string_view right) {
  to += "  " + left;
  const std::size_t used = left.size() + 2;
  to += used + 2 > kHelpIndent ? '\n' + std::string(kHelpIndent, ' ') : std::string(kHelpIndent - used, ' ');
  append_wrapped(to, right, kHelpIndent);
}

std::string left_column(const Option& option) {
  if (option.positional) return option.name;
  std::string left = option.letter != 0 ? std::string("-") + option.letter + ", --" : "--";
  left += option.name;
  if (option.kind == Option::Kind::flag) return left;
  return left + (option.alone ? " [" + option.placeholder + "]" : " " + option.placeholder);
}

/// The rows of positional arguments, then of the command's own options, then of those every program has.
void append_options(std::string& to, const Command& command) {
  const auto rank = [](const Option& option) { return option.positional ? 0 : option.builtin ? 2 : 1; };
  for (const int wanted : {0, 1, 2}) {
    for (const Option& option : command.options()) {
      if (rank(option) == wanted) append_row(to, left_column(option), meaning(option));
    }
  }
}

}  // namespace

std::string upper_case(std::string_view text) {
  std::string upper;
  for (const char c : text) upper += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return upper;
}

std::string environment_name(std::string_view program, const Option& option) {
  return (option.own ? upper_case(program) : "KVINGEST") + "_" + upper_case(option.name);
}

std::string own_variables(std::string_view program, const Command& command) {
  std::string own;
  for (const Option& option : command.options()) {
    if (option.own && !option.positional) own += (own.empty() ? "" : ", ") + environment_name(program, option);
  }
  return own;
}

std::string positionals_of(const Command& command) {
  std::string text;
  for (const Option& option : command.options()) {
    if (!option.positional) continue;
    const std::string name = option.name + (option.kind == Option::Kind::list ? "..." : "");
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string_view command_word(const Reference& reference) {
  if (reference.commands.empty()) return "";
  return reference.command_optional ? " [COMMAND ...]" : " COMMAND ...";
}

std::string meaning(const Option& option) {
  if (option.builtin || option.secret || option.positional || option.kind == Option::Kind::flag) return option.help;
  if (option.kind == Option::Kind::list) {
    std::string fallback;
    for (const std::string& value : option.get_list()) fallback += (fallback.empty() ? "" : ",") + value;
    return option.help + (fallback.empty() ? " (repeatable)" : " (repeatable; default " + fallback + ")");
  }
  const auto fallback = option.get();
  return fallback && !fallback->empty() ? option.help + " (default " + *fallback + ")" : option.help;
}

ValueKind value_kind(const Option& option) {
  constexpr std::array<std::string_view, 5> kFiles = {"FILE", "JOBS", "PRESET", "before", "now"};
  constexpr std::array<std::string_view, 3> kFolders = {"DIR", "PATH", "TARGET"};
  const auto is_one_of = [&option](const auto& names) {
    return std::find(names.begin(), names.end(), option.placeholder) != names.end();
  };
  if (!option.words.empty()) return ValueKind::words;
  if (is_one_of(kFiles)) return ValueKind::files;
  return is_one_of(kFolders) ? ValueKind::folders : ValueKind::nothing;
}

std::string help_text(const Reference& reference, const Command* chosen) {
  const Command& shown = chosen == nullptr ? reference.root : *chosen;
  const bool lists_commands = chosen == nullptr && !reference.commands.empty();
  std::string text = "usage: " + reference.program + (chosen == nullptr ? "" : " " + chosen->name()) + " [OPTIONS]";
  text += positionals_of(shown);
  if (lists_commands) text += command_word(reference);
  text += "\n\n";
  append_wrapped(text, shown.help(), 0);
  text += '\n';
  if (lists_commands) {
    for (const Command& command : reference.commands) append_row(text, command.name(), command.help());
    text += '\n';
  }
  append_options(text, shown);
  text += '\n';
  append_wrapped(text,
                 "Options may also come from the environment (KVINGEST_OPTION_NAME" +
                     (reference.program == "kvingest" ? "" : "; but " + own_variables(reference.program, shown)) +
                     ") and from --config FILE.",
                 0);
  return text;
}

}  // namespace kvingest::cli
