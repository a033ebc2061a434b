// Trees against hash tables: std::map, a B-tree and two hash tables, from ten keys to ten million, with a share of
// reads from none to all; the rest overwrites.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <unordered_map>

#include "base/interrupt.hpp"
#include "base/quantity.hpp"
#include "bench/clock.hpp"
#include "bench/seed.hpp"
#include "bench/statistics.hpp"
#include "bench/stores_records.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

constexpr unsigned kShareStep = 10;
constexpr std::size_t kMapOperations = std::size_t{1} << 16;

struct MapOp {
  std::uint64_t key = 0;
  bool reads = true;
};

/// Keys are mixed one to one, so that neither side has them in order.
std::uint64_t map_key(std::uint64_t number) {
  return scattered(number);
}
std::uint64_t map_value(std::uint64_t key) {
  return key ^ 0x5851F42D4C957F2D;
}

class MapUnderTest {
 public:
  MapUnderTest() = default;
  MapUnderTest(const MapUnderTest&) = delete;
  MapUnderTest& operator=(const MapUnderTest&) = delete;
  virtual ~MapUnderTest() = default;
  virtual void fill(std::uint64_t size) = 0;
  /// Returns the sum of what was read; writes put what is there already.
  virtual std::uint64_t run(const std::vector<MapOp>& ops) = 0;
};

template <class Map>
class MapOf final : public MapUnderTest {
 public:
  void fill(std::uint64_t size) override {
    for (std::uint64_t i = 0; i < size; ++i) map_[map_key(i)] = map_value(map_key(i));
  }
  std::uint64_t run(const std::vector<MapOp>& ops) override {
    std::uint64_t sum = 0;
    for (const MapOp& op : ops) {
      if (op.reads) {
        const auto found = map_.find(op.key);
        sum += found == map_.end() ? 0 : found->second;
      } else {
        map_[op.key] = map_value(op.key);
      }
    }
    return sum;
  }

 private:
  Map map_;
};

struct MapKind {
  const char* name;
  std::unique_ptr<MapUnderTest> (*make)();
};

template <class Map>
std::unique_ptr<MapUnderTest> make_map() {
  return std::make_unique<MapOf<Map>>();
}

using U64 = std::uint64_t;
const MapKind kMapKinds[] = {{"std::map", make_map<std::map<U64, U64>>},
                             {"btree_map", make_map<absl::btree_map<U64, U64>>},
                             {"std::unordered_map", make_map<std::unordered_map<U64, U64>>},
                             {"flat_hash_map", make_map<absl::flat_hash_map<U64, U64>>}};

/// One size: all containers, at every share of reads, in turns.
class MapsOfSize {
 public:
  MapsOfSize(Bench& bench, std::uint64_t size) : bench_(bench), size_(size) {
    for (const MapKind& kind : kMapKinds) maps_.push_back(kind.make());
    for (unsigned share = 0; share <= 100; share += kShareStep) shares_.push_back(share);
    ns_.resize(maps_.size() * shares_.size());
  }

  Result<void> operator()() {
    for (const auto& map : maps_) {
      if (interrupted()) return fail(Code::io_error, "interrupted");
      map->fill(size_);
    }
    std::vector<std::size_t> order(ns_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(bench_.settings.seed);
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (repeat > 0 && bench_.deadline_passed()) break;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        if (interrupted()) return fail(Code::io_error, "interrupted");
        KV_TRY(measure(i / shares_.size(), i % shares_.size(), random));
      }
    }
    report();
    return {};
  }

 private:
  Result<void> measure(std::size_t map, std::size_t share, std::mt19937_64& random) {
    std::vector<MapOp> ops(kMapOperations);
    std::uint64_t expected = 0;
    for (MapOp& op : ops) {
      op.key = map_key(random() % size_);
      op.reads = random() % 100 < shares_[share];
      if (op.reads) expected += map_value(op.key);
    }
    const auto start = Clock::now();
    const std::uint64_t sum = maps_[map]->run(ops);
    const double ns = ns_since(start);
    if (sum != expected) return fail(Code::corrupt, "{} gave other values than were put", kMapKinds[map].name);
    ns_[map * shares_.size() + share].push_back(ns / static_cast<double>(kMapOperations));
    return {};
  }

  void report() {
    std::vector<std::string> heads = {"reads %"};
    for (const MapKind& kind : kMapKinds) heads.emplace_back(kind.name);
    Table table(fmt::format("seed: ns an operation by share of reads, {} keys, median of {}", format_grouped(size_),
                            ns_.front().size()),
                std::move(heads), 1);
    for (std::size_t share = 0; share < shares_.size(); ++share) {
      std::vector<std::string> cells = {std::to_string(shares_[share])};
      for (std::size_t map = 0; map < maps_.size(); ++map)
        cells.push_back(fmt::format("{:.1f}", median(ns_[map * shares_.size() + share])));
      table.add(std::move(cells));
    }
    for (std::size_t map = 0; map < maps_.size(); ++map) add_results(map);
    table.note("Keys and values of 8 bytes, each key equally often; a write puts what is there. One thread. Sums of");
    table.note("what was read are compared.");
    bench_.tables += table.text() + "\n";
  }

  void add_results(std::size_t map) {
    Subject subject{.suite = "seed", .workload = "maps"};
    subject.variant = kMapKinds[map].name;
    Series series{.subject = subject};
    series.subject.params = {{"keys", size_}};
    series.picture = fmt::format("seed: trees and hash tables by share of reads, {} keys", format_grouped(size_));
    series.line = subject.variant;
    series.x = "share of reads, percent";
    series.y = "ns an operation";
    for (std::size_t share = 0; share < shares_.size(); ++share) {
      const std::vector<double>& ns = ns_[map * shares_.size() + share];
      subject.params = {{"keys", size_}, {"read_percent", shares_[share]}};
      bench_.results.add(subject, "ns_per_op", "ns", ns);
      series.points.emplace_back(shares_[share], median(ns));
    }
    bench_.results.series.push_back(std::move(series));
  }

  Bench& bench_;
  const std::uint64_t size_;
  std::vector<std::unique_ptr<MapUnderTest>> maps_;
  std::vector<unsigned> shares_;
  std::vector<std::vector<double>> ns_;  ///< By map, then by share.
};

}  // namespace

Result<void> run_seed_maps(Bench& bench) {
  for (const std::uint64_t size : bench.sizes({10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000})) {
    if (!bench.settings.quiet) fmt::print(stderr, "seed: maps of {} keys\n", size);
    KV_TRY(MapsOfSize(bench, size)());
  }
  return {};
}

}  // namespace kvingest::bench
