// The man page of a program, in the macros of man(7).
#include <fmt/format.h>

#include <array>

#include "base/cli_reference.hpp"

namespace kvingest::cli {
namespace {

constexpr std::array<std::string_view, 5> kPrograms = {"kvingest", "kvfeed", "kvfetch", "kvq", "kvbench"};

/// As roff reads it as plain text that can be copied: no escapes, no typography, no line that looks like a request.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (safe.empty() && (c == '.' || c == '\'')) safe += "\\&";
    switch (c) {
      case '\\':
        safe += "\\e";
        break;
      case '-':
        safe += "\\-";
        break;
      case '\'':
        safe += "\\(aq";
        break;
      case '`':
        safe += "\\(ga";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff(text) + "\\fR";
}

std::string tag_of(const Option& option) {
  if (option.positional) return italic(option.name);
  std::string tag = option.letter != 0 ? bold(std::string("-") + option.letter) + ", " : "";
  tag += bold("--" + option.name);
  if (option.kind == Option::Kind::flag) return tag;
  return tag + " " + (option.alone ? "[" + italic(option.placeholder) + "]" : italic(option.placeholder));
}

void append_entry(std::string& to, const std::string& tag, std::string_view text) {
  to += fmt::format(".TP\n{}\n{}\n", tag, roff(text));
}

void append_options_of(std::string& to, const Command& command, bool builtin) {
  for (const bool positional : {true, false}) {
    for (const Option& option : command.options()) {
      if (option.positional == positional && option.builtin == builtin)
        append_entry(to, tag_of(option), meaning(option));
    }
  }
}

void append_synopsis(std::string& to, const Reference& reference) {
  to += fmt::format(".SH SYNOPSIS\n{} [{}]{}{}\n", bold(reference.program), italic("OPTIONS"),
                    roff(positionals_of(reference.root)), roff(command_word(reference)));
}

void append_commands(std::string& to, const Reference& reference) {
  if (reference.commands.empty()) return;
  to += ".SH COMMANDS\n";
  for (const Command& command : reference.commands) {
    to += fmt::format(".SS \"{} {}{}\"\n{}\n", roff(reference.program), roff(command.name()),
                      roff(positionals_of(command)), roff(command.help()));
    append_options_of(to, command, false);
  }
}

void append_environment(std::string& to, const Reference& reference) {
  to += ".SH ENVIRONMENT\n";
  to += roff(
            "Each option may also come from the environment, as KVINGEST_QUEUE_BYTES for --queue-bytes, and from a "
            "TOML file of flat keys named like the options. The command line wins over the environment, and that "
            "over the file. Of repeatable options the values are separated by commas.") +
        "\n";
  std::string own = own_variables(reference.program, reference.root);
  for (const Command& command : reference.commands) {
    for (const Option& option : command.options()) {
      const std::string name = environment_name(reference.program, option);
      if (option.own && !option.positional && own.find(name) == std::string::npos) own += ", " + name;
    }
  }
  if (!own.empty()) to += ".PP\n" + roff("Under the program's own name: " + own + ".") + "\n";
}

void append_exit_status(std::string& to) {
  to += ".SH EXIT STATUS\n";
  append_entry(to, bold(std::to_string(kDone)), "done");
  append_entry(to, bold(std::to_string(kIncomplete)), "the work failed or is incomplete; a port in use, too");
  append_entry(to, bold(std::to_string(kUsage)), "wrong usage or configuration");
  append_entry(to, bold(std::to_string(kStoreUnavailable)), "the store cannot be opened");
  append_entry(to, bold(std::to_string(kInterrupted)), "interrupted");
}

void append_see_also(std::string& to, const Reference& reference) {
  to += ".SH SEE ALSO\n";
  std::string names;
  for (const std::string_view program : kPrograms) {
    if (program != reference.program) names += fmt::format("{}{}(1)", names.empty() ? "" : ",\n", bold(program));
  }
  to += names + "\n";
}

}  // namespace

std::string man_page(const Reference& reference) {
  std::string page = fmt::format(".\\\" Made by {} --help-as man.\n", reference.program);
  page += fmt::format(".TH {} 1 \"\" \"kvingest {}\" \"User Commands\"\n", upper_case(reference.program),
                      program_version());
  page += fmt::format(".SH NAME\n{} \\- {}\n", reference.program, roff(reference.root.help()));
  append_synopsis(page, reference);
  append_commands(page, reference);
  page += ".SH OPTIONS\n";
  append_options_of(page, reference.root, false);
  append_options_of(page, reference.root, true);
  append_environment(page, reference);
  append_exit_status(page);
  if (!reference.examples.empty()) page += ".SH EXAMPLES\n";
  for (const auto& [arguments, what] : reference.examples)
    append_entry(page, bold(reference.program + " " + arguments), what);
  append_see_also(page, reference);
  return page;
}

}  // namespace kvingest::cli
