// The dbbench suite: db_bench's workloads on every store, in this process, through the one interface.
//
// Every store holds the same keys with the same values, in the same random order of accesses. Overwriting writes the
// value that a key has already, so that what is read can be compared at any moment.
#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "bench/micro.hpp"
#include "kvingest/codec/fixed.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kValueBytes = 100;
constexpr std::size_t kBatch = 1'000;
constexpr std::size_t kKeysAtOnce = 100;
constexpr std::uint64_t kUsualKeys = 100'000;

/// Key and value of number i: the key is its decimal digits, the value begins with it and is random behind that.
struct Records {
  explicit Records(std::uint64_t count, std::uint64_t seed) : keys(count), values(count), order(count) {
    std::mt19937_64 random(seed);
    for (std::uint64_t i = 0; i < count; ++i) {
      keys[i] = fmt::format("{:0{}}", i, kKeyBytes);
      values[i].resize(kValueBytes);
      for (std::size_t at = 8; at + 8 <= kValueBytes; at += 8) codec::put_fixed(values[i].data() + at, random());
      codec::put_fixed(values[i].data(), i);
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
  }
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::vector<std::uint64_t> order;  ///< In which keys are used.
};

/// A store that takes part, with where it stands in the order and what went wrong.
class DbStore {
 public:
  DbStore(std::shared_ptr<const Records> records, std::unique_ptr<Store> store, Durability level)
      : records_(std::move(records)), store_(std::move(store)), level_(level) {}

  [[nodiscard]] std::string_view level() const { return to_string(store_->capabilities().given(level_)); }
  [[nodiscard]] bool is_ordered() const { return store_->capabilities().ordered; }

  Result<void> fill() {
    for (std::size_t i = 0; i < records_->keys.size(); i += kBatch) overwrite();
    KV_TRY(store_->sync());
    return check();
  }

  void overwrite() {
    batch_.clear();
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::uint64_t n = next();
      batch_.put(records_->keys[n], records_->values[n]);
    }
    batch_.number(1);
    note(store_->write(batch_, level_));
  }

  void read_random() {
    const std::uint64_t n = next();
    const auto found = store_->get(records_->keys[n], [&](std::string_view value) { look_at(n, value); });
    note_found(found, 1);
  }

  void multi_read() {
    std::array<std::string_view, kKeysAtOnce> keys;
    std::array<std::uint64_t, kKeysAtOnce> numbers;
    for (std::size_t i = 0; i < kKeysAtOnce; ++i) keys[i] = records_->keys[numbers[i] = next()];
    const auto found =
        store_->multi_get(keys, [&](std::size_t index, std::string_view value) { look_at(numbers[index], value); });
    note_found(found, kKeysAtOnce);
  }

  void seek_random() {
    // Not so near the end that there are fewer.
    std::uint64_t n = next() % (records_->keys.size() - kKeysAtOnce + 1);
    const Range range{.first = records_->keys[n], .last = {}, .limit = kKeysAtOnce};
    const auto found = store_->scan(range, [&](std::string_view, std::string_view value) {
      look_at(n++, value);
      return true;
    });
    note_found(found, kKeysAtOnce);
  }

  /// Every record, byte by byte.
  Result<void> check() const {
    if (!problem_.empty()) return fail(Code::corrupt, "{}", problem_);
    for (std::size_t i = 0; i < records_->keys.size(); ++i) {
      bool is_same = false;
      auto found =
          store_->get(records_->keys[i], [&](std::string_view value) { is_same = value == records_->values[i]; });
      KV_TRY(found);
      if (!*found || !is_same) return fail(Code::corrupt, "record {} is not what was written", i);
    }
    return {};
  }

 private:
  std::uint64_t next() {
    if (at_ == records_->order.size()) at_ = 0;
    return records_->order[at_++];
  }
  /// One cache line of each value: a store that hands out a pointer must not win by nobody reading.
  void look_at(std::uint64_t n, std::string_view value) {
    if (value.size() != kValueBytes || codec::get_fixed<std::uint64_t>(value.data()) != n)
      problem_ = fmt::format("key {} has another value", n);
  }
  void note(const Result<void>& done) {
    if (!done) problem_ = done.error().text;
  }
  template <class Count>
  void note_found(const Result<Count>& found, std::size_t wanted) {
    if (!found)
      problem_ = found.error().text;
    else if (static_cast<std::size_t>(*found) != wanted)
      problem_ = fmt::format("{} keys were found, of {}", static_cast<std::size_t>(*found), wanted);
  }

