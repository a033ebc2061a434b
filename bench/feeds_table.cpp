#include "bench/feeds_table.hpp"

#include <algorithm>
#include <cstdio>
#include <random>

#include "base/interrupt.hpp"
#include "base/quantity.hpp"
#include "bench/ingest_run.hpp"
#include "bench/probe.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

constexpr std::string_view kStores[] = {"null", "mmap", "lmdb"};
constexpr std::uint64_t kConnections[] = {1, 16, 256};
constexpr std::uint64_t kConnectionsFactor = 2;  // As many times the lines, so that connecting is a small part.
constexpr std::uint64_t kOpenLoopFactor = 4;     // At half the rate: eight times as long as a run at the full one.
constexpr std::uint64_t kSyncsMax = 300;         // Before and behind each open loop; fewer in short runs,
constexpr std::uint64_t kSyncsMin = 50;          // since on a busy disk each takes as long as a loop of those.
constexpr std::uint64_t kMessagesASync = 2'000;
constexpr std::size_t kSyncBytes = 4096;

/// A row, and the one it is held against.
struct FeedRow {
  IngestCase what;
  std::string base = {};    ///< Its name, of the same store; empty: it is one itself.
  std::string metric = {};  ///< What the ratio to it is called.
  double wanted = 0;        ///< The least ratio that is aimed at; 0: none.
  std::vector<IngestMeasurement> runs = {};
  std::string failure = {};
};

/// One run of an open loop, and what syncs took around it.
struct OpenLoopRun {
  IngestMeasurement measured;
  double sync_p99_us = 0;
};

struct OpenLoopRow {
  IngestCase what;
  std::vector<OpenLoopRun> runs = {};
  std::string failure = {};
};

bool takes_part(const Contender& store) {
  return std::find(std::begin(kStores), std::end(kStores), store.engine->name) != std::end(kStores);
}

std::vector<double> rates(const FeedRow& row) {
  std::vector<double> all;
  for (const IngestMeasurement& run : row.runs) all.push_back(run.rate);
  return all;
}

std::vector<double> ns_per_message(const FeedRow& row) {
  std::vector<double> all;
  for (const IngestMeasurement& run : row.runs) all.push_back(run.cpu_share / run.rate * 1e9);
  return all;
}

class FeedsTable {
 public:
  explicit FeedsTable(Bench& bench) : bench_(bench), setup_{bench.settings, bench.placement, bench.programs} {}

  Result<void> operator()() {
    if (std::none_of(bench_.stores.begin(), bench_.stores.end(), takes_part)) return {};
    auto trades = write_trades(bench_.work_dir, bench_.settings.messages, bench_.settings.seed);
    KV_TRY(trades);
    trades_ = *std::move(trades);
    plan();
    KV_TRY(run_rows());
    for (const FeedRow& row : rows_) add_results(row);
    for (const FeedRow& row : rows_) {
      if (row.what.name == "source" && row.failure.empty()) KV_TRY(run_open_loop(row));
    }
    bench_.tables += feeds_table().text() + "\n";
    if (!open_loops_.empty()) bench_.tables += open_loop_table().text() + "\n";
    return {};
  }

 private:
  void plan() {
    for (const Contender& store : bench_.stores) {
      if (!takes_part(store)) continue;
      const std::string level = store.engine->persistent ? bench_.settings.durability.value_or("disk") : "memory";
      const bool floor = !store.engine->persistent;  // Where parsing is all there is to do.
      const IngestCase base{.store = store, .durability = level, .batch = bench_.settings.batch};
      const auto add = [&](std::string name, auto change, std::string held_against = {}, std::string metric = {},
                           double wanted = 0) {
        FeedRow row{base, std::move(held_against), std::move(metric), wanted};
        row.what.name = std::move(name);
        change(row.what);
        rows_.push_back(std::move(row));
      };
      add("csv_lines", [this](IngestCase& what) { what.file = &trades_.csv; });
      add(
          "csv", [this](IngestCase& what) { what.file = &trades_.csv, what.format = "csv"; }, "csv_lines",
          "ratio_to_line", floor ? 0.5 : 0);
      add("json_lines", [this](IngestCase& what) { what.file = &trades_.json; });
      add(
          "json", [this](IngestCase& what) { what.file = &trades_.json, what.format = "json"; }, "json_lines",
          "ratio_to_line", floor ? 0.3 : 0);
      if (floor) continue;
      add("source", [](IngestCase& what) { what.ack = "none"; });
      add(
          "ack_10ms", [](IngestCase& what) { what.ack = "10ms"; }, "source", "ratio_to_source", 0.97);
      for (const std::uint64_t connections : kConnections) {
        const auto spread = [&](IngestCase& what) {
          what.connections = connections;
          what.messages = bench_.settings.messages * kConnectionsFactor;
        };
        const bool one = connections == 1;
        add(fmt::format("connections_{}", connections), spread, one ? "" : "connections_1",
            one ? "" : "ratio_to_one_connection", connections == 256 ? 0.8 : 0);
      }
    }
  }

