// kvq -- reads a store directory: what it holds, and how it is. src/query/ does the work; this file is the command
// line.
//
// Threads: one.
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/cli.hpp"
#include "query/opened_store.hpp"
#include "query/read_commands.hpp"
#include "query/store_commands.hpp"
#include "record/text_escape.hpp"

namespace kvingest {
namespace {

using query::OpenedStore;
using query::Output;
using query::RowForm;

struct Settings {
  std::string dir = "kvdata";
  bool json = false;
  std::string key;
  std::optional<std::string> prefix;
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<std::uint64_t> limit;
  bool reverse = false;
  std::uint64_t tail_count = 10;

  [[nodiscard]] RowForm form() const { return json ? RowForm::json : RowForm::text; }
};

int complain(const Error& error, int exit_code) {
  return cli::print({.exit_code = exit_code, .out = {}, .err = fmt::format("kvq: {}\n", error.text)});
}

void print_notice(std::string_view text) {
  cli::print({.exit_code = cli::kDone, .out = {}, .err = fmt::format("kvq: note: {}\n", text)});
}

int exit_code_of(const Result<void>& done) {
  return done ? cli::kDone : complain(done.error(), cli::kIncomplete);
}

int run_count(const Settings& settings, const OpenedStore& opened, Output& out) {
  return exit_code_of(query::print_count(*opened.store, settings.form(), out));
}

int run_get(const Settings& settings, const OpenedStore& opened, Output& out) {
  const bool seq_keys = opened.labels.seq_keys;
  const auto key = key_from_text(settings.key, seq_keys);
  if (!key) return complain(key.error(), cli::kUsage);
  const auto found = query::print_value(*opened.store, *key, seq_keys, settings.form(), out);
  if (!found) return complain(found.error(), cli::kIncomplete);
  return *found ? cli::kDone : cli::kIncomplete;
}

/// Undoes the escapes of an optional argument.
Result<std::optional<std::string>> bound(const std::optional<std::string>& text, bool seq_keys) {
  if (!text) return std::nullopt;
  auto key = key_from_text(*text, seq_keys);
  KV_TRY(key);
  return *std::move(key);
}

Result<query::Selection> selection_of(const Settings& settings, bool seq_keys) {
  auto prefix = bound(settings.prefix, false);
  KV_TRY(prefix);
  auto from = bound(settings.from, seq_keys);
  KV_TRY(from);
  auto to = bound(settings.to, seq_keys);
  KV_TRY(to);
  query::Selection selection = query::select(*std::move(prefix), *std::move(from), *std::move(to));
  selection.reverse = settings.reverse;
  if (settings.limit) selection.limit = *settings.limit;
  return selection;
}

int run_scan(const Settings& settings, const OpenedStore& opened, Output& out) {
  const bool seq_keys = opened.labels.seq_keys;
  const auto selection = selection_of(settings, seq_keys);
  if (!selection) return complain(selection.error(), cli::kUsage);
  return exit_code_of(query::print_rows(*opened.store, *selection, seq_keys, settings.form(), out));
}

int run_tail(const Settings& settings, const OpenedStore& opened, Output& out) {
  return exit_code_of(
      query::print_tail(*opened.store, settings.tail_count, opened.labels.seq_keys, settings.form(), out));
}

int run_stats(const Settings& settings, const OpenedStore& opened, Output& out) {
  return exit_code_of(query::print_stats(opened, settings.form(), out));
}

int run_verify(const Settings& settings, const OpenedStore& opened, Output& out) {
  return exit_code_of(query::print_verify(*opened.store, settings.form(), out));
}

struct CommandRow {
  const char* name;
  const char* help;
  int (*run)(const Settings&, const OpenedStore&, Output&);
  void (*declare)(cli::Command&, Settings&);
};

void declare_nothing(cli::Command&, Settings&) {}
void declare_get(cli::Command& command, Settings& settings) {
  command.positional("KEY", &settings.key, "the key; a number in a {seq} store; \\xNN for any byte").require();
}
void declare_scan(cli::Command& command, Settings& settings) {
  command.text("prefix", &settings.prefix, "P", "keys that begin with P");
  command.text("from", &settings.from, "A", "the first key");
  command.text("to", &settings.to, "B", "up to this key, without it");
  command.number("limit", &settings.limit, "N", "at most so many rows");
  command.flag("reverse", &settings.reverse, "from the last key to the first");
}
void declare_tail(cli::Command& command, Settings& settings) {
  command.number("lines", &settings.tail_count, "N", "how many rows").short_name('n');
}

constexpr CommandRow kCommands[] = {
    {"count", "print the number of records", run_count, declare_nothing},
    {"get", "print the value under a key; exit 1 if there is none", run_get, declare_get},
    {"scan", "print records in key order, KEY<TAB>VALUE a line", run_scan, declare_scan},
    {"tail", "print the last records in key order", run_tail, declare_tail},
    {"stats", "print what the store is and its sizes and counters", run_stats, declare_nothing},
    {"verify", "check every checksum; exit 1 and the first damaged place", run_verify, declare_nothing},
};

int run_command(const CommandRow& row, const Settings& settings) {
  const auto opened = query::open_for_reading(settings.dir, print_notice);
  if (!opened) {
    // To verify, damage that shows when the store is opened is an answer.
    const bool answer = row.run == run_verify && opened.error().code == Code::corrupt;
    return complain(opened.error(), answer ? cli::kIncomplete : cli::kStoreUnavailable);
  }
  Output out(STDOUT_FILENO);
  return row.run(settings, *opened, out);
}

int run(int argc, char* argv[]) {
  Settings settings;
  cli::CommandLine line("kvq", "Reads a kvingest store.");
  for (const CommandRow& row : kCommands) {
    cli::Command& command = line.command(row.name, row.help);
    command.text("dir", &settings.dir, "DIR", "the store's directory");
    row.declare(command, settings);
    command.flag("json", &settings.json, "print the result as one JSON object");
  }
  if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
  std::signal(SIGPIPE, SIG_IGN);  // `kvq scan | head`: the write tells.
  for (const CommandRow& row : kCommands) {
    if (line.chosen() == row.name) return run_command(row, settings);
  }
  return cli::kUsage;
}

}  // namespace
}  // namespace kvingest

int main(int argc, char* argv[]) {
  return kvingest::run(argc, argv);
}
