// mmap_figures.cpp -- the figures of the mmap engine that documents state: storage/mmap/README.md and
// docs/decisions/0007-compaction.md.
//
//   test_mmap_figures open DIR [RECORDS]         opening, and the index's memory, beside a pass over the log
//   test_mmap_figures checkpoint DIR [RECORDS]   put rate with checkpoints to that without
//   test_mmap_figures compaction DIR [RECORDS]   put rate while compaction goes on to that before it, and space
//
// Records have 16-byte keys and 100-byte values, batches 1,000 records, at level kernel. What is compared is measured
// in turn, in one run, and the medians of the ratios are printed, with the least and the greatest: what else runs on
// the machine then meets both. DIR is made and removed.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "base/posix.hpp"
#include "kvingest/codec/fixed.hpp"
#include "storage/engine_rows.hpp"
#include "storage/mmap/checkpoint_format.hpp"

namespace kvingest {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBatch = 1000;
constexpr std::uint64_t kSeries = 1000;
constexpr std::size_t kRounds = 5;
const std::string kValue(100, 'v');

std::unique_ptr<Store> open(const fs::path& dir, bool read_only, EngineOptions options = {}) {
  fs::create_directories(dir);
  EngineContext context;
  context.dir = dir;
  context.options = std::move(options);
  context.read_only = read_only;
  context.fresh = fs::is_empty(dir);
  context.posix = &Posix::real();
  context.notice = [](std::string_view text) { fmt::print(stderr, "{}\n", text); };
  auto store = kMmapEngine.open(context);
  if (!store) fmt::print(stderr, "{}\n", store.error().text);
  KV_ASSERT(store);
  return std::move(*store);
}

std::uint64_t stat_of(const Store& store, std::string_view name) {
  std::uint64_t found = 0;
  store.stats([&](std::string_view stat, std::uint64_t value) {
    if (stat == name) found = value;
  });
  return found;
}

// Of all threads of this process.
double cpu_seconds() {
  timespec now{};
  KV_ASSERT(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::uint64_t scattered(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9;
  number = (number ^ number >> 27) * 0x94D049BB133111EB;
  return number ^ number >> 31;
}

std::string key_of(std::string_view order, std::uint64_t number) {
  std::string key(16, '\0');
  const bool in_order = order == "in order";
  const std::uint64_t high = in_order ? 1 : order == "random" ? scattered(number) : number % kSeries;
  codec::put_ordered(key.data(), high);
  codec::put_ordered(key.data() + 8, in_order || order == "random" ? number : number / kSeries);
  return key;
}

WriteBatch batch_of(std::string_view order, std::uint64_t first) {
  WriteBatch batch;
  for (std::uint64_t i = first; i < first + kBatch; ++i) {
    order == "{seq}" ? batch.put_next(kValue) : batch.put(key_of(order, i), kValue);
  }
  batch.number(first + 1);
  return batch;
}

// Only the writes are timed.
double fill(Store& store, std::string_view order, std::uint64_t records) {
  double taken = 0;
  for (std::uint64_t first = 0; first < records; first += kBatch) {
    const WriteBatch batch = batch_of(order, first);
    taken += seconds([&] { KV_ASSERT(store.write(batch, Durability::kernel)); });
  }
  return taken;
}

struct Ratios {
  std::vector<double> all;
  [[nodiscard]] std::string text() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return fmt::format("{:5.2f} ({:.2f} to {:.2f})", sorted[sorted.size() / 2], sorted.front(), sorted.back());
  }
};

// ---- opening --------------------------------------------------------------------------------------------------------

std::uint64_t pass_over(const fs::path& dir) {
  std::vector<char> buffer(std::size_t{1} << 20);
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() != ".log") continue;
    const auto file = File::open(Posix::real(), entry.path(), O_RDONLY);
    KV_ASSERT(file);
    const std::uint64_t size = file->size().value();
    for (std::uint64_t at = 0; at < size; at += buffer.size()) {
      const std::uint64_t step = std::min<std::uint64_t>(buffer.size(), size - at);
      KV_ASSERT(file->read_at(buffer.data(), step, at));
      sum += mmap_store::checksum_of({buffer.data(), step});
    }
  }
  return sum;
}

void measure_opening(const fs::path& dir, std::string_view order, std::string_view what, std::uint64_t records) {
  Ratios ratios;
  double pass_best = 1e9;
  double open_best = 1e9;
  std::uint64_t index_bytes = 0;
  std::uint64_t behind = 0;
  pass_over(dir);  // From the disk, if it was not in the cache.
  for (std::size_t round = 0; round < kRounds; ++round) {
    const double pass = seconds([&] { KV_ASSERT(pass_over(dir) != 1); });
    std::unique_ptr<Store> store;
    const double opened = seconds([&] { store = open(dir, true); });
    KV_ASSERT(store->count().value() == records);
    index_bytes = stat_of(*store, "index_bytes");
    behind = stat_of(*store, "bytes_behind_checkpoint");
    ratios.all.push_back(opened / pass);
    pass_best = std::min(pass_best, pass);
    open_best = std::min(open_best, opened);
  }
  fmt::print("{:12} {:26} {:7.3f} s  {:7.3f} s  {:24} {:6} MiB {:8.1f}\n", order, what, pass_best, open_best,
             ratios.text(), behind >> 20, static_cast<double>(index_bytes) / static_cast<double>(records));
  std::fflush(stdout);
}

