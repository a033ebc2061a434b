// cli_commands.hpp -- a program of subcommands as one table: each row declares its options and runs.
//
//   constexpr cli::CommandRow<Settings> kCommands[] = {{"count", "print the number of records", count, declare_count}};
//   cli::declare_commands(line, kCommands, settings, declare_common);
//   if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
//   return cli::run_chosen(line, kCommands, settings);
//
// Threads:  none; used before a program starts any.
// Lifetime: `settings` outlives the CommandLine, as its options are bound to it.
#pragma once

#include "base/cli.hpp"

namespace kvingest::cli {

/// One subcommand of a program whose commands share their Settings.
template <class Settings>
struct CommandRow {
  const char* name;
  const char* help;
  int (*run)(const Settings&);
  void (*declare)(Command&, Settings&) = nullptr;  ///< Null: it has no options of its own.
};

/// Adds each row to `line`: its own options, then what `declare_common` gives to all.
template <class Settings, std::size_t kRows>
void declare_commands(CommandLine& line, const CommandRow<Settings> (&rows)[kRows], Settings& settings,
                      void (*declare_common)(Command&, Settings&)) {
  for (const CommandRow<Settings>& row : rows) {
    Command& command = line.command(row.name, row.help);
    if (row.declare != nullptr) row.declare(command, settings);
    declare_common(command, settings);
  }
}

/// Runs the row that the command line chose and returns its exit code.
template <class Settings, std::size_t kRows>
int run_chosen(const CommandLine& line, const CommandRow<Settings> (&rows)[kRows], const Settings& settings) {
  for (const CommandRow<Settings>& row : rows) {
    if (line.chosen() == row.name) return row.run(settings);
  }
  return kUsage;
}

}  // namespace kvingest::cli
