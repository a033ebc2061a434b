// cli_reference.hpp -- the help of a program in its forms: text, man page, completion for bash and zsh.
//
// All are made of the same options, so that none can say what another does not. Only cli.cpp includes this, and the
// forms themselves.
//
// Threads: pure functions.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cli.hpp"

namespace kvingest::cli {

/// What a program takes; borrowed from its CommandLine.
struct Reference {
  const std::string& program;
  const Command& root;
  const std::deque<Command>& commands;
  bool command_optional = false;
  const std::vector<std::pair<std::string, std::string>>& examples;  ///< Arguments and what they do.
};

/// Of `chosen`, or of the program where that is null.
[[nodiscard]] std::string help_text(const Reference& reference, const Command* chosen);
[[nodiscard]] std::string man_page(const Reference& reference);
[[nodiscard]] std::string bash_completion(const Reference& reference);
[[nodiscard]] std::string zsh_completion(const Reference& reference);

// What the forms have in common.

/// KVINGEST_QUEUE_BYTES for queue-bytes; KVFEED_CPU for an option of kvfeed's own.
[[nodiscard]] std::string environment_name(std::string_view program, const Option& option);
[[nodiscard]] std::string upper_case(std::string_view text);
/// "KVFEED_CONFIG, KVFEED_CPU": the variables under the program's own name that `command` reads.
[[nodiscard]] std::string own_variables(std::string_view program, const Command& command);
/// The positional arguments behind the options: "KEY [FILE...]", with a space in front.
[[nodiscard]] std::string positionals_of(const Command& command);
/// What follows a program's own options: " COMMAND ...".
[[nodiscard]] std::string_view command_word(const Reference& reference);
/// What the option does, with its default.
[[nodiscard]] std::string meaning(const Option& option);
/// What can be completed of a value.
enum class ValueKind : std::uint8_t { nothing, words, files, folders };
[[nodiscard]] ValueKind value_kind(const Option& option);

}  // namespace kvingest::cli
