// The stores suite: the engines beside what bounds them. Each engine of others beside a loop on its own interface; mmap
// beside LMDB, and beside writing and syncing plain files; file beside one seek and one write for each record. What was
// aimed at stands beside each ratio.
//
// The repeats of all runs take turns in a random order; a ratio is formed within a repeat.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>

#include "base/interrupt.hpp"
#include "bench/statistics.hpp"
#include "bench/stores_run.hpp"
#include "bench/suite.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUsualRecords = 2'000'000;
constexpr std::size_t kSyncedGroup = 10'000;
constexpr KeyOrder kOrders[] = {KeyOrder::sequential, KeyOrder::series, KeyOrder::random};

/// Something that is run once in each repeat.
struct Job {
  Subject subject;
  std::function<Result<Figures>(const fs::path& dir, bool first)> run;
  std::vector<Figures> repeats = {};
  std::string failure = {};

  [[nodiscard]] std::vector<double> values(const std::string& figure) const {
    std::vector<double> all;
    for (const Figures& one : repeats) {
      if (const auto found = one.find(figure); found != one.end()) all.push_back(found->second);
    }
    return all;
  }
};

/// A row of a table: a ratio, and what was aimed at.
struct Aim {
  std::string what;
  std::string ours;  ///< The two figures, as text.
  std::string other;
  std::vector<double> ratios;
  std::optional<double> wanted;
  bool at_most = false;
};

class StoresSuite {
 public:
  explicit StoresSuite(Bench& bench) : bench_(bench), records_(bench.sizes({kUsualRecords}).front()) {}

  Result<void> operator()() {
    plan();
    if (jobs_.empty()) {
      return fail(Code::invalid_argument,
                  "stores: nothing to run: --store {} has none of file, mmap, lmdb and rocksdb that --part {} measures",
                  bench_.settings.stores, bench_.settings.part);
    }
    KV_TRY(run_all());
    for (const auto& job : jobs_) add_results(*job);
    report();
    return {};
  }

 private:
  [[nodiscard]] bool has(std::string_view part) const {
    return bench_.settings.part == "all" || bench_.settings.part == part;
  }

  /// The store with this engine, as asked for; nothing where it does not take part.
  [[nodiscard]] std::optional<std::string> spec_of(std::string_view engine) const {
    for (const Contender& store : bench_.stores) {
      if (store.engine->name == engine) return store.name;
    }
    return std::nullopt;
  }

  // ---- What is run ------------------------------------------------------------------------------------------------

