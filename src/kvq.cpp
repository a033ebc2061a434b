// kvq -- reads a store directory: what it holds, how it is, copies of it. src/query/ does the work; this file is the
// command line, kvq_read.cpp and kvq_store.cpp are the commands.
//
// Threads: one.
#include <unistd.h>

#include <csignal>

#include "base/cli_commands.hpp"
#include "kvq_settings.hpp"

namespace kvingest::kvq {
namespace {

void declare_get(cli::Command& command, Settings& settings) {
  command.positional("KEY", &settings.key, "the key; a number in a {seq} store; \\xNN for any byte").require();
}

void declare_selection(cli::Command& command, Settings& settings) {
  command.text("prefix", &settings.prefix, "P", "keys that begin with P");
  command.text("from", &settings.from, "A", "the first key");
  command.text("to", &settings.to, "B", "up to this key, without it");
  command.number("limit", &settings.limit, "N", "at most so many rows");
  command.flag("reverse", &settings.reverse, "from the last key to the first");
}

void declare_tail(cli::Command& command, Settings& settings) {
  command.number("lines", &settings.tail_count, "N", "how many rows").short_name('n');
  command.flag("follow", &settings.follow, "go on with records as they arrive, from a running kvingest")
      .short_name('f');
}

void declare_export(cli::Command& command, Settings& settings) {
  command.choice("format", &settings.export_form, {"csv", "json", "text"}, "what to write").own_variable();
  declare_selection(command, settings);
}

void declare_wide(cli::Command& command, Settings& settings) {
  command.text("rows", &settings.rows, "F", "the field whose values are the rows");
  command.text("columns", &settings.columns_field, "F", "the field whose values are the columns");
  command.text("values", &settings.values, "F", "the field whose values are in the cells");
  command.choice("aggregate", &settings.aggregate, {"last", "first", "sum", "mean", "min", "max", "count"},
                 "what is made of several records in one cell");
  command.text("prefix", &settings.prefix, "P", "keys that begin with P");
  command.text("from", &settings.from, "A", "the first key");
  command.text("to", &settings.to, "B", "up to this key, without it");
}

void declare_pivot(cli::Command& command, Settings& settings) {
  declare_wide(command, settings);
  command.choice("format", &settings.wide_form, {"csv", "json", "table"}, "what to write").own_variable();
}

void declare_plot(cli::Command& command, Settings& settings) {
  command.positional("FILE", &settings.output, "the SVG file to write").require();
  declare_wide(command, settings);
  command.text("time-format", &settings.time_form, "F", "how the rows are written, as strftime has it");
}

void declare_erase(cli::Command& command, Settings& settings) {
  command.text("prefix", &settings.prefix, "P", "keys that begin with P");
  command.text("from", &settings.from, "A", "the first key");
  command.text("to", &settings.to, "B", "up to this key, without it");
}

void declare_import(cli::Command& command, Settings& settings) {
  command.positional("FILE", &settings.input, "the file; - for stdin").require();
  command
      .choice("format", &settings.import_form, {"text", "messages"},
              "text: KEY<TAB>VALUE as scan prints it, where numbers are given anew; messages: as a feed sends them")
      .own_variable();
}

void declare_rejects(cli::Command& command, Settings& settings) {
  command.positional("ACTION", &settings.action, "list; export (the raw bytes, a message a line); replay")
      .suggest({"list", "export", "replay"})
      .require();
  command.text("columns", &settings.columns, "A,B,...", "replay: the columns of csv, where the store does not know");
}

void declare_convert(cli::Command& command, Settings& settings) {
  command.text("to", &settings.target, "NAME:DIR", "the engine, with its options, and the new directory");
  command.flag("quiet", &settings.quiet, "no progress");
}

void declare_backup(cli::Command& command, Settings& settings) {
  command.positional("TARGET", &settings.target, "the new directory").require();
}

void declare_repair(cli::Command& command, Settings& settings) {
  command.text("to", &settings.target, "TARGET", "the new directory; what is lost goes to TARGET.lost");
}

/// Those that need the directory itself; the others also take the store of a running service.
bool is_local(std::string_view command) {
  return command == "repair" || command == "import";
}

/// What every command takes.
void declare_common(cli::Command& command, Settings& settings) {
  command.text("dir", &settings.dir, "DIR", "the store's directory");
  if (!is_local(command.name())) {
    command.text("connect", &settings.connect, "HOST:PORT", "ask a running kvingest (--resp), also unix:PATH")
        .own_variable();
    command.text("token", &settings.token, "TOKEN", "says to it who asks; better in the environment, KVQ_TOKEN")
        .own_variable()
        .hide_value();
  }
  command.flag("json", &settings.json, "print the result as one JSON object");
}

constexpr cli::CommandRow<Settings> kCommands[] = {
    {"count", "print the number of records", count},
    {"get", "print the value under a key; exit 1 if there is none", get, declare_get},
    {"scan", "print records in key order, KEY<TAB>VALUE a line", scan, declare_selection},
    {"tail", "print the last records in key order", tail, declare_tail},
    {"export", "print records as csv, json or text", export_records, declare_export},
    {"pivot", "print a wide table: one field down, one across, one in the cells", pivot, declare_pivot},
    {"plot", "draw such a table as lines over time into an SVG file (gnuplot)", plot, declare_plot},
    {"stats", "print what the store is and its sizes and counters", stats},
    {"verify", "check every checksum; exit 1 and the first damaged place", verify},
    {"repair", "make a new store of what can still be read of a damaged one", repair, declare_repair},
    {"audit", "recount the store against its ledger; exit 1 and the difference", audit},
    {"rejects", "list, export or replay messages that became no record", rejects, declare_rejects},
    {"delete", "erase the records that --prefix, --from and --to name", erase, declare_erase},
    {"import", "store the lines of a file; exit 1 if some were rejected", import_records, declare_import},
    {"convert", "copy everything into a new store of any engine, and compare", convert, declare_convert},
    {"backup", "copy the store, as of one moment, into a new directory", backup, declare_backup},
    {"compact", "give back the space of what was overwritten and erased", compact},
};

int run(int argc, char* argv[]) {
  Settings settings;
  cli::CommandLine line("kvq", "Reads a kvingest store, and looks after it.");
  cli::declare_commands(line, kCommands, settings, declare_common);
  line.example("get AAPL/2017-12-29 --dir kvdata", "prints one value");
  line.example("scan --prefix TSLA/ --limit 10 --dir kvdata", "prints the first ten records of a symbol");
  line.example("pivot --rows date --columns symbol --values close --dir kvdata", "prints prices as a wide table");
  line.example("verify --dir kvdata", "looks for damage; the exit status says whether there is any");
  if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
  std::signal(SIGPIPE, SIG_IGN);  // `kvq scan | head`: the write tells.
  return cli::run_chosen(line, kCommands, settings);
}

}  // namespace
}  // namespace kvingest::kvq

int main(int argc, char* argv[]) {
  return kvingest::kvq::run(argc, argv);
}
