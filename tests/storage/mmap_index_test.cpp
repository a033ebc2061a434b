// The memory that the index of the mmap engine takes: next to nothing for runs of numbers, wherever they fall, and a
// bounded number of bytes for each other key.
#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tests/storage/mmap_fixture.hpp"

namespace kvingest::test {
namespace {

TEST_CASE("mmap index: a run is one entry below, between and above other runs and keys, and after reopening") {
  MmapDir dir(EngineOptions{{"segment", "1M"}});
  std::map<std::string, std::string> want;
  std::vector<std::uint64_t> firsts;
  for (std::uint64_t first = 1'000'000; first < 1'100'000; first += 500) firsts.push_back(first);
  std::mt19937_64 random(5);
  std::shuffle(firsts.begin(), firsts.end(), random);
  const auto check = [&](Store& store) {
    CHECK(entries_of(store) == Entries(want.begin(), want.end()));
    CHECK(stat_of(store, "index_bytes") < want.size());
    for (const std::uint64_t first : firsts) {
      CHECK(value_of(store, number_key(first + 499)) == want.at(number_key(first + 499)));
    }
  };
  {
    auto store = dir.open();
    REQUIRE(put(*store, number_key(1'050'001) + "x", "a key between two numbers of a run"));
    want[number_key(1'050'001) + "x"] = "a key between two numbers of a run";
    for (const std::uint64_t first : firsts) {
      REQUIRE(store->write(lines(first, 500), Durability::kernel));
      for (std::uint64_t i = first; i < first + 500; ++i) want[number_key(i)] = "line " + std::to_string(i);
    }
    check(*store);
  }
  check(*dir.open());
}

TEST_CASE("mmap index: a run over others takes their place, also in part, and their records count as dead") {
  MmapDir dir(EngineOptions{{"segment", "1M"}});
  std::map<std::string, std::string> want;
  std::mt19937_64 random(6);
  {
    auto store = dir.open();
    for (std::uint64_t round = 0; round < 200; ++round) {
      const std::uint64_t first = 1 + random() % 2000;
      const std::uint64_t count = 1 + random() % 300;
      WriteBatch batch;
      for (std::uint64_t i = first; i < first + count; ++i) {
        want[number_key(i)] = std::to_string(round) + "/" + std::to_string(i);
        batch.put_next(want[number_key(i)]);
      }
      batch.number(first);
      const std::string single = number_key(1 + random() % 2300);
      random() % 2 == 0 ? static_cast<void>(want.erase(single)) : static_cast<void>(want[single] = "single");
      want.contains(single) ? batch.put(single, "single") : batch.erase(single);
      REQUIRE(store->write(batch, Durability::kernel));
    }
    CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
    CHECK(store->count().value() == want.size());
    CHECK(stat_of(*store, "live_bytes") < want.size() * 24);
    CHECK(store->verify().value().records == want.size());
  }
  auto store = dir.open();
  CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
  CHECK(store->count().value() == want.size());
}

TEST_CASE("mmap index: a key takes at most 45 bytes, in whatever order keys come and however much they share") {
  constexpr std::uint64_t kKeys = 60'000;
  for (const std::string prefix : {"", "exchange/symbol/2026-11-30/"}) {
    for (const bool in_order : {false, true}) {
      INFO("prefix '" << prefix << "', " << (in_order ? "in order" : "in random order"));
      MmapDir dir;
      auto store = dir.open();
      std::vector<std::uint64_t> numbers(kKeys);
      for (std::uint64_t i = 0; i < kKeys; ++i) numbers[i] = 10'000'000 + i;
      std::mt19937_64 random(7);
      if (!in_order) std::shuffle(numbers.begin(), numbers.end(), random);
      for (std::uint64_t i = 0; i < kKeys; i += 1000) {
        WriteBatch batch;
        for (std::uint64_t k = i; k < i + 1000; ++k) batch.put(prefix + std::to_string(numbers[k]), "v");
        REQUIRE(store->write(batch, Durability::kernel));
      }
      CHECK(store->count().value() == kKeys);
      CHECK(stat_of(*store, "index_bytes") <= kKeys * 45);
      store.reset();
      store = dir.open();  // Makes the index of the whole log; it is to have room for more, wherever that falls.
      CHECK(stat_of(*store, "index_bytes") <= kKeys * 45);
      if (in_order) continue;
      for (std::uint64_t i = 0; i < kKeys; i += 1000) {
        WriteBatch batch;
        for (std::uint64_t k = i; k < i + 1000; ++k) batch.put(prefix + std::to_string(numbers[k]) + "'", "v");
        REQUIRE(store->write(batch, Durability::kernel));
        if (stat_of(*store, "index_bytes") > store->count().value() * 45) FAIL("at " << store->count().value());
      }
    }
  }
}

}  // namespace
}  // namespace kvingest::test
