// The ycsb suite: the workloads A to F on every store. As fast as it goes (closed loop); then at half of that rate, and
// workload A at several shares of it, whatever the store does (open loop), where a time counts from the moment an
// operation was due; and workload A for some seconds on end.
//
// Operations are made beforehand, the same for every store; a store that answers wrongly is not shown.
#include <algorithm>
#include <numeric>
#include <random>

#include "base/interrupt.hpp"
#include "bench/statistics.hpp"
#include "bench/suite.hpp"
#include "bench/table.hpp"
#include "bench/ycsb_redis.hpp"
#include "bench/ycsb_run.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kUsualYcsbRecords = 100'000;
/// An open loop is given no more operations than fill so long.
constexpr double kOpenSeconds = 1;
constexpr std::size_t kOpenOpsMin = 50;
constexpr int kUsualLoad = 50;                            ///< Of the rate of the closed loop, in percent.
constexpr int kLoads[] = {10, 25, 50, 75, 90, 110, 150};  ///< Of workload A.
constexpr double kSlicesOfSteady = 50;

struct YcsbShare {
  const char* name;
  double share;
};
constexpr YcsbShare kShares[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};

/// A workload on a store, in a closed loop or at a share of its rate.
struct YcsbRow {
  const YcsbWorkload* workload = nullptr;
  int load = 0;                    ///< In percent; 0: closed.
  std::vector<YcsbRun> runs = {};  ///< One for each repeat.
  std::vector<double> rates = {};  ///< Operations a second, of the same.

  template <class Figure>
  [[nodiscard]] double figure(Figure&& of) const {
    std::vector<double> all;
    for (const YcsbRun& run : runs) all.push_back(static_cast<double>(of(run)));
    return median(std::move(all));
  }
};

/// A store that takes part.
struct YcsbContender {
  std::string name;
  std::string durability;  ///< As asked for.
  std::unique_ptr<YcsbRunner> runner = {};
  std::vector<YcsbRow> rows = {};
  std::vector<std::string> left_out = {};  ///< Workloads that it cannot do, with the reason.
  std::string failure = {};
};

class YcsbSuite {
 public:
  explicit YcsbSuite(Bench& bench)
      : bench_(bench), records_(std::max<std::uint64_t>(bench.sizes({kUsualYcsbRecords}).front(), 2 * kYcsbScanMax)) {}

  Result<void> operator()() {
    auto done = run();
    // Also behind a failure: a server must not keep our records.
    for (const YcsbContender& one : contenders_) {
      if (const auto closed = one.runner->close(); !closed && done) return fail(closed.error(), "close {}", one.name);
    }
    return done;
  }

 private:
  // ---- Running it -------------------------------------------------------------------------------------------------

  Result<void> run() {
    KV_TRY(open_all());
    if (contenders_.empty())
      return fail(Code::invalid_argument, "ycsb: nothing to run: null, which has no answers to check, takes no part");
    KV_TRY(run_closed());
    KV_TRY(run_open());
    KV_TRY(run_steady());
    for (YcsbContender& one : contenders_) {
      if (!one.failure.empty()) continue;
      if (const auto right = one.runner->check(); !right) one.failure = "its records are wrong: " + right.error().text;
    }
    for (const YcsbContender& one : contenders_) add_results(one);
    std::vector<std::string> levels;
    for (const YcsbContender& one : contenders_) {
      if (std::find(levels.begin(), levels.end(), one.durability) == levels.end()) levels.push_back(one.durability);
    }
    for (const std::string& level : levels) report(level);
    return {};
  }

  Result<void> open_all() {
    const Durability asked = durability_named(bench_.settings.durability.value_or("kernel"));
    for (const Contender& store : bench_.stores) {
      if (store.engine->name == "null") continue;
      const Durability level = store.engine->persistent ? asked : Durability::memory;
      YcsbContender one{.name = store.name, .durability = std::string(to_string(level))};
      auto target = open_ycsb_store(store.name, bench_.work_dir / fmt::format("ycsb{}", contenders_.size()), level);
      KV_TRY(target);
      one.runner = std::make_unique<YcsbRunner>(*std::move(target));
      contenders_.push_back(std::move(one));
    }
    if (!bench_.settings.external.empty()) KV_TRY(open_external());
    for (YcsbContender& one : contenders_) {
      progress("load", one.name);
      const auto loaded = one.runner->load(records_);
      if (interrupted()) return fail(Code::io_error, "interrupted");
      if (!loaded) {
        one.failure = "loading: " + loaded.error().text;
        continue;
      }
      const double ns = loaded->first * 1e9 / static_cast<double>(records_);
      const Subject subject = subject_of(one, "load");
      bench_.results.add(subject, "ns_per_record", "ns", {ns});
      bench_.results.add(subject, "settled_after", "s", {loaded->second});
    }
    return {};
  }