void compare_opening(const fs::path& dir, std::uint64_t records) {
  fmt::print("{:12} {:26} {:>9}  {:>9}  {:24} {:>10} {:>8}\n", "order", "opening after", "pass", "opening",
             "opening / pass", "log read", "B/record");
  std::fflush(stdout);
  for (const std::string_view order : {"in order", "1000 series", "random", "{seq}"}) {
    fs::remove_all(dir);
    const pid_t child = ::fork();
    KV_ASSERT(child >= 0);
    if (child == 0) {
      const auto store = open(dir, false);
      fill(*store, order, records);
      ::_exit(0);  // As kill -9: nothing is closed.
    }
    int status = 0;
    KV_ASSERT(::waitpid(child, &status, 0) == child && status == 0);
    KV_ASSERT(open(dir, true)->verify());
    measure_opening(dir, order, "kill -9", records);
    fs::remove(mmap_store::checkpoint_path(dir));
    measure_opening(dir, order, "kill -9, no checkpoint", records);
    KV_ASSERT(open(dir, false)->close());
    measure_opening(dir, order, "close", records);
  }
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

void compare_checkpoints(const fs::path& dir, std::uint64_t records) {
  for (const std::string_view order : {"in order", "1000 series", "random", "{seq}"}) {
    Ratios ratios;
    std::uint64_t checkpoints = 0;
    for (std::size_t round = 0; round < kRounds; ++round) {
      std::array<double, 2> taken{};
      for (std::size_t turn = 0; turn < 2; ++turn) {
        const bool with = turn == round % 2;
        fs::remove_all(dir);
        const auto store = open(dir, false, {{"checkpoint", with ? "256M" : "1T"}});
        taken[with ? 1 : 0] = fill(*store, order, records);
        if (with) checkpoints = stat_of(*store, "checkpoints");
      }
      ratios.all.push_back(taken[0] / taken[1]);
    }
    fmt::print("{:12} put rate with checkpoints / without: {}, {} written\n", order, ratios.text(), checkpoints);
    std::fflush(stdout);
  }
}

// ---- compaction -----------------------------------------------------------------------------------------------------

void compare_compaction(const fs::path& dir, std::uint64_t records) {
  constexpr std::uint64_t kSegment = std::uint64_t{4} << 20;
  constexpr std::uint64_t kTimesOver = 6;
  Ratios rates;
  Ratios cpu_rates;
  Ratios spaces;
  Ratios amplifications;
  for (std::size_t round = 0; round < kRounds; ++round) {
    fs::remove_all(dir);
    const auto store = open(dir, false, {{"segment", "4M"}});
    fill(*store, "random", records);
    std::mt19937_64 random(round);
    double before_seconds = 0;
    double during_seconds = 0;
    double before_cpu = 0;
    double during_cpu = 0;
    std::uint64_t before = 0;
    std::uint64_t during = 0;
    double space = 0;
    while (during < kTimesOver * records) {
      WriteBatch batch;
      for (std::uint64_t i = 0; i < kBatch; ++i) batch.put(key_of("random", random() % records), kValue);
      const bool compacts = stat_of(*store, "compaction_moved_bytes") > 0;
      const double cpu = cpu_seconds();
      (compacts ? during : before) += kBatch;
      (compacts ? during_seconds : before_seconds) +=
          seconds([&] { KV_ASSERT(store->write(batch, Durability::kernel)); });
      (compacts ? during_cpu : before_cpu) += cpu_seconds() - cpu;
      const double bound = 2 * static_cast<double>(stat_of(*store, "live_bytes")) + 2 * kSegment;
      space = std::max(space, static_cast<double>(stat_of(*store, "allocated_bytes") + kSegment) / bound);
    }
    rates.all.push_back((static_cast<double>(during) / during_seconds) /
                        (static_cast<double>(before) / before_seconds));
    const double puts = static_cast<double>(during) / static_cast<double>(before);
    cpu_rates.all.push_back(puts * before_cpu / during_cpu);
    spaces.all.push_back(space);
    amplifications.all.push_back(static_cast<double>(stat_of(*store, "write_amplification_percent")) / 100);
  }
  fmt::print("random overwrites, {} times over {} records, segments of 4 MiB\n", kTimesOver, records);
  fmt::print("put rate while compaction goes on / before it began: {}\n", rates.text());
  fmt::print("the same for each second of CPU time of all threads: {}\n", cpu_rates.text());
  fmt::print("most space taken / twice the live bytes and two segments: {}\n", spaces.text());
  fmt::print("write amplification: {}\n", amplifications.text());
}

int run(const std::vector<std::string>& words) {
  const std::string what = words.size() > 2 ? words[1] : "";
  const fs::path dir = words.size() > 2 ? words[2] : "";
  const std::uint64_t records = words.size() > 3 ? std::stoull(words[3]) / kBatch * kBatch : 0;
  if (what == "open") {
    compare_opening(dir, records > 0 ? records : 10'000'000);
  } else if (what == "checkpoint") {
    compare_checkpoints(dir, records > 0 ? records : 4'000'000);
  } else if (what == "compaction") {
    compare_compaction(dir, records > 0 ? records : 1'000'000);
  } else {
    fmt::print(stderr, "usage: test_mmap_figures open|checkpoint|compaction DIR [RECORDS]\n");
    return 2;
  }
  fs::remove_all(dir);
  return 0;
}

}  // namespace
}  // namespace kvingest

int main(int argc, char* argv[]) try {
  return kvingest::run({argv, argv + argc});
} catch (const std::exception& error) {
  fmt::print(stderr, "test_mmap_figures: {}\n", error.what());
  return 1;
}
