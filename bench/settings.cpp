#include "bench/settings.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/thread.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kMessagesMax = 10'000'000'000;
constexpr std::uint64_t kBatchMax = 1'000'000;
constexpr std::uint64_t kRepeatMax = 1'000;
constexpr std::uint64_t kItemsMax = 10'000'000'000;
constexpr std::uint64_t kOperationsMax = 100'000'000;
constexpr Durability kLevels[] = {Durability::memory, Durability::kernel, Durability::disk};

/// "a,b,x=1,y=2,c" -> "a", "b,x=1,y=2", "c".
std::vector<std::string> split_specs(std::string_view list) {
  std::vector<std::string> specs;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const bool is_option = part.find('=') != std::string_view::npos && !specs.empty();
    if (is_option)
      specs.back() += "," + std::string(part);
    else
      specs.emplace_back(part);
  }
  return specs;
}

}  // namespace

Durability durability_named(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kLevels), std::end(kLevels), [&](Durability level) { return to_string(level) == name; });
  KV_ASSERT(found != std::end(kLevels));  // The command line takes no other.
  return *found;
}

void declare_options(cli::Command& command, Settings& s) {
  command.text("store", &s.stores, "LIST", "stores to compare, separated by commas, or all").own_variable();
  command.number("messages", &s.messages, "N", "lines that the feed sends in each run", 1, kMessagesMax).own_variable();
  command.number("batch", &s.batch, "N", "lines a send", 1, kBatchMax);
  command.number("second-batch", &s.second_batch, "N", "lines a send in the second table; 0: none", 0, kBatchMax);
  command.flag("lines-only", &s.lines_only, "ingest: leave out formats, acknowledgements, connections and latency");
  command.number("interval-us", &s.interval_us, "U", "microseconds that the feed sleeps after each batch");
  command.number("feed-cpu", &s.feed_cpu, "C", "pin the feed to this CPU (default the first)").own_variable();
  command.number("cpu", &s.cpu, "C", "pin the ingestion to this CPU (default the last)").own_variable();
  command
      .choice("durability", &s.durability, {"memory", "kernel", "disk"},
              "one level for all persistent stores (default a row at kernel and one at disk)")
      .own_variable();
  command.number("items", &s.items, "N", "keys, values or nodes that a suite works on (default: its own)", 1,
                 kItemsMax);
  command.number("operations", &s.operations, "N", "of each run of ycsb", 100, kOperationsMax);
  command.duration("steady", &s.steady, "how long ycsb runs workload A on end; 0s: not at all");
  command.choice("part", &s.part,
                 {"all", "engines", "sync", "seek", "index", "growth", "open", "space", "intstore", "seekwrite",
                  "sender", "pages", "maps", "calls"},
                 "of the suites stores (engines to space) and seed (intstore to calls), one part alone");
  command.text("external", &s.external, "URL",
               "ycsb: beside the stores a server on this machine: redis://127.0.0.1:PORT");
  command.number("repeat", &s.repeat, "N", "runs of each row, interleaved; the median is shown", 1, kRepeatMax);
  command.number("seed", &s.seed, "N", "of the order of the runs");
  command.text("out", &s.out, "DIR", "results.json goes here, and the stores of a run while it lasts");
  command.duration("time-budget", &s.time_budget, "begin no further repeat when this time is over");
  command.flag("resume", &s.resume, "go on with the run that --out holds: suites that it has finished are kept");
  command.flag("dry-run", &s.dry_run, "say what would be run and what it needs, and run nothing");
  command.flag("explain", &s.explain, "say with which options each store is opened, and run nothing");
  command.flag("json", &s.json, "print what results.json holds, and no tables");
  command.flag("quiet", &s.quiet, "no progress");
}

Result<std::vector<Contender>> parse_stores(std::string_view list) {
  std::vector<Contender> contenders;
  if (list == "all") {
    for (const Engine* engine : engines()) {
      if (engine->missing.empty()) contenders.push_back({std::string(engine->name), engine});
    }
    return contenders;
  }
  for (const std::string& text : split_specs(list)) {
    auto spec = parse_store_spec(text);
    KV_TRY(spec);
    contenders.push_back({text, spec->engine});
  }
  if (contenders.empty()) return fail(Code::invalid_argument, "no store is named");
  return contenders;
}

Result<Placement> place(const Settings& settings) {
  auto cpus = allowed_cpus();
  KV_TRY(cpus);
  const Placement placement{settings.feed_cpu.value_or(cpus->front()), settings.cpu.value_or(cpus->back())};
  for (const int cpu : {placement.feed, placement.ingest}) {
    if (std::find(cpus->begin(), cpus->end(), cpu) == cpus->end())
      return fail(Code::invalid_argument, "CPU {} is not among those this process may use: {}", cpu,
                  format_cpus(*cpus));
  }
  return placement;
}

}  // namespace kvingest::bench
