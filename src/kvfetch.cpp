// kvfetch -- fetches finance data over HTTP into a store, or into a running kvingest; downloads files. http/ does the
// work; this file is the command line, the other kvfetch_*.cpp are the commands.
//
// Threads: main, the session's, one for signals; `get` has one for each download under way.
#include <unistd.h>

#include <csignal>

#include "base/cli_commands.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "http/load/preset.hpp"
#include "http/load/preset_check.hpp"
#include "kvfetch_settings.hpp"

namespace kvingest::kvfetch {

int complain(const Error& error, int exit_code) {
  return cli::print({.exit_code = exit_code, .out = {}, .err = fmt::format("kvfetch: {}\n", error.text)});
}

http::SessionOptions session_options(const Settings& settings) {
  http::SessionOptions options;
  options.user_agent = settings.user_agent;
  options.ca_file = settings.ca_file;
  options.proxy = settings.proxy;
  return options;
}

http::RetryPolicy retry_policy(const Settings& settings) {
  http::RetryPolicy policy;
  policy.attempts = static_cast<unsigned>(settings.attempts);
  policy.deadline = settings.deadline;
  return policy;
}

int sources(const Settings& settings) {
  std::string text;
  JsonWriter json;
  json.begin_object().key("sources").begin_array();
  for (const fetch::BuiltinPreset& one : fetch::builtin_presets()) {
    const auto preset = fetch::parse_preset(one.toml, {});
    if (!preset) return complain(preset.error(), cli::kIncomplete);
    text += fmt::format("{:<24} {}\n", preset->name, preset->title);
    json.begin_object().field("name", preset->name).field("title", preset->title).field("record", preset->record);
    json.field("schema", preset->schema()).end_object();
  }
  json.end_array().end_object();
  return cli::print({.exit_code = cli::kDone, .out = settings.json ? json.text() + "\n" : text, .err = {}});
}

int check(const Settings& settings) {
  const auto preset = fetch::find_preset(settings.preset);
  if (!preset) return complain(preset.error(), cli::kUsage);
  const fetch::PresetProof proof = fetch::prove(*preset);
  std::string text;
  JsonWriter json;
  json.begin_object().field("name", preset->name).field("examples", proof.examples).key("failures").begin_array();
  for (const std::string& failure : proof.failures) {
    text += fmt::format("{}: {}\n", preset->name, failure);
    json.value(failure);
  }
  json.end_array().end_object();
  text += fmt::format("{}: {} examples, {} failed\n", preset->name, proof.examples, proof.failures.size());
  return cli::print({.exit_code = proof.failures.empty() ? cli::kDone : cli::kIncomplete,
                     .out = settings.json ? json.text() + "\n" : text,
                     .err = {}});
}

namespace {

constexpr std::uint64_t kWindowMax = 1'000;
constexpr std::uint64_t kParallelMax = 64;
constexpr std::uint64_t kAttemptsMax = 100;

void declare_asking(cli::Command& command, Settings& s) {
  command.text("user-agent", &s.user_agent, "TEXT", "who asks; some sources want an address to write to");
  command.text("ca-file", &s.ca_file, "FILE", "certificates to trust instead of the system's");
  command.text("proxy", &s.proxy, "URL", "instead of what https_proxy and the like say; empty: none");
  command.number("attempts", &s.attempts, "N", "how often one request is tried", 1, kAttemptsMax);
  command.duration("deadline", &s.deadline, "from a request's first try to its last, waits included");
  command.flag("quiet", &s.quiet, "no progress");
}

void declare_target(cli::Command& command, Settings& s) {
  command.text("store", &s.store, "NAME[,k=v...]", "the engine of the store that the records go into (default lmdb)");
  command.text("dir", &s.dir, "DIR", "the store's directory");
  command.text("into", &s.into, "tcp://HOST:PORT", "instead: a running kvingest that reads json");
  command.text("state", &s.state, "DIR", "with --into: where progress is kept");
  command.flag("extras", &s.extras,
               "with --into: send splits and dividends, too; the --key there has to tell them from prices, as "
               "{symbol}/{interval}/{date} does");
  command.flag("accept-unit", &s.accept_unit, "go on with series whose unit changed, as from GBP to GBp");
  command.text("failed-out", &s.failed_out, "FILE",
               "write what is not complete here, as jobs for `kvfetch run`; where all is, there is no such file");
  command.text("origin", &s.origin, "URL", "ask this scheme, host and port instead of the source's");
  command.flag("refresh", &s.refresh, "fetch again what is done");
  command.flag("dry-run", &s.dry_run, "show what would be asked, and how long it takes at least");
  command.flag("force-template", &s.force_template, "use a store whose marker says something else");
  command.number("window", &s.window, "N", "requests under way at once, over all sources", 1, kWindowMax);
  declare_asking(command, s);
}

void declare_load(cli::Command& command, Settings& s) {
  command.text("source", &s.source, "NAME", "a source that `kvfetch sources` lists, or a preset's FILE.toml");
  command.text("symbols", &s.symbols, "A,B,...", "what to fetch; @FILE: one a line");
  command.text("from", &s.from, "DATE", "the first day");
  command.text("to", &s.to, "DATE", "up to this day, without it (default: up to now)");
  command.text("interval", &s.interval, "I", "such as 1d; by default the source's own");
  command.list("var", &s.vars, "NAME=VALUE", "set a variable of the source");
  declare_target(command, s);
}

void declare_run(cli::Command& command, Settings& s) {
  command.positional("JOBS", &s.jobs, "a TOML file with a [[job]] for each thing to load").require();
  declare_target(command, s);
}

void declare_get(cli::Command& command, Settings& s) {
  command.positionals("URL", &s.urls, "what to download").require();
  command.text("output-dir", &s.output_dir, "DIR", "where the files go, each under the last part of its URL");
  command.number("parallel", &s.parallel, "N", "downloads at once", 1, kParallelMax);
  command.flag("no-resume", &s.no_resume, "begin anew where an earlier run left a part");
  declare_asking(command, s);
}

void declare_check(cli::Command& command, Settings& s) {
  command.positional("PRESET", &s.preset, "a source's name, or a file that ends in .toml").require();
}

/// What every command takes.
void declare_common(cli::Command& command, Settings& s) {
  command.flag("json", &s.json, "print the result as one JSON object");
}

constexpr cli::CommandRow<Settings> kCommands[] = {
    {"load", "load symbols of one source", load, declare_load},
    {"run", "load all that a file of jobs names", run_jobs, declare_run},
    {"get", "download URLs, many at once; what breaks is resumed", get, declare_get},
    {"sources", "list the sources, the name first", sources},
    {"check", "prove a source's preset against its own examples, offline", check, declare_check},
};

int run(int argc, char* argv[]) {
  Settings settings;
  cli::CommandLine line("kvfetch", "Fetches data over HTTP, into a store or into files.");
  cli::declare_commands(line, kCommands, settings, declare_common);
  line.example("load --source stooq-daily --symbols aapl.us,msft.us --from 2020-01-01 --dir bars",
               "loads daily prices, and goes on where it was when it is run again");
  line.example("run jobs.toml --dir bars --dry-run", "shows what a file of jobs would ask, and how long it takes");
  line.example("get https://example.org/a.csv https://example.org/b.csv", "downloads both at once");
  if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
  log_to_stderr("kvfetch", LogLevel::info);
  std::signal(SIGPIPE, SIG_IGN);  // A write to a kvingest that is gone tells by itself.
  return cli::run_chosen(line, kCommands, settings);
}

}  // namespace
}  // namespace kvingest::kvfetch

int main(int argc, char* argv[]) {
  return kvingest::cli::finish_results(kvingest::kvfetch::run(argc, argv));
}