  void plan() {
    for (const KeyOrder order : kOrders) {
      if (has("engines")) plan_engines(order);
    }
    for (const KeyOrder order : {KeyOrder::sequential, KeyOrder::random}) {
      if (has("sync")) plan_store("sync", "mmap", order, Durability::disk, kSyncedGroup, false);
      if (has("seek")) plan_store("seek", "file", order, Durability::kernel, 1'000, false);
      if (has("open")) plan_opening(order);
    }
    if (has("sync") && spec_of("mmap")) {
      plan_way("sync", {.store = {},
                        .name = "write and sync",
                        .level = Durability::disk,
                        .group = kSyncedGroup,
                        .reads = false,
                        .open = [records = records_](const fs::path& dir) { return open_synced_file(dir, records); }});
    }
    if (has("seek") && spec_of("file"))
      plan_way("seek", {.store = {}, .name = "seek and write", .reads = false, .open = open_seek_file});
    if (has("index")) plan_arrivals();
    if (has("growth")) {
      plan_store("growth", "mmap", KeyOrder::sequential, Durability::kernel, 1'000, false);
      plan_store("growth", "lmdb", KeyOrder::sequential, Durability::kernel, 1'000, false);
    }
    if (has("space")) plan_space();
  }

  void plan_engines(KeyOrder order) {
    for (const std::string_view engine : {"mmap", "lmdb", "rocksdb"})
      plan_store("engines", engine, order, Durability::kernel, 1'000, true);
    const auto itself = [&](std::string_view engine, OpenedTarget (*open)(const fs::path&)) {
      if (!spec_of(engine)) return;
      plan_way("engines",
               {.store = std::string(engine), .name = fmt::format("{} itself", engine), .order = order, .open = open});
    };
    itself("lmdb", open_bare_lmdb);
    itself("rocksdb", open_bare_rocksdb);
  }

  void plan_store(std::string_view part, std::string_view engine, KeyOrder order, Durability level, std::size_t group,
                  bool reads) {
    const auto spec = spec_of(engine);
    if (!spec) return;
    plan_way(part,
             {.store = *spec,
              .name = std::string(engine),
              .order = order,
              .level = level,
              .group = group,
              .reads = reads,
              .open = [spec = *spec, level](const fs::path& dir) { return open_store_target(spec, dir, level); }});
  }

  void plan_way(std::string_view part, StoresWay way) {
    Job& job = add_job(part, way.name, way.order, way.store, way.level);
    job.subject.params["batch"] = way.group;
    job.run = [way = std::move(way), records = records_](const fs::path& dir, bool first) {
      return run_way(way, dir, records, first);
    };
  }

  void plan_arrivals() {
    const auto spec = spec_of("mmap");
    if (!spec) return;
    plan_way("index",
             {.store = *spec, .name = "mmap {seq}", .reads = false, .open = [spec = *spec](const fs::path& dir) {
                return open_store_target(spec, dir, Durability::kernel, true);
              }});
    for (const KeyOrder order : kOrders) plan_store("index", "mmap", order, Durability::kernel, 1'000, false);
  }

  void plan_opening(KeyOrder order) {
    const auto spec = spec_of("mmap");
    if (!spec) return;
    add_job("open", "mmap", order, *spec, Durability::kernel).run = [spec = *spec, order, records = records_](
                                                                        const fs::path& dir, bool) {
      return measure_opening(spec, order, dir, records);
    };
  }

  void plan_space() {
    if (!spec_of("mmap")) return;
    add_job("space", "mmap", KeyOrder::random, "mmap", Durability::kernel).run =
        [records = records_](const fs::path& dir, bool) { return measure_overwriting("mmap", dir, records); };
  }

  Job& add_job(std::string_view part, const std::string& name, KeyOrder order, const std::string& store,
               Durability level) {
    auto job = std::make_unique<Job>();
    job->subject.suite = "stores";
    job->subject.workload = fmt::format("{}, {} keys", part, to_string(order));
    job->subject.store = store;
    job->subject.durability = job->subject.level = to_string(level);
    job->subject.params["records"] = records_;
    job->subject.variant = name;
    jobs_.push_back(std::move(job));
    return *jobs_.back();
  }

  // ---- Running it -------------------------------------------------------------------------------------------------

  Result<void> run_all() {
    std::mt19937_64 random(bench_.settings.seed);
    std::vector<std::size_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) KV_TRY(run_once(*jobs_[i], repeat));
    }
    return {};
  }

  Result<void> run_once(Job& job, std::uint64_t repeat) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    if (!job.failure.empty()) return {};
    if (!bench_.settings.quiet)
      fmt::print(stderr, "stores: repeat {} of {}: {}: {}\n", repeat + 1, bench_.settings.repeat, job.subject.workload,
                 job.subject.variant);
    const fs::path dir = bench_.work_dir / "stores";
    auto figures = job.run(dir, repeat == 0);
    std::error_code ignored;
    fs::remove_all(dir, ignored);
    if (interrupted()) return fail(Code::io_error, "interrupted");
    if (figures)
      job.repeats.push_back(*std::move(figures));
    else
      job.failure = figures.error().text;
    return {};
  }

  void add_results(const Job& job) {
    if (!job.failure.empty()) {
      bench_.results.add_failure(job.subject, "ns_per_record", "ns", job.failure);
      return;
    }
    for (const auto& [figure, unused] : job.repeats.front()) {
      Subject subject = job.subject;
      const std::vector<double> values = job.values(figure);
      if (figure == "index_bytes") {
        bench_.results.add(subject, "index_bytes_per_record", "bytes", values);
      } else if (figure == "space") {
        bench_.results.add(subject, "space_per_live_byte", "bytes", values);
      } else if (subject.workload.starts_with("open")) {
        bench_.results.add(subject, "opening_" + figure, "ns", values);
      } else {
        subject.workload = fmt::format("{} ({})", subject.workload, figure);
        bench_.results.add(subject, "ns_per_record", "ns", values);
      }
    }
  }

  // ---- What came out ----------------------------------------------------------------------------------------------

  [[nodiscard]] const Job* find(std::string_view part, KeyOrder order, std::string_view name) const {
    const std::string workload = fmt::format("{}, {} keys", part, to_string(order));
    for (const auto& job : jobs_) {
      if (job->subject.workload == workload && job->subject.variant == name) return job.get();
    }
    return nullptr;
  }

  static std::vector<double> ratios(const std::vector<double>& over, const std::vector<double>& under) {
    std::vector<double> all;
    for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) all.push_back(over[i] / under[i]);
    return all;
  }

  /// How many times as fast `ours` is as `other`: a row of `table`.
  void compare(Table& table, const Job* ours, const Job* other, const std::string& figure, std::optional<double> wanted,
               const std::string& metric, const std::string& what) {
    if (ours == nullptr || other == nullptr) return;
    for (const Job* job : {ours, other}) {
      if (!job->failure.empty()) {
        failures_.push_back(fmt::format("{} ({}): {}", job->subject.variant, job->subject.workload, job->failure));
        return;
      }
    }
    const std::vector<double> mine = ours->values(figure);
    const std::vector<double> theirs = other->values(figure);
    Subject subject = ours->subject;
    subject.workload = fmt::format("{} ({})", subject.workload, figure);
    bench_.results.add(subject, metric, "1", ratios(theirs, mine));
    add(table, {what, rate(mine), rate(theirs), ratios(theirs, mine), wanted});
  }

  static std::string rate(const std::vector<double>& ns) { return fmt::format("{:.3f}", 1e3 / median(ns)); }

  static void add(Table& table, const Aim& aim) {
    const double ratio = median(aim.ratios);
    std::string wanted;
    std::string missed;
    if (aim.wanted) {
      wanted = fmt::format("{} {:.2f}", aim.at_most ? "<=" : ">=", *aim.wanted);
      if (aim.at_most ? ratio > *aim.wanted : ratio < *aim.wanted) missed = "missed";
    }
    table.add({aim.what, aim.ours, aim.other, fmt::format("{:.2f}", ratio),
               fmt::format("{:.0f}", spread(aim.ratios) * 50), wanted, missed});
  }

  Table table(const std::string& title, const std::string& other, const std::string& unit = "M/s") const {
    const std::size_t repeats = jobs_.front()->repeats.size();
    return Table(fmt::format("stores: {}, {} records, median of {}", title, records_, repeats),
                 {"what", unit, other, "ratio", "+-%", "wanted", ""}, 1);
  }

  void finish(Table& table) {
    for (const std::string& failure : failures_) table.note(failure);
    failures_.clear();
    bench_.tables += table.text() + "\n";
  }

  void report() {
    if (has("engines")) {
      report_interface();
      report_mmap_and_lmdb();
    }
    if (has("sync") && spec_of("mmap")) report_sync();
    if (has("seek") && spec_of("file")) report_seek();
    if (has("index") && spec_of("mmap")) report_index();
    if (has("growth")) report_growth();
    if (has("open") && spec_of("mmap")) report_opening();
    if (has("space") && spec_of("mmap")) report_space();
  }

  void report_interface() {
    constexpr double kOverheadMax = 1.10;
    constexpr double kAppendOverheadMax = 1.15;
    Table shown = table("engines through the interface, beside themselves, at kernel", "own M/s");
    for (const std::string engine : {"lmdb", "rocksdb"}) {
      for (const KeyOrder order : kOrders) {
        const Job* ours = find("engines", order, engine);
        const Job* itself = find("engines", order, engine + " itself");
        const bool appends = engine == "lmdb" && order == KeyOrder::sequential;
        compare(shown, ours, itself, "put", 1 / (appends ? kAppendOverheadMax : kOverheadMax), "ratio_to_itself",
                fmt::format("{} put, {} keys", engine, to_string(order)));
        compare(shown, ours, itself, "get", 1 / kOverheadMax, "ratio_to_itself",
                fmt::format("{} get, {} keys", engine, to_string(order)));
      }
    }
    shown.note("Batches of 1,000; lmdb syncs each group at kernel, too. Wanted: at most 10 % overhead, 15 % for");
    shown.note("appending to LMDB. Gets are of random keys; LMDB's own loop renews its transaction for each.");
    finish(shown);
  }

  void report_mmap_and_lmdb() {
    if (!spec_of("mmap") || !spec_of("lmdb")) return;
    struct Row {
      const char* figure;
      double wanted[3];  // In the order of kOrders.
    };
    constexpr Row kRows[] = {
        {"put", {5, 50, 25}}, {"get", {1, 1, 1}}, {"multi_get", {2.5, 2.5, 2.5}}, {"scan", {2, 3, 1.5}}};
    Table shown = table("mmap beside lmdb at kernel", "lmdb M/s");
    for (const Row& row : kRows) {
      for (std::size_t i = 0; i < std::size(kOrders); ++i)
        compare(shown, find("engines", kOrders[i], "mmap"), find("engines", kOrders[i], "lmdb"), row.figure,
                row.wanted[i], "ratio_to_lmdb", fmt::format("{}, {} keys", row.figure, to_string(kOrders[i])));
    }
    shown.note("Batches of 1,000, each synced by lmdb. multi_get: 1,000 random keys at once. scan: all records,");
    shown.note("in pages of 1,000.");
    finish(shown);
  }

  void report_sync() {
    Table shown = table("mmap at disk beside writing and syncing a file", "file M/s");
    const Job* file = find("sync", KeyOrder::sequential, "write and sync");
    for (const auto& [order, wanted] : {std::pair{KeyOrder::sequential, 0.75}, std::pair{KeyOrder::random, 0.25}})
      compare(shown, find("sync", order, "mmap"), file, "put", wanted, "ratio_to_synced_file",
              fmt::format("put, {} keys", to_string(order)));
    shown.note("Groups of 10,000 records, each synced. The file was allocated, and gets as many bytes.");
    finish(shown);
  }

  void report_seek() {
    Table shown = table("file at kernel beside one seek and one write a record", "loop M/s");
    const Job* loop = find("seek", KeyOrder::sequential, "seek and write");
    compare(shown, find("seek", KeyOrder::sequential, "file"), loop, "put", 0.85, "ratio_to_seek_write",
            "put, sequential keys");
    compare(shown, find("seek", KeyOrder::random, "file"), loop, "put", std::nullopt, "ratio_to_seek_write",
            "put, random keys");
    finish(shown);
  }

  void report_index() {
    Table shown("stores: memory of mmap's index, bytes a record", {"what", "bytes", "", "", "+-%", "wanted", ""}, 1);
    const auto row = [&](const Job* job, const std::string& what, double wanted) {
      if (job == nullptr) return;
      const std::vector<double> bytes = job->values("index_bytes");
      if (!job->failure.empty() || bytes.empty()) {
        failures_.push_back(what + ": " + (job->failure.empty() ? "the store does not say" : job->failure));
        return;
      }
      const double least = median(bytes);
      shown.add({what, fmt::format("{:.2f}", least), "", "", fmt::format("{:.0f}", spread(bytes) * 50),
                 fmt::format("<= {:.2f}", wanted), least > wanted ? "missed" : ""});
    };
    for (const KeyOrder order : kOrders)
      row(find("index", order, "mmap"), fmt::format("{} keys", to_string(order)), 45);
    row(find("index", KeyOrder::sequential, "mmap {seq}"), "arrival numbers ({seq})", 1.5);
    finish(shown);
  }

  void report_growth() {
    Table shown = table("CPU time of a put at the end beside the beginning", "first ns", "last ns");
    for (const std::string engine : {"mmap", "lmdb"}) {
      const Job* job = find("growth", KeyOrder::sequential, engine);
      if (job == nullptr) continue;
      if (!job->failure.empty()) {
        failures_.push_back(engine + ": " + job->failure);
        continue;
      }
      const auto first = job->values("cpu_first");
      const auto last = job->values("cpu_last");
      bench_.results.add(job->subject, "times_of_first", "1", ratios(last, first));
      add(shown, {engine + " put, sequential keys", fmt::format("{:.0f}", median(last)),
                  fmt::format("{:.0f}", median(first)), ratios(last, first), 1.3, true});
    }
    shown.note("Of all threads; the first and the last million puts, or half of them where there are fewer.");
    finish(shown);
  }

  void report_opening() {
    Table shown = table("opening mmap beside a pass of checksums over its log", "pass ms", "ms");
    struct Row {
      const char* figure;
      const char* what;
      double wanted;
    };
    constexpr Row kRows[] = {
        {"clean", "clean close", 3}, {"killed", "kill -9, checkpoint", 6}, {"bare", "kill -9, log alone", 13}};
    for (const KeyOrder order : {KeyOrder::sequential, KeyOrder::random}) {
      const Job* job = find("open", order, "mmap");
      if (!job->failure.empty()) {
        failures_.push_back(fmt::format("{} keys: {}", to_string(order), job->failure));
        continue;
      }
      const auto pass = job->values("pass");
      for (const Row& row : kRows) {
        const auto took = job->values(row.figure);
        Subject subject = job->subject;
        subject.workload += fmt::format(" ({})", row.figure);
        bench_.results.add(subject, "times_of_pass", "1", ratios(took, pass));
        add(shown, {fmt::format("{}, {} keys", row.what, to_string(order)), fmt::format("{:.1f}", median(took) / 1e6),
                    fmt::format("{:.1f}", median(pass) / 1e6), ratios(took, pass), row.wanted, true});
      }
    }
    finish(shown);
  }

  void report_space() {
    Table shown = table("mmap overwritten three times over, at kernel", "before M/s");
    const Job* job = find("space", KeyOrder::random, "mmap");
    if (!job->failure.empty()) {
      failures_.push_back(job->failure);
    } else {
      const auto quiet = job->values("put");
      const auto busy = job->values("put_compacting");
      bench_.results.add(job->subject, "ratio_to_quiet", "1", ratios(quiet, busy));
      add(shown, {"put while it compacts", rate(busy), rate(quiet), ratios(quiet, busy), 0.6});
      add(shown, {"most space, in live bytes", "", "", job->values("space"), 2, true});
    }
    shown.note("Space: what the files took at most, two segments left out.");
    finish(shown);
  }

  Bench& bench_;
  const std::uint64_t records_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::string> failures_;
};

}  // namespace

/// One store at a time: its records, twice while it is overwritten, and segments made ahead; its index, and caches.
Needs stores_needs(const Settings& settings) {
  constexpr std::uint64_t kDiskBytesPerRecord = 600;
  constexpr std::uint64_t kMemoryBytesPerRecord = 80;
  constexpr std::uint64_t kBesideBytes = std::uint64_t{512} << 20;
  const std::uint64_t records = settings.items.value_or(kUsualRecords);
  return {.disk_bytes = records * kDiskBytesPerRecord + kBesideBytes,
          .memory_bytes = records * kMemoryBytesPerRecord + kBesideBytes};
}

Result<void> run_stores_suite(Bench& bench) {
  return StoresSuite(bench)();
}

}  // namespace kvingest::bench
