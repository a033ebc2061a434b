// map and hash: what is their own beside the contract that all engines are tested for.
#include <string>

#include "kvingest/engine.hpp"
#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

std::unique_ptr<Store> opened(std::string_view name) {
  auto spec = parse_store_spec(name);
  REQUIRE(spec);
  auto store = open_store(*spec, {.dir = "/nonexistent/never/made"});
  REQUIRE(store);
  return std::move(*store);
}

std::uint64_t stat(const Store& store, std::string_view wanted) {
  std::uint64_t found = ~std::uint64_t{0};
  store.stats([&](std::string_view name, std::uint64_t value) { found = name == wanted ? value : found; });
  return found;
}

TEST_CASE("memory stores make no directory, keep nothing, and say so") {
  for (const std::string_view name : {"map", "hash"}) {
    INFO(name);
    auto store = opened(name);
    CHECK_FALSE(store->capabilities().persistent);
    CHECK(store->capabilities().given(Durability::disk) == Durability::memory);
    WriteBatch batch;
    batch.put("k", "v");
    REQUIRE(store->write(batch, Durability::disk));
    CHECK(store->count() == 1u);
    CHECK(store->backup("/nonexistent/copy").error().code == Code::unsupported);
    store = opened(name);
    CHECK(store->count() == 0u);
    CHECK(store->last_batch() == 0);
  }
}

TEST_CASE("hash refuses to scan records and scans its meta space in order") {
  auto store = opened("hash");
  CHECK_FALSE(store->capabilities().ordered);
  WriteBatch batch;
  batch.put_meta("b", "2");
  batch.put_meta("a", "1");
  batch.put("c", "3");
  REQUIRE(store->write(batch, Durability::memory));
  const auto refused = store->scan({}, [](auto, auto) { return true; });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::unsupported);
  std::string seen;
  CHECK(store->scan(Space::meta, {}, [&](std::string_view key, std::string_view value) {
    seen.append(key).append(value);
    return true;
  }) == 2u);
  CHECK(seen == "a1b2");
}

TEST_CASE("overwritten and erased values are given back") {
  for (const std::string_view name : {"map", "hash"}) {
    INFO(name);
    auto store = opened(name);
    WriteBatch batch;
    for (int round = 0; round < 10; ++round) {
      batch.clear();
      batch.put("one", std::string(1000, 'x'));
      batch.put("two", std::string(100, 'y'));
      batch.erase("one");
      REQUIRE(store->write(batch, Durability::memory));
    }
    CHECK(stat(*store, "value_bytes") == 100);
    CHECK(stat(*store, "records") == 1);
    CHECK(stat(*store, "older_versions") == 0);
  }
}

TEST_CASE("a scan of map holds the values it began with until it ends") {
  auto store = opened("map");
  WriteBatch batch;
  for (int i = 0; i < 1000; ++i) batch.put(fmt::format("{:04}", i), std::string(100, 'a'));
  REQUIRE(store->write(batch, Durability::memory));
  std::size_t rows = 0;
  REQUIRE(store->scan({}, [&](std::string_view, std::string_view value) {
    if (rows++ == 0) {
      WriteBatch erase;
      for (int i = 0; i < 1000; ++i) erase.erase(fmt::format("{:04}", i));
      REQUIRE(store->write(erase, Durability::memory));
    }
    CHECK(value == std::string(100, 'a'));
    return true;
  }));
  CHECK(rows == 1000);
  CHECK(store->count() == 0u);
  batch.clear();
  REQUIRE(store->write(batch, Durability::memory));
  CHECK(stat(*store, "value_bytes") == 0);
}

}  // namespace
}  // namespace kvingest