  std::shared_ptr<const Records> records_;
  std::unique_ptr<Store> store_;
  Durability level_;
  WriteBatch batch_;
  std::size_t at_ = 0;
  std::string problem_;
};

struct Workload {
  std::string name;
  std::size_t items;  ///< Of one call.
  bool needs_order;
  void (DbStore::*call)();
};

const Workload kWorkloads[] = {
    {"overwrite", kBatch, false, &DbStore::overwrite},
    {"readrandom", 1, false, &DbStore::read_random},
    {"multireadrandom", kKeysAtOnce, false, &DbStore::multi_read},
    {"seekrandom", kKeysAtOnce, true, &DbStore::seek_random},
};

/// What was asked for, else what survives kill -9 where there is something to survive.
Durability level_for(const Contender& contender, const Settings& settings) {
  return contender.engine->persistent ? durability_named(settings.durability.value_or("kernel")) : Durability::memory;
}

}  // namespace

/// For each key: itself and its value, and the same in each store.
Needs dbbench_needs(const Settings& settings) {
  constexpr std::uint64_t kBytesPerKey = 300;
  constexpr std::uint64_t kStores = 6;
  constexpr std::uint64_t kBesideBytes = std::uint64_t{512} << 20;  // Logs that grow while overwriting is measured.
  const std::uint64_t bytes = settings.items.value_or(kUsualKeys) * kBytesPerKey * kStores;
  return {.disk_bytes = bytes + kBesideBytes, .memory_bytes = bytes};
}

Result<void> run_dbbench_suite(Bench& bench) {
  const std::uint64_t count = std::max<std::uint64_t>(bench.sizes({kUsualKeys}).front(), kKeysAtOnce);
  const auto records = std::make_shared<const Records>(count, bench.settings.seed);
  MicroPlan plan{.suite = "dbbench", .item = "op"};
  std::vector<std::pair<const Contender*, std::shared_ptr<DbStore>>> stores;
  for (const Contender& contender : bench.stores) {
    if (contender.engine->name == "null") continue;  // It has no answers to check; selftest measures it.
    auto spec = parse_store_spec(contender.name);
    KV_TRY(spec);
    auto store = open_store(*spec, {.dir = bench.work_dir / fmt::format("db{}", stores.size())});
    if (!store) return fail(std::move(store).error(), "open {}", contender.name);
    stores.emplace_back(&contender,
                        std::make_shared<DbStore>(records, *std::move(store), level_for(contender, bench.settings)));
    if (const auto filled = stores.back().second->fill(); !filled)
      return fail(filled.error(), "fill {}", contender.name);
  }
  for (const Workload& workload : kWorkloads) {
    for (const bool persistent : {true, false}) {
      for (const auto& [contender, store] : stores) {
        if (contender->engine->persistent != persistent) continue;
        MicroRow row;
        row.name = contender->name;
        row.group = fmt::format("{} at {}", workload.name,
                                persistent ? bench.settings.durability.value_or("kernel") : "memory");
        row.subject.workload = workload.name;
        row.subject.store = contender->name;
        row.subject.durability = persistent ? bench.settings.durability.value_or("kernel") : "memory";
        row.subject.level = store->level();
        row.subject.params["keys"] = count;
        row.items = static_cast<double>(workload.items);
        row.run = [store = store, call = workload.call] { ((*store).*call)(); };
        row.check = row.after = [store = store] { return store->check(); };
        if (workload.needs_order && !store->is_ordered()) row.missing = "it is not ordered";
        plan.rows.push_back(std::move(row));
      }
    }
  }
  plan.notes = {fmt::format("{} keys of {} bytes, values of {}. overwrite: batches of {}.", count, kKeyBytes,
                            kValueBytes, kBatch),
                "multireadrandom: 100 keys at once. seekrandom: the 100 records from a random key on. An op is one",
                "record. Levels: what survives kill -9 (kernel; lmdb syncs each batch there), or nothing (memory).",
                "Every value is looked at, and every record compared before and after."};
  return run_micro(bench, plan);
}

}  // namespace kvingest::bench
