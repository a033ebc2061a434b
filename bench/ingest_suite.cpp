// The ingest suite: the machine's limit, then kvingest's own path into each store, interleaved and repeated.
#include <algorithm>
#include <cstdio>
#include <random>

#include "base/interrupt.hpp"
#include "base/quantity.hpp"
#include "bench/feeds_table.hpp"
#include "bench/ingest_run.hpp"
#include "bench/statistics.hpp"
#include "bench/suite.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

/// In the second table only what a larger send can change: these are bound by their own work at any size of send.
constexpr std::string_view kBoundByStore[] = {"hash", "map", "file", "rocksdb"};

/// A row of a table: what is run, and what its runs gave.
struct IngestRow {
  IngestCase what;
  std::vector<IngestMeasurement> runs = {};  ///< One for each repeat.
  std::string failure = {};                  ///< Why there are none.

  /// One figure of each run.
  template <class Figure>
  [[nodiscard]] std::vector<double> values(Figure&& figure) const {
    std::vector<double> all;
    for (const IngestMeasurement& run : runs) all.push_back(static_cast<double>(figure(run)));
    return all;
  }
};

struct Metric {
  std::string_view name;
  std::string_view unit;
  double (*of)(const IngestMeasurement&);
};

constexpr Metric kMetrics[] = {
    {"messages_per_second", "1/s", [](const IngestMeasurement& m) { return m.rate; }},
    {"wall", "s", [](const IngestMeasurement& m) { return m.seconds; }},
    {"user", "s", [](const IngestMeasurement& m) { return m.usage.user_seconds; }},
    {"system", "s", [](const IngestMeasurement& m) { return m.usage.system_seconds; }},
    {"cpu_share", "1", [](const IngestMeasurement& m) { return m.cpu_share; }},
    {"cpu_per_message", "ns", [](const IngestMeasurement& m) { return m.cpu_share / m.rate * 1e9; }},
    {"rss_max", "bytes", [](const IngestMeasurement& m) { return static_cast<double>(m.usage.rss_max_bytes); }},
    {"rss_anon_max", "bytes", [](const IngestMeasurement& m) { return static_cast<double>(m.rss_anon_max_bytes); }},
    {"voluntary_switches", "1",
     [](const IngestMeasurement& m) { return static_cast<double>(m.usage.voluntary_switches); }},
    {"involuntary_switches", "1",
     [](const IngestMeasurement& m) { return static_cast<double>(m.usage.involuntary_switches); }},
};

bool is_bound_by_store(const Contender& store) {
  return std::find(std::begin(kBoundByStore), std::end(kBoundByStore), store.engine->name) != std::end(kBoundByStore);
}

std::vector<std::string> levels_of(const Contender& store, const Settings& settings) {
  if (!store.engine->persistent) return {"memory"};
  if (settings.durability) return {*settings.durability};
  return {"kernel", "disk"};
}

/// The rows of both tables, in the order in which they are shown. The first of each table is its limit.
std::vector<IngestRow> plan(const Bench& bench) {
  const Settings& settings = bench.settings;
  std::vector<std::uint64_t> batches = {settings.batch};
  if (settings.second_batch != 0 && settings.second_batch != settings.batch) batches.push_back(settings.second_batch);
  std::vector<IngestRow> rows;
  for (const std::uint64_t batch : batches) {
    const bool first_table = batch == settings.batch;
    rows.push_back({{IngestKind::discard, {}, "", batch}});
    for (const Contender& store : bench.stores) {
      if (!first_table && is_bound_by_store(store)) continue;
      for (const std::string& level : levels_of(store, settings))
        rows.push_back({{IngestKind::store, store, level, batch}});
      if (store.engine->name == "file") rows.push_back({{IngestKind::seek_write, {}, "", batch}});
    }
  }
  return rows;
}

/// The suite in progress.
class IngestSuite {
 public:
  explicit IngestSuite(Bench& bench)
      : bench_(bench), setup_{bench.settings, bench.placement, bench.programs}, rows_(plan(bench)) {}

