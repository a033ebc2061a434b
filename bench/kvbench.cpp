// kvbench -- measures what this machine allows and what kvingest makes of it. The suites are in files of their own
// (suites.cpp lists them); this file is the program around them.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/cli.hpp"
#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "base/posix.hpp"
#include "bench/bounds.hpp"
#include "bench/compare.hpp"
#include "bench/page_file.hpp"
#include "bench/report.hpp"
#include "bench/selftest.hpp"
#include "bench/suite.hpp"
#include "bench/table.hpp"
#include "bench/ycsb_redis.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

/// All suites, one after the other.
constexpr std::string_view kFull = "full";

/// Beyond this load average at the start somebody else is at work.
constexpr double kBusyLoad = 0.5;

/// Of the commands that a suite runs as children.
struct BoundSettings {
  std::string port_file;
  std::string file;
  std::string way = "pread";
  std::optional<std::string> group;
  std::uint64_t messages = 1'000'000;
  std::optional<int> cpu;
};

/// Of `report`.
struct ReportSettings {
  std::string dir;
};

/// Of `compare`.
struct CompareSettings {
  std::string before;
  std::string now;
};

/// A directory that is removed with everything in it.
class WorkDir {
 public:
  static Result<WorkDir> make(const fs::path& in) {
    std::string name = (in / "kvbench-work-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return fail(errno, "make a directory in {}", in.native());
    return WorkDir(name);
  }
  WorkDir(WorkDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkDir& operator=(WorkDir&&) = delete;
  ~WorkDir() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  explicit WorkDir(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Result<std::vector<const Suite*>> parse_suites(std::string_view list) {
  std::vector<std::string_view> known;
  for (const Suite& suite : suites()) known.push_back(suite.name);
  known.push_back(kFull);
  std::vector<const Suite*> chosen;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
    if (name == kFull) {
      for (const Suite& suite : suites()) {
        if (suite.in_full) chosen.push_back(&suite);
      }
      continue;
    }
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      return fail(Code::invalid_argument, "--suite: there is no suite '{}'; there are: {}", name,
                  fmt::join(known, ", "));
    chosen.push_back(&suites()[static_cast<std::size_t>(found - known.begin())]);
  }
  return chosen;
}

std::string command_line(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i == 0 ? "" : " ") + std::string(i == 0 ? "kvbench" : argv[i]);
  return text;
}

/// The directory that this program is in, and the others with it.
fs::path programs_dir() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

/// The most that any of the suites takes: they run one after the other and clean up.
Needs needs_of(const std::vector<const Suite*>& chosen, const Settings& settings) {
  Needs most;
  for (const Suite* suite : chosen) {
    const Needs needs = suite->needs(settings);
    most.disk_bytes = std::max(most.disk_bytes, needs.disk_bytes);
    most.memory_bytes = std::max(most.memory_bytes, needs.memory_bytes);
  }
  return most;
}

Result<void> check_space(const fs::path& dir, const Needs& needs) {
  struct statvfs info {};
  if (::statvfs(dir.c_str(), &info) != 0) return fail(errno, "statvfs {}", dir.native());
  const std::uint64_t free_bytes = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (free_bytes < needs.disk_bytes)
    return fail(Code::no_space,
                "{}: this run may need {} MiB, {} MiB are free; choose another --out or fewer --messages", dir.native(),
                needs.disk_bytes >> 20, free_bytes >> 20);
  const std::uint64_t memory_bytes = available_memory_bytes();
  if (memory_bytes < needs.memory_bytes)
    return fail(Code::no_space, "this run needs {} MiB of memory, {} MiB are available; choose fewer --items",
                needs.memory_bytes >> 20, memory_bytes >> 20);
  return {};
}

/// What a run would do, and what it would take.
std::string plan_text(const Settings& s, const std::vector<const Suite*>& chosen,
                      const std::vector<Contender>& stores) {
  Table table("what would be run, with " + std::to_string(s.repeat) + " repeats",
              {"suite", "stores", "disk MiB", "memory MiB"}, 2);
  for (const Suite* suite : chosen) {
    std::vector<std::string> names;
    for (const Contender& store : stores) names.push_back(store.name);
    const Needs needs = suite->needs(s);
    table.add({std::string(suite->name), suite->uses_stores ? fmt::format("{}", fmt::join(names, ",")) : "-",
               std::to_string(needs.disk_bytes >> 20), std::to_string(needs.memory_bytes >> 20)});
  }
  return table.text();
}

/// What each store is opened with and why: as asked for, else as kvingest itself does.
std::string options_text(const std::vector<Contender>& stores) {
  std::string text;
  for (const Contender& store : stores) {
    const auto spec = parse_store_spec(store.name);
    text += fmt::format("{}: {}\n", store.engine->name, store.engine->summary);
    for (const EngineOption& option : store.engine->options) {
      const bool is_asked = spec && spec->options.contains(std::string(option.name));
      const std::string_view value =
          is_asked ? std::string_view(spec->options.at(std::string(option.name))) : option.fallback;
      text += fmt::format("  {}={} ({}): {}\n", option.name, value, is_asked ? "as asked" : "as in kvingest",
                          option.meaning);
    }
  }
  return text;
}

/// The csv, and the page where there is gnuplot; false: there is none.
Result<bool> write_report(const fs::path& out, const Results& results, const fs::path& work_dir) {
  KV_TRY(replace_file(Posix::real(), out / "results.csv", results.csv()));
  const auto gnuplot = find_gnuplot();
  if (!gnuplot) {
    log_warning("no report.html: it needs gnuplot (gnuplot-nox), which is not installed");
    return false;
  }
  auto page = report_page(results, *gnuplot, work_dir);
  KV_TRY(page);
  KV_TRY(replace_file(Posix::real(), out / "report.html", *page));
  return true;
}

/// A command without the word that says to go on with a run.
std::string without_resume(std::string command) {
  constexpr std::string_view kResume = " --resume";
  const std::size_t at = command.find(kResume);
  if (at != std::string::npos) command.erase(at, kResume.size());
  return command;
}

/// What the run before this one has finished, in `results`; they were the same command and machine.
Result<void> take_up(const fs::path& out, const Machine& machine, Results& results) {
  const fs::path file = out / "results.json";
  if (!fs::exists(file)) return fail(Code::invalid_argument, "--resume: there is no {} to go on with", file.native());
  auto before = read_results(file);
  KV_TRY(before);
  if (without_resume(before->command) != without_resume(results.command))
    return fail(Code::invalid_argument, "--resume: {} is of another run, '{}': give the same options, or another --out",
                file.native(), before->command);
  if (before->machine.cpu != machine.cpu || before->machine.cpus != machine.cpus)
    return fail(Code::invalid_argument, "--resume: {} is of another machine, {} with CPUs {}", file.native(),
                before->machine.cpu, before->machine.cpus);
  results.rows = std::move(before->rows);
  results.series = std::move(before->series);
  results.finished = std::move(before->finished);
  results.tables = std::move(before->tables);
  return {};
}

/// Everything that a user's mistake can spoil was checked: from here on only the world can.
Result<bool> run_suites(const Settings& s, const std::vector<const Suite*>& chosen, std::vector<Contender> stores,
                        Placement placement, Results& results) {
  std::error_code error;
  fs::create_directories(s.out, error);
  if (error) return fail(error.value(), "create {}", s.out);
  KV_TRY(check_space(s.out, needs_of(chosen, s)));
  auto work_dir = WorkDir::make(s.out);
  KV_TRY(work_dir);
  results.machine = describe_machine(work_dir->path());
  if (is_memory_filesystem(results.machine))
    log_warning("{} is in memory ({}): rows at disk measure no disk", s.out, results.machine.filesystem);
  if (placement.feed == placement.ingest) log_warning("feed and ingestion share CPU {}", placement.feed);
  if (results.machine.load > kBusyLoad)
    log_warning("load average {:.1f}: others use this machine, too, and the figures will show it",
                results.machine.load);
  auto probe = probe_machine(work_dir->path(), placement);
  KV_TRY(probe);
  results.probe = *probe;

  if (s.resume) KV_TRY(take_up(s.out, results.machine, results));
  const fs::path file = fs::path(s.out) / "results.json";
  Bench bench{s, std::move(stores), placement, programs_dir(), work_dir->path(), results};
  for (const Suite* suite : chosen) {
    const std::string name(suite->name);
    if (std::find(results.finished.begin(), results.finished.end(), name) != results.finished.end()) continue;
    KV_TRY(suite->run(bench));
    results.finished.push_back(name);
    results.tables += std::exchange(bench.tables, {});
    KV_TRY(replace_file(Posix::real(), file, results.json()));  // For --resume, should this be the last that ends.
  }
  const std::string json = results.json();  // Once: it holds the time.
  KV_TRY(replace_file(Posix::real(), file, json));
  KV_TRY(write_report(s.out, results, work_dir->path()));
  if (s.json)
    fmt::print("{}", json);
  else
    fmt::print("{}, {}, {}, {}\n{}\n{}", results.machine.cpu, results.machine.system, results.machine.kernel,
               results.machine.filesystem, probe_text(results.probe), results.tables);
  return std::none_of(results.rows.begin(), results.rows.end(), [](const Row& row) { return !row.error.empty(); });
}

int finish(const Result<bool>& done) {
  if (done) return *done ? cli::kDone : cli::kIncomplete;
  log_error("{}", done.error().text);
  return interrupted() ? cli::kInterrupted : cli::kIncomplete;
}

int run_command(const cli::CommandLine& line, const Settings& settings, Results& results) {
  const auto chosen = parse_suites(line.chosen() == "run" ? std::string_view(settings.suites) : line.chosen());
  if (!chosen) return cli::print(line.usage_error(chosen.error().text));
  auto stores = parse_stores(settings.stores);
  if (!stores) return cli::print(line.usage_error("--store: " + stores.error().text));
  if (!settings.external.empty()) {
    if (const auto address = parse_external(settings.external); !address)
      return cli::print(line.usage_error("--external: " + address.error().text));
  }
  const auto placement = place(settings);
  if (!placement) return cli::print(line.usage_error(placement.error().text));
  if (settings.dry_run || settings.explain) {
    if (settings.dry_run) fmt::print("{}", plan_text(settings, *chosen, *stores));
    if (settings.explain) fmt::print("{}", options_text(*stores));
    return cli::kDone;
  }
  return finish(run_suites(settings, *chosen, *std::move(stores), *placement, results));
}

int run_compare(const CompareSettings& files) {
  const auto comparison = compare_runs(files.before, files.now);
  if (!comparison) {
    log_error("{}", comparison.error().text);
    return cli::kUsage;
  }
  fmt::print("{}", comparison->text);
  return comparison->worse > 0 ? cli::kIncomplete : cli::kDone;
}

int print_selftest() {
  const auto checks = run_selftest();
  if (!checks) {
    log_error("{}", checks.error().text);
    return cli::kIncomplete;
  }
  bool passed = true;
  for (const SelfCheck& check : *checks) {
    fmt::print("{} {}: {}\n", check.passed ? "ok    " : "FAILED", check.name, check.figure);
    passed = passed && check.passed;
  }
  return passed ? cli::kDone : cli::kIncomplete;
}

Result<bool> make_report(const fs::path& dir) {
  auto results = read_results(dir / "results.json");
  KV_TRY(results);
  auto work_dir = WorkDir::make(dir);
  KV_TRY(work_dir);
  return write_report(dir, *results, work_dir->path());
}

Result<bool> run_probe(const Settings& settings) {
  auto placement = place(settings);
  KV_TRY(placement);
  std::error_code error;
  fs::create_directories(settings.out, error);
  if (error) return fail(error.value(), "create {}", settings.out);
  auto probe = probe_machine(settings.out, *placement);
  KV_TRY(probe);
  JsonWriter json;
  write_probe(json, *probe);
  fmt::print("{}", settings.json ? json.text() + "\n" : probe_text(*probe));
  return true;
}

Result<bool> print_bound(Result<BoundReport> report) {
  KV_TRY(report);
  JsonWriter json;
  json.begin_object().field("received", report->messages).field("bytes", report->bytes);
  json.field("seconds", report->seconds).end_object();
  fmt::print("{}\n", json.text());
  return true;
}

Result<bool> print_page_reads(const BoundSettings& bound) {
  auto read = read_pages(bound.file, bound.way, bound.messages, bound.group);
  KV_TRY(read);
  fmt::print("{} {}\n", read->ns_per_page, read->faults);
  return true;
}

void declare(cli::CommandLine& line, Settings& settings, BoundSettings& bound, CompareSettings& files,
             ReportSettings& report) {
  for (const Suite& suite : suites())
    declare_options(line.command(std::string(suite.name), std::string(suite.summary)), settings);
  declare_options(line.command(std::string(kFull), "all suites, one after the other; --resume goes on with it"),
                  settings);
  cli::Command& run = line.command("run", "run the suites that --suite names");
  run.text("suite", &settings.suites, "LIST", "suites, separated by commas");
  declare_options(run, settings);
  cli::Command& probe = line.command("probe", "measure the machine's own limits");
  probe.text("out", &settings.out, "DIR", "write files here for a moment");
  probe.flag("json", &settings.json, "print one JSON object");
  cli::Command& compare = line.command("compare", "say what is better or worse in one results.json than in another");
  compare.positional("before", &files.before, "the results.json to compare with").require();
  compare.positional("now", &files.now, "the one that is judged").require();
  line.command("report", "make report.html and results.csv anew from the results.json in a directory")
      .positional("dir", &report.dir, "the directory")
      .require();
  line.command("selftest", "check the clock, the generators, the harness and the comparison");
  cli::Command& discard = line.command("discard", "receive lines and store nothing: what ingest is compared with");
  discard.text("port-file", &bound.port_file, "FILE", "write `feed HOST:PORT` to this file once listening")
      .own_variable();
  discard.number("cpu", &bound.cpu, "C", "pin to this CPU").own_variable();
  cli::Command& seek_write = line.command("seek-write", "write records with one seek and one write each");
  seek_write.text("file", &bound.file, "FILE", "the file to write");
  seek_write.number("messages", &bound.messages, "N", "how many records").own_variable();
  seek_write.number("cpu", &bound.cpu, "C", "pin to this CPU").own_variable();
  cli::Command& read_pages = line.command("read-pages", "read pages of a file at random, within a bound of memory");
  read_pages.text("file", &bound.file, "FILE", "the file to read, of numbered pages");
  read_pages.choice("way", &bound.way, {"mmap", "pread", "direct"}, "how");
  read_pages.number("messages", &bound.messages, "N", "how many pages").own_variable();
  read_pages.text("group", &bound.group, "DIR", "join this group of processes first");
}

/// `kvbench --store all` is `kvbench run --store all`.
std::vector<const char*> with_command(int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first.starts_with("--store")) arguments.insert(arguments.begin() + 1, "run");
  return arguments;
}

int run_kvbench(int argc, char** argv) {
  Settings settings;
  BoundSettings bound;
  cli::CommandLine line("kvbench", "Measures what this machine allows and what kvingest makes of it.");
  CompareSettings files;
  ReportSettings report;
  declare(line, settings, bound, files, report);
  line.example("ingest --messages 2000000", "measures each store beside what the kernel can hand over");
  line.example("run --suite quick --store all", "a look at everything within some 90 seconds");
  line.example("compare before/results.json now/results.json", "says what became better or worse");
  const std::vector<const char*> arguments = with_command(argc, argv);
  if (const auto ending = line.parse(static_cast<int>(arguments.size()), arguments.data(), environ))
    return cli::print(*ending);
  log_to_stderr("kvbench", settings.quiet ? LogLevel::warning : LogLevel::info);
  catch_interrupts();

  if (line.chosen() == "compare") return run_compare(files);
  if (line.chosen() == "report") return finish(make_report(report.dir));
  if (line.chosen() == "selftest") return print_selftest();
  if (line.chosen() == "probe") return finish(run_probe(settings));
  if (line.chosen() == "discard") {
    if (bound.port_file.empty()) return cli::print(line.usage_error("--port-file is missing"));
    return finish(print_bound(discard_feed(bound.port_file, bound.cpu)));
  }
  if (line.chosen() == "read-pages") {
    if (bound.file.empty()) return cli::print(line.usage_error("--file is missing"));
    return finish(print_page_reads(bound));
  }
  if (line.chosen() == "seek-write") {
    if (bound.file.empty()) return cli::print(line.usage_error("--file is missing"));
    return finish(print_bound(seek_and_write(bound.file, bound.messages, bound.cpu)));
  }
  Results results;
  results.command = command_line(argc, argv);
  results.seed = settings.seed;
  return run_command(line, settings, results);
}

}  // namespace
}  // namespace kvingest::bench

int main(int argc, char** argv) {
  return kvingest::cli::finish_results(kvingest::bench::run_kvbench(argc, argv));
}