  Result<void> run_rows() {
    std::mt19937_64 random(bench_.settings.seed);
    std::vector<std::size_t> order(rows_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        FeedRow& row = rows_[i];
        if (!row.failure.empty()) continue;
        auto measured = run_once(row.what);
        if (measured)
          row.runs.push_back(*std::move(measured));
        else if (interrupted())
          return tl::unexpected<Error>(measured.error());
        else
          row.failure = measured.error().text;
      }
    }
    return {};
  }

  Result<IngestMeasurement> run_once(const IngestCase& what) {
    const std::filesystem::path dir = bench_.work_dir / "run";
    std::error_code error;
    std::filesystem::create_directory(dir, error);
    if (error) return fail(error.value(), "create {}", dir.native());
    auto measured = run_ingest(setup_, what, dir);
    std::filesystem::remove_all(dir, error);  // Before the next run, so that it does not pay for writing this back.
    if (error) return fail(error.value(), "remove {}", dir.native());
    if (!bench_.settings.quiet) {
      fmt::print(stderr, "{}: {}\n", what.text(),
                 measured ? fmt::format("{:.2f} M/s", measured->rate / 1e6) : "failed: " + measured.error().text);
    }
    return measured;
  }

  /// Half of what `saturated` gave, sent at that rate whatever the service does.
  Result<void> run_open_loop(const FeedRow& saturated) {
    OpenLoopRow row{saturated.what};
    row.what.name = "open_loop";
    row.what.ack = "0ms";
    row.what.rate = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(median(rates(saturated)) / 2));
    row.what.messages = bench_.settings.messages * kOpenLoopFactor;
    const auto syncs = static_cast<int>(std::clamp(bench_.settings.messages / kMessagesASync, kSyncsMin, kSyncsMax));
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat && row.failure.empty(); ++repeat) {
      auto sync_us = measure_syncs(bench_.work_dir / "sync.tmp", kSyncBytes, syncs);
      KV_TRY(sync_us);
      auto measured = run_once(row.what);
      auto behind_us = measure_syncs(bench_.work_dir / "sync.tmp", kSyncBytes, syncs);
      KV_TRY(behind_us);
      if (!measured && interrupted()) return tl::unexpected<Error>(measured.error());
      if (!measured) {
        row.failure = measured.error().text;
        break;
      }
      sync_us->insert(sync_us->end(), behind_us->begin(), behind_us->end());
      std::sort(sync_us->begin(), sync_us->end());
      row.runs.push_back({*std::move(measured), (*sync_us)[sync_us->size() * 99 / 100 - 1]});
    }
    add_results(row);
    open_loops_.push_back(std::move(row));
    return {};
  }

  [[nodiscard]] const FeedRow* base_of(const FeedRow& row) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&row](const FeedRow& other) {
      return other.what.name == row.base && other.what.store.name == row.what.store.name;
    });
    return found == rows_.end() ? nullptr : &*found;
  }

  /// Formed within a repeat: both then had the machine in the same mood.
  [[nodiscard]] std::vector<double> ratios(const FeedRow& row) const {
    const FeedRow* base = base_of(row);
    std::vector<double> all;
    for (std::size_t i = 0; base != nullptr && i < std::min(row.runs.size(), base->runs.size()); ++i)
      all.push_back(row.runs[i].rate / base->runs[i].rate);
    return all;
  }

  [[nodiscard]] Subject subject_of(const IngestCase& what, std::string_view level) const {
    Subject subject{.suite = "ingest", .workload = what.workload()};
    subject.store = what.store.name;
    subject.durability = what.durability;
    subject.level = level;
    subject.params["messages"] = what.messages != 0 ? what.messages : bench_.settings.messages;
    subject.params["batch"] = what.batch;
    if (what.connections > 1) subject.params["connections"] = what.connections;
    if (what.rate > 0) subject.params["rate"] = what.rate;
    return subject;
  }

  void add_results(const FeedRow& row) {
    const Subject subject = subject_of(row.what, row.runs.empty() ? "" : row.runs.front().level);
    if (!row.failure.empty()) {
      bench_.results.add_failure(subject, "messages_per_second", "1/s", row.failure);
      return;
    }
    bench_.results.add(subject, "messages_per_second", "1/s", rates(row));
    bench_.results.add(subject, "cpu_per_message", "ns", ns_per_message(row));
    if (!row.base.empty()) bench_.results.add(subject, row.metric, "1", ratios(row));
  }

  void add_results(const OpenLoopRow& row) {
    const Subject subject = subject_of(row.what, row.runs.empty() ? "" : row.runs.front().measured.level);
    if (!row.failure.empty()) {
      bench_.results.add_failure(subject, "send_to_durable_p99", "us", row.failure);
      return;
    }
    for (const auto& [name, unit, of] : kOpenLoopMetrics) {
      std::vector<double> values;
      for (const OpenLoopRun& run : row.runs) values.push_back(of(run));
      bench_.results.add(subject, name, unit, std::move(values));
    }
  }

  [[nodiscard]] Table feeds_table() const {
    Table table(fmt::format("ingest, feeds: {} lines, median of {}", format_grouped(bench_.settings.messages),
                            bench_.settings.repeat),
                {"store", "level", "feed", "M/s", "+-%", "CPU%", "ns/msg", "ratio", "aim", "to"}, 3);
    for (const FeedRow& row : rows_) {
      if (!row.failure.empty()) {
        table.note(row.what.text() + " failed: " + row.failure);
        continue;
      }
      std::vector<double> shares;
      for (const IngestMeasurement& run : row.runs) shares.push_back(run.cpu_share * 100);
      table.add({row.what.store.name, row.runs.front().level, row.what.name,
                 fmt::format("{:.3f}", median(rates(row)) / 1e6), fmt::format("{:.0f}", spread(rates(row)) * 50),
                 fmt::format("{:.0f}", median(shares)), fmt::format("{:.1f}", median(ns_per_message(row))),
                 row.base.empty() ? "-" : fmt::format("{:.3f}", median(ratios(row))),
                 row.wanted > 0 ? fmt::format("{:.2f}", row.wanted) : "-", row.base.empty() ? "-" : row.base});
    }
    table.note("csv, json: trades, parsed and stored under {symbol}/{ts}; csv_lines, json_lines: the same bytes as");
    table.note("plain lines. source: a named source that is told nothing until its end; ack_10ms: told every 10 ms.");
    table.note("connections_N: numbered lines over N connections. ratio: to the row in the last column, in the same");
    table.note("repeat; aim: the least that it should be. All records are read back and compared.");
    return table;
  }

  [[nodiscard]] Table open_loop_table() const {
    Table table(
        fmt::format("ingest, open loop at half of source's rate: us from intended send to durable, median of {}",
                    bench_.settings.repeat),
        {"store", "level", "lines/s", "p50", "p99", "p99.9", "sync p99", "ratio", "aim"}, 2);
    for (const OpenLoopRow& row : open_loops_) {
      if (!row.failure.empty()) {
        table.note(row.what.text() + " failed: " + row.failure);
        continue;
      }
      const auto figure = [&row](double (*of)(const OpenLoopRun&)) {
        std::vector<double> values;
        for (const OpenLoopRun& run : row.runs) values.push_back(of(run));
        return median(std::move(values));
      };
      table.add(
          {row.what.store.name, row.runs.front().measured.level, format_grouped(row.what.rate),
           fmt::format("{:.0f}", figure(kOpenLoopMetrics[0].of)), fmt::format("{:.0f}", figure(kOpenLoopMetrics[1].of)),
           fmt::format("{:.0f}", figure(kOpenLoopMetrics[2].of)), fmt::format("{:.0f}", figure(kOpenLoopMetrics[3].of)),
           fmt::format("{:.2f}", figure(kOpenLoopMetrics[4].of)), "<4"});
    }
    table.note("sync p99: the 99th percentile of a 4 KiB write with fdatasync, measured before and behind each run.");
    table.note("ratio: of the two 99th percentiles.");
    return table;
  }

  struct OpenLoopMetric {
    const char* name;
    const char* unit;
    double (*of)(const OpenLoopRun&);
  };
  static constexpr OpenLoopMetric kOpenLoopMetrics[] = {
      {"send_to_durable_p50", "us", [](const OpenLoopRun& run) { return run.measured.latency.p50_us; }},
      {"send_to_durable_p99", "us", [](const OpenLoopRun& run) { return run.measured.latency.p99_us; }},
      {"send_to_durable_p999", "us", [](const OpenLoopRun& run) { return run.measured.latency.p999_us; }},
      {"sync_4k_p99", "us", [](const OpenLoopRun& run) { return run.sync_p99_us; }},
      {"p99_to_sync_p99", "1", [](const OpenLoopRun& run) { return run.measured.latency.p99_us / run.sync_p99_us; }},
  };

  Bench& bench_;
  IngestSetup setup_;
  Trades trades_;
  std::vector<FeedRow> rows_;
  std::vector<OpenLoopRow> open_loops_;
};

}  // namespace

Result<void> run_feeds_table(Bench& bench) {
  return FeedsTable(bench)();
}

}  // namespace kvingest::bench