  Result<void> operator()() {
    std::mt19937_64 random(bench_.settings.seed);
    std::vector<std::size_t> order(rows_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      // Another order each time, so that no row always runs behind the same other one.
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) KV_TRY(run_once(rows_[i]));
    }
    for (auto from = rows_.begin(); from != rows_.end();) {
      const auto to = std::find_if(from + 1, rows_.end(),
                                   [](const IngestRow& row) { return row.what.kind == IngestKind::discard; });
      report({from, to});
      from = to;
    }
    return bench_.settings.lines_only ? Result<void>() : run_feeds_table(bench_);
  }

 private:
  Result<void> run_once(IngestRow& row) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    if (!row.failure.empty()) return {};
    const std::filesystem::path dir = bench_.work_dir / "run";
    std::error_code error;
    std::filesystem::create_directory(dir, error);
    if (error) return fail(error.value(), "create {}", dir.native());
    auto measured = run_ingest(setup_, row.what, dir);
    // Before the next run, so that it does not pay for writing back what this one left.
    std::filesystem::remove_all(dir, error);
    if (error) return fail(error.value(), "remove {}", dir.native());
    if (measured)
      row.runs.push_back(*std::move(measured));
    else if (interrupted())
      return tl::unexpected<Error>(measured.error());
    else
      row.failure = measured.error().text;
    ++runs_done_;
    show_progress(row);
    return {};
  }

  void show_progress(const IngestRow& row) {
    if (bench_.settings.quiet) return;
    const std::uint64_t runs = bench_.settings.repeat * rows_.size();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double left = seconds / static_cast<double>(runs_done_) * static_cast<double>(runs - runs_done_);
    const std::string result =
        row.failure.empty() ? fmt::format("{:.2f} M/s", row.runs.back().rate / 1e6) : "failed: " + row.failure;
    fmt::print(stderr, "[{}/{}] {}: {}  ({:.0f} s left)\n", runs_done_, runs, row.what.text(), result, left);
  }

  /// The rates of `row` divided by those of `limit`, run by run: both then had the machine in the same mood.
  static std::vector<double> ratios(const IngestRow& row, const IngestRow& limit) {
    std::vector<double> all;
    for (std::size_t i = 0; i < std::min(row.runs.size(), limit.runs.size()); ++i)
      all.push_back(row.runs[i].rate / limit.runs[i].rate);
    return all;
  }

  void report(std::span<const IngestRow> rows) {
    const auto bare_loop = std::find_if(rows.begin(), rows.end(),
                                        [](const IngestRow& row) { return row.what.kind == IngestKind::seek_write; });
    for (const IngestRow& row : rows) {
      add_results(row, rows.front());
      if (bare_loop != rows.end() && row.what.kind == IngestKind::store && row.what.store.engine->name == "file")
        bench_.results.add(subject_of(row), "ratio_to_seek_write", "1", ratios(row, *bare_loop));
    }
    bench_.tables += table_of(rows).text() + "\n";
  }

  [[nodiscard]] Subject subject_of(const IngestRow& row) const {
    const Settings& s = bench_.settings;
    Subject subject{.suite = "ingest", .workload = row.what.workload()};
    subject.store = row.what.store.name;
    subject.durability = row.what.durability;
    if (!row.runs.empty()) subject.level = row.runs.front().level;
    subject.params["messages"] = s.messages;
    if (row.what.kind == IngestKind::seek_write) return subject;
    subject.params["batch"] = row.what.batch;
    subject.params["interval_us"] = s.interval_us;
    return subject;
  }

  void add_results(const IngestRow& row, const IngestRow& limit) {
    const Subject subject = subject_of(row);
    if (!row.failure.empty()) {
      bench_.results.add_failure(subject, "messages_per_second", "1/s", row.failure);
      return;
    }
    for (const Metric& metric : kMetrics)
      bench_.results.add(subject, std::string(metric.name), std::string(metric.unit), row.values(metric.of));
    bench_.results.add(subject, "ratio_to_discard", "1", ratios(row, limit));
  }

  [[nodiscard]] Table table_of(std::span<const IngestRow> rows) const {
    const Settings& s = bench_.settings;
    Table table(fmt::format("ingest: {} lines, {} a send, feed on CPU {}, ingestion on CPU {}, median of {}",
                            format_grouped(s.messages), rows.front().what.batch, bench_.placement.feed,
                            bench_.placement.ingest, rows.front().runs.size()),
                {"store", "asked", "level", "M/s", "ratio", "+-%", "wall s", "user s", "sys s", "CPU%", "ns/msg", "RSS",
                 "anon", "vol.sw", "inv.sw"},
                3);
    for (const IngestRow& row : rows) {
      if (row.failure.empty())
        table.add(cells_of(row, rows.front()));
      else
        table.note(row.what.text() + " failed: " + row.failure);
    }
    add_notes(table, rows);
    return table;
  }

  static std::vector<std::string> cells_of(const IngestRow& row, const IngestRow& limit) {
    const auto figure = [&](double (*of)(const IngestMeasurement&)) { return median(row.values(of)); };
    const auto metric = [&](std::string_view name) {
      const auto* found = std::find_if(std::begin(kMetrics), std::end(kMetrics),
                                       [&](const Metric& candidate) { return candidate.name == name; });
      return figure(found->of);
    };
    constexpr double kMiB = 1 << 20;
    return {
        row.what.kind == IngestKind::store ? row.what.store.name : row.what.workload(),
        row.what.durability.empty() ? "-" : row.what.durability,
        row.runs.front().level.empty() ? "-" : row.runs.front().level,
        fmt::format("{:.3f}", metric("messages_per_second") / 1e6),
        fmt::format("{:.3f}", median(ratios(row, limit))),
        fmt::format("{:.0f}", spread(row.values(kMetrics[0].of)) * 50),
        fmt::format("{:.3f}", metric("wall")),
        fmt::format("{:.3f}", metric("user")),
        fmt::format("{:.3f}", metric("system")),
        fmt::format("{:.0f}", metric("cpu_share") * 100),
        fmt::format("{:.1f}", metric("cpu_per_message")),
        fmt::format("{:.0f}", metric("rss_max") / kMiB),
        fmt::format("{:.0f}", metric("rss_anon_max") / kMiB),
        fmt::format("{:.0f}", metric("voluntary_switches")),
        fmt::format("{:.0f}", metric("involuntary_switches")),
    };
  }

  static void add_notes(Table& table, std::span<const IngestRow> rows) {
    table.note("discard receives and counts lines only: the machine's limit. ratio: to discard in the same repeat.");
    table.note("wall: from accept to the last commit. user, sys, switches: the whole process. CPU%, ns/msg: since");
    table.note("it was ready. RSS, anon: the most, in MiB. +-%: half the range. Counts are checked in each run, and");
    table.note("what is on disk is read back and compared, record by record.");
    for (const IngestRow& row : rows) {
      if (row.what.kind == IngestKind::seek_write)
        table.note(
            "seek_write: a bare loop of lseek and write of 64 bytes, without a feed: what file is held against.");
    }
  }

  Bench& bench_;
  IngestSetup setup_;
  std::vector<IngestRow> rows_;
  std::uint64_t runs_done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

/// What a store needs for a line of a run, at most (slots, indexes, logs and their copies), and beside the lines.
Needs ingest_needs(const Settings& settings) {
  constexpr std::uint64_t kDiskBytesPerMessage = 450;  // With the lines of two formats.
  constexpr std::uint64_t kDiskBytesBeside = std::uint64_t{256} << 20;
  return {.disk_bytes = kDiskBytesBeside + settings.messages * kDiskBytesPerMessage};
}

Result<void> run_ingest_suite(Bench& bench) {
  return IngestSuite(bench)();
}

}  // namespace kvingest::bench
