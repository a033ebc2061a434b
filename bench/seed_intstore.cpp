// Ten integers under ten keys, in memory: what each way of keeping them costs for a set, an update and a get.
#include <absl/container/flat_hash_map.h>

#include <array>
#include <map>
#include <memory>
#include <unordered_map>

#include "bench/micro.hpp"
#include "bench/seed.hpp"
#include "kvingest/codec/fixed.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kIntKeys = 10;

/// The floor: nothing is looked up.
class IntArray {
 public:
  void set(std::uint64_t key, std::uint64_t value) { values_[key] = value; }
  [[nodiscard]] std::uint64_t get(std::uint64_t key) const { return values_[key]; }

 private:
  std::array<std::uint64_t, kIntKeys> values_{};
};

template <class Map>
class IntMap {
 public:
  void set(std::uint64_t key, std::uint64_t value) { map_[key] = value; }
  [[nodiscard]] std::uint64_t get(std::uint64_t key) const { return map_.find(key)->second; }

 private:
  Map map_;
};

/// A store in memory, one record a batch.
class IntStore {
 public:
  explicit IntStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  void set(std::uint64_t key, std::uint64_t value) {
    std::array<char, 8> key_bytes;
    std::array<char, 8> value_bytes;
    codec::put_fixed(key_bytes.data(), key);
    codec::put_fixed(value_bytes.data(), value);
    batch_.clear();
    batch_.put({key_bytes.data(), key_bytes.size()}, {value_bytes.data(), value_bytes.size()});
    batch_.number(1);
    ok_ = store_->write(batch_, Durability::memory).has_value() && ok_;
  }
  [[nodiscard]] std::uint64_t get(std::uint64_t key) const {
    std::array<char, 8> key_bytes;
    codec::put_fixed(key_bytes.data(), key);
    std::uint64_t value = ~std::uint64_t{0};
    const auto found = store_->get({key_bytes.data(), key_bytes.size()}, [&](std::string_view bytes) {
      value = codec::get_fixed<std::uint64_t>(bytes.data());
    });
    return ok_ && found && *found ? value : ~std::uint64_t{0};
  }

 private:
  std::unique_ptr<Store> store_;
  WriteBatch batch_;
  bool ok_ = true;
};

/// What the ten keys hold together.
template <class Ints>
std::uint64_t sum_of(const Ints& ints) {
  std::uint64_t sum = 0;
  for (std::uint64_t key = 0; key < kIntKeys; ++key) sum += ints.get(key);
  return sum;
}

class IntStorePlan {
 public:
  IntStorePlan(MicroPlan& plan, std::uint64_t operations) : plan_(plan), operations_(operations) {}

  /// Rows for `ints`, which others share.
  template <class Ints>
  void add(const std::string& name, const std::shared_ptr<Ints>& ints) {
    const std::uint64_t n = operations_;
    for (std::uint64_t key = 0; key < kIntKeys; ++key) ints->set(key, 0);
    const auto set = [ints, n] {
      for (std::uint64_t i = 0; i < n; ++i) ints->set(i % kIntKeys, i);
    };
    const auto update = [ints, n] {
      for (std::uint64_t i = 0; i < n; ++i) ints->set(i % kIntKeys, ints->get(i % kIntKeys) + 1);
    };
    const auto get = [ints, n] {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < n; ++i) sum += ints->get(i % kIntKeys);
      asm volatile("" : : "r"(sum));  // It is wanted although nobody looks at it.
      return sum;
    };
    // The last value of each key is the last number that is its own.
    std::uint64_t last_values = 0;
    for (std::uint64_t i = n - std::min(n, kIntKeys); i < n; ++i) last_values += i;
    add_row("set", name, set, [ints, set, last_values] { return set(), sum_of(*ints) == last_values; });
    add_row("update", name, update, [ints, update, n] {
      const std::uint64_t before = sum_of(*ints);
      return update(), sum_of(*ints) == before + n;
    });
    add_row(
        "get", name, [get] { get(); },
        [ints, get, n] {
          for (std::uint64_t key = 0; key < kIntKeys; ++key) ints->set(key, key + 1);
          std::uint64_t expected = 0;
          for (std::uint64_t i = 0; i < n; ++i) expected += i % kIntKeys + 1;
          return get() == expected;
        });
  }

  Result<void> add_store(const std::string& engine) {
    auto spec = parse_store_spec(engine);
    KV_TRY(spec);
    auto store = open_store(*spec, {});
    KV_TRY(store);
    add("store " + engine, std::make_shared<IntStore>(*std::move(store)));
    return {};
  }

  /// In the order in which they are shown: rows of one operation together.
  void finish() {
    for (auto& rows : rows_) {
      for (MicroRow& row : rows) plan_.rows.push_back(std::move(row));
    }
  }

 private:
  template <class Run, class Check>
  void add_row(const std::string& operation, const std::string& name, Run run, Check check) {
    MicroRow row;
    row.group = fmt::format("{} operations on 10 integers: {}", operations_, operation);
    row.name = name;
    row.subject.workload = "intstore " + operation;
    row.subject.params = {{"operations", operations_}, {"keys", kIntKeys}};
    row.items = static_cast<double>(operations_);
    row.run = run;
    row.check = [check]() -> Result<void> {
      if (check()) return {};
      return fail(Code::corrupt, "it does not hold what was put");
    };
    rows_[operation == "set" ? 0 : operation == "update" ? 1 : 2].push_back(std::move(row));
  }

  MicroPlan& plan_;
  std::uint64_t operations_;
  std::array<std::vector<MicroRow>, 3> rows_;
};

}  // namespace

Result<void> run_seed_intstore(Bench& bench) {
  using Int = std::uint64_t;
  MicroPlan plan{.suite = "seed", .item = "op"};
  plan.cycles_per_ns = cycles_per_ns();
  for (const std::uint64_t operations : bench.sizes({1'000, 2'000'000})) {
    IntStorePlan rows(plan, operations);
    rows.add("array", std::make_shared<IntArray>());
    rows.add("std::map", std::make_shared<IntMap<std::map<Int, Int>>>());
    rows.add("std::unordered_map", std::make_shared<IntMap<std::unordered_map<Int, Int>>>());
    rows.add("flat_hash_map", std::make_shared<IntMap<absl::flat_hash_map<Int, Int>>>());
    for (const char* engine : {"hash", "map"}) KV_TRY(rows.add_store(engine));
    rows.finish();
  }
  plan.ratios = {{"array", "ratio_to_array"}};
  plan.notes = {"update: a get, one more, and a set. Stores: through their interface, a batch for each set.",
                "cycles: of the time stamp counter, which does not follow the clock of the core."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