  Result<void> open_external() {
    auto address = parse_external(bench_.settings.external);
    KV_TRY(address);
    auto target = open_ycsb_redis(*address);
    KV_TRY(target);
    YcsbContender one{.name = bench_.settings.external, .durability = "server"};
    one.runner = std::make_unique<YcsbRunner>(*std::move(target));
    contenders_.push_back(std::move(one));
    return {};
  }

  /// Calls `run` for each store, in another order each time.
  template <class Run>
  Result<void> for_each_store(Run&& run) {
    std::vector<std::size_t> order(contenders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::size_t i : order) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      YcsbContender& one = contenders_[i];
      if (!one.failure.empty()) continue;
      if (const Result<void> done = run(one); !done) one.failure = done.error().text;
    }
    return {};
  }

  static bool can_run(const YcsbContender& one, const YcsbWorkload& workload) {
    return workload.usual != YcsbKind::scan || one.runner->target().is_ordered();
  }

  static YcsbRow& row_of(YcsbContender& one, const YcsbWorkload& workload, int load) {
    for (YcsbRow& row : one.rows) {
      if (row.workload == &workload && row.load == load) return row;
    }
    return one.rows.emplace_back(YcsbRow{.workload = &workload, .load = load});
  }

  Result<void> run_closed() {
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      for (const YcsbWorkload& workload : ycsb_workloads()) {
        progress(fmt::format("repeat {} of {}", repeat + 1, bench_.settings.repeat), std::string(1, workload.name));
        std::uint64_t digest = 0;
        KV_TRY(for_each_store([&](YcsbContender& one) { return run_closed_once(one, workload, repeat, digest); }));
      }
    }
    return {};
  }

  /// What is not ordered leaves out E and its inserts; all others hold the same records and do the same, as `digest`
  /// says of those before this one.
  Result<void> run_closed_once(YcsbContender& one, const YcsbWorkload& workload, std::uint64_t repeat,
                               std::uint64_t& digest) {
    if (!can_run(one, workload)) return {};
    const std::vector<YcsbOp> ops =
        make_ycsb_ops(workload, one.runner->records(), bench_.settings.operations, seed(repeat));
    if (one.runner->target().is_ordered()) {
      if (digest != 0 && digest != digest_of(ops)) return fail(Code::failed, "its operations are not the others'");
      digest = digest_of(ops);
    }
    auto run = one.runner->run_closed(ops);
    KV_TRY(run);
    keep(row_of(one, workload, 0), *std::move(run));
    return {};
  }

  Result<void> run_open() {
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      for (const YcsbWorkload& workload : ycsb_workloads()) {
        for (const int load : kLoads) {
          if (load != kUsualLoad && workload.name != 'A') continue;
          progress(fmt::format("open loop, repeat {} of {}", repeat + 1, bench_.settings.repeat),
                   fmt::format("{} at {} %", workload.name, load));
          KV_TRY(for_each_store([&](YcsbContender& one) { return run_at(one, workload, load, repeat); }));
        }
      }
    }
    return {};
  }

  Result<void> run_at(YcsbContender& one, const YcsbWorkload& workload, int load, std::uint64_t repeat) {
    if (!can_run(one, workload)) return {};
    const double rate = median(row_of(one, workload, 0).rates) * load / 100;
    const auto fitting = static_cast<std::size_t>(rate * kOpenSeconds);
    const std::size_t count = std::min<std::size_t>(bench_.settings.operations, std::max(kOpenOpsMin, fitting));
    auto run = one.runner->run_open(make_ycsb_ops(workload, one.runner->records(), count, ~seed(repeat)), rate);
    KV_TRY(run);
    keep(row_of(one, workload, load), *std::move(run));
    return {};
  }

  Result<void> run_steady() {
    const double seconds = std::chrono::duration<double>(bench_.settings.steady).count();
    if (seconds <= 0 || bench_.deadline_passed()) return {};
    const double slice = seconds >= kSlicesOfSteady ? 1 : seconds / kSlicesOfSteady;
    const YcsbWorkload& workload = ycsb_workloads().front();
    return for_each_store([&](YcsbContender& one) -> Result<void> {
      progress("steady", fmt::format("{} on {}", workload.name, one.name));
      auto slices = one.runner->run_steady(workload, seconds, slice, seed(0));
      KV_TRY(slices);
      Series series = series_of(one, workload, one.name, "operations by time");
      series.subject.workload = "steady A";
      series.x = "seconds";
      series.y = "operations a second";
      for (std::size_t i = 0; i < slices->size(); ++i)
        series.points.emplace_back((static_cast<double>(i) + 0.5) * slice, (*slices)[i]);
      bench_.results.series.push_back(std::move(series));
      bench_.results.add(subject_of(one, "steady A"), "ns_per_op", "ns", {1e9 / std::max(median(*slices), 1e-9)});
      return {};
    });
  }

  static void keep(YcsbRow& row, YcsbRun run) {
    const std::uint64_t count = run.service.count();
    row.rates.push_back(static_cast<double>(count) / run.seconds);
    row.runs.push_back(std::move(run));
  }

  [[nodiscard]] std::uint64_t seed(std::uint64_t repeat) const { return bench_.settings.seed * 1'000 + repeat; }

  void progress(const std::string& what, const std::string& which) const {
    if (!bench_.settings.quiet) fmt::print(stderr, "ycsb: {}: {}\n", what, which);
  }

  // ---- What came out ----------------------------------------------------------------------------------------------

  [[nodiscard]] Subject subject_of(const YcsbContender& one, const std::string& workload) const {
    Subject subject{.suite = "ycsb", .workload = workload, .store = one.name, .durability = one.durability};
    subject.level = one.runner->target().level();
    subject.params = {{"records", records_}};
    subject.variant = one.name;
    return subject;
  }

  [[nodiscard]] Series series_of(const YcsbContender& one, const YcsbWorkload& workload, std::string line,
                                 const std::string& what) const {
    Series series{.subject = subject_of(one, fmt::format("{}, {}", workload.name, what))};
    series.picture = fmt::format("ycsb: {} at {}: {}", workload.name, one.durability, what);
    series.line = std::move(line);
    return series;
  }

  void add_results(const YcsbContender& one) {
    if (!one.failure.empty()) {
      bench_.results.add_failure(subject_of(one, "all"), "ns_per_op", "ns", one.failure);
      return;
    }
    for (const YcsbWorkload& workload : ycsb_workloads()) {
      if (!can_run(one, workload))
        bench_.results.add_missing(subject_of(one, std::string(1, workload.name)), "ns_per_op", "ns",
                                   "it is not ordered");
    }
    for (const YcsbRow& row : one.rows) {
      add_row(one, row);
      if (row.load == 0) add_spectrum(one, row);
    }
    add_loads(one);
  }

  void add_row(const YcsbContender& one, const YcsbRow& row) {
    Subject subject = subject_of(one, fmt::format("{}{}", row.workload->name, row.load == 0 ? "" : " open loop"));
    if (row.load != 0) subject.params["offered_percent"] = static_cast<std::uint64_t>(row.load);
    std::vector<double> ns;
    std::vector<double> cpu;
    for (std::size_t i = 0; i < row.runs.size(); ++i) {
      ns.push_back(1e9 / row.rates[i]);
      cpu.push_back(row.runs[i].cpu_seconds * 1e9 / static_cast<double>(row.runs[i].service.count()));
    }
    if (row.load == 0) {
      bench_.results.add(subject, "ns_per_op", "ns", ns);
      bench_.results.add(subject, "cpu_per_op", "ns", cpu);
      std::vector<double> at_once;
      for (const YcsbRun& run : row.runs) at_once.push_back(static_cast<double>(run.at_once));
      bench_.results.add(subject, "timed_together", "1", std::move(at_once));
    }
    for (const YcsbShare& share : kShares) {
      std::vector<double> service;
      std::vector<double> response;
      for (const YcsbRun& run : row.runs) {
        service.push_back(static_cast<double>(run.service.at(share.share)));
        response.push_back(static_cast<double>(run.response.at(share.share)));
      }
      bench_.results.add(subject, fmt::format("service_{}", share.name), "ns", std::move(service));
      if (row.load != 0) bench_.results.add(subject, fmt::format("response_{}", share.name), "ns", std::move(response));
    }
  }

  void add_spectrum(const YcsbContender& one, const YcsbRow& row) {
    LatencyHistogram all;
    for (const YcsbRun& run : row.runs) all.merge(run.service);
    Series series = series_of(one, *row.workload, one.name, "service time by percentile, closed loop");
    series.x = "1 / (1 - share): 100 is the 99th percentile";
    series.y = "nanoseconds";
    series.log_x = series.log_y = true;
    series.points = all.spectrum();
    bench_.results.series.push_back(std::move(series));
  }

  /// Offered load against latency: both times, so that the wait in front of the store is seen.
  void add_loads(const YcsbContender& one) {
    for (const bool responds : {true, false}) {
      Series series = series_of(one, ycsb_workloads().front(), one.name + (responds ? " response" : " service"),
                                "offered load against the 99th percentile");
      series.x = "offered load, percent of the rate of the closed loop";
      series.y = "nanoseconds";
      series.log_y = true;
      for (const YcsbRow& row : one.rows) {
        if (row.load == 0 || row.workload->name != 'A') continue;
        series.points.emplace_back(row.load, row.figure([&](const YcsbRun& run) {
          return responds ? run.response.at(0.99) : run.service.at(0.99);
        }));
      }
      if (!series.points.empty()) bench_.results.series.push_back(std::move(series));
    }
  }

  static std::string us(double ns) { return fmt::format("{:.2f}", ns / 1e3); }

  void report(const std::string& durability) {
    Table closed(fmt::format("ycsb at {}: closed loop, {} records, {} operations, median of {}", durability, records_,
                             bench_.settings.operations, bench_.settings.repeat),
                 {"", "store", "level", "kop/s", "+-%", "p50 us", "p99", "p99.9", "p99.99", "max", "CPU us", "timed"},
                 3);
    Table open("ycsb at " + durability + ": open loop, service and response time, us",
               {"", "store", "load%", "p50", "p99", "p99.9", "resp. p50", "p99", "p99.9", "max"}, 2);
    for (const YcsbWorkload& workload : ycsb_workloads()) {
      for (const YcsbContender& one : contenders_) {
        if (one.durability != durability || !one.failure.empty()) continue;
        for (const YcsbRow& row : one.rows) {
          if (row.workload != &workload) continue;
          row.load == 0 ? closed.add(closed_cells(one, row)) : open.add(open_cells(one, row));
        }
      }
    }
    for (const YcsbContender& one : contenders_) {
      if (one.durability == durability && !one.failure.empty()) closed.note(one.name + " failed: " + one.failure);
    }
    for (const YcsbWorkload& workload : ycsb_workloads())
      closed.note(fmt::format("{}: {}", workload.name, workload.mix));
    closed.note(fmt::format("Keys of 24 bytes, values of {}, zipfian {}; one thread; a write is a batch of one record.",
                            kYcsbValueBytes, kYcsbExponent));
    closed.note("Every answer is compared with the last put. timed: so many operations between two readings of the");
    closed.note("clock, where one takes less than a microsecond; percentiles are then those of their means. CPU: of");
    closed.note("all threads. E needs an order of keys. D and E insert, the same records into every store.");
    if (durability == "server")
      closed.note("A server: each operation is a round trip, and what it survives is its own affair. Not comparable.");
    open.note("load: of the rate of the closed loop. Service time: from the call to its return. Response time: from");
    open.note("the moment the operation was due, so a slow one makes those behind it late, too.");
    bench_.tables += closed.text() + "\n" + open.text() + "\n";
  }

  static std::vector<std::string> closed_cells(const YcsbContender& one, const YcsbRow& row) {
    const auto at = [&](double share) {
      return us(row.figure([&](const YcsbRun& run) { return run.service.at(share); }));
    };
    return {std::string(1, row.workload->name),
            one.name,
            std::string(one.runner->target().level()),
            fmt::format("{:.1f}", median(row.rates) / 1e3),
            fmt::format("{:.0f}", spread(row.rates) * 50),
            at(0.5),
            at(0.99),
            at(0.999),
            at(0.9999),
            us(row.figure([](const YcsbRun& run) { return run.service.most(); })),
            us(row.figure(
                [](const YcsbRun& run) { return run.cpu_seconds * 1e9 / static_cast<double>(run.service.count()); })),
            fmt::format("{}", row.runs.front().at_once)};
  }

  static std::vector<std::string> open_cells(const YcsbContender& one, const YcsbRow& row) {
    const auto service = [&](double share) {
      return us(row.figure([&](const YcsbRun& run) { return run.service.at(share); }));
    };
    const auto response = [&](double share) {
      return us(row.figure([&](const YcsbRun& run) { return run.response.at(share); }));
    };
    return {std::string(1, row.workload->name),
            one.name,
            std::to_string(row.load),
            service(0.5),
            service(0.99),
            service(0.999),
            response(0.5),
            response(0.99),
            response(0.999),
            us(row.figure([](const YcsbRun& run) { return run.response.most(); }))};
  }

  Bench& bench_;
  const std::uint64_t records_;
  std::vector<YcsbContender> contenders_;
  std::mt19937_64 random_{bench_.settings.seed};
};

}  // namespace

Needs ycsb_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerRecord = 1'200;
  constexpr std::uint64_t kStores = 6;
  constexpr std::uint64_t kWrites = 60;  // Runs that may write half of their operations, before space is given back.
  constexpr std::uint64_t kBesideBytes = std::uint64_t{1} << 30;
  const std::uint64_t records = settings.items.value_or(kUsualYcsbRecords);
  const std::uint64_t bytes = records * kBytesPerRecord * kStores;
  const std::uint64_t written = settings.operations * settings.repeat * kWrites * kBytesPerRecord / 10;
  return {.disk_bytes = 2 * bytes + written + kBesideBytes, .memory_bytes = 2 * bytes};
}

Result<void> run_ycsb_suite(Bench& bench) {
  return YcsbSuite(bench)();
}

}  // namespace kvingest::bench
