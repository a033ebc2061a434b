// cli_arguments.hpp -- the two outside formats of cli.hpp, each wrapped where its library is: CLI11 splits the command
// line, toml++ reads and writes configuration. Only cli.cpp includes this.
//
// Threads: pure functions, but for read_config(), which reads one file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli.hpp"
#include "kvingest/result.hpp"

namespace kvingest::cli {

/// What one command was given.
struct Arguments {
  Values values;
  std::vector<std::string> rest;  ///< What follows the first argument that is no option, itself included.
};

/// Sorts `tokens` to the options and positional arguments of `command`. With `stop_at_word`, everything from the first
/// argument that is no option goes to `rest` as it is. Fails with: invalid_argument, naming the option, and the nearest
/// known one when there is none of its name.
[[nodiscard]] Result<Arguments> split_arguments(const Command& command, std::span<const std::string> tokens,
                                                bool stop_at_word);

/// The values that a TOML file of flat keys holds. Fails with: io_error, invalid_argument (with file and line).
[[nodiscard]] Result<Values> read_config(const std::string& path);

/// The present values of `commands` as TOML, sorted by name. Secrets are masked; what is not set is a comment.
[[nodiscard]] std::string write_config(std::span<const Command* const> commands);

/// "; did you mean --listen?" or nothing. `dashes` goes in front of the name.
[[nodiscard]] std::string did_you_mean(std::string_view given, const std::vector<std::string_view>& known,
                                       std::string_view dashes);

}  // namespace kvingest::cli
