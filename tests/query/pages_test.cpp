// Selections and the walk in pages, on a map store in this process.
#include "query/pages.hpp"

#include <random>

#include "kvingest/engine.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"

namespace kvingest::query {
namespace {

std::vector<std::string> walked(const Store& store, const Selection& selection) {
  std::vector<std::string> keys;
  REQUIRE_OK(walk_pages(
      store, Space::records, selection, [&](std::string_view key, std::string_view) { keys.emplace_back(key); },
      [] { return Result<bool>(true); }));
  return keys;
}

TEST_CASE("a prefix is a range that ends before the next prefix") {
  const auto selection = select("ab", std::nullopt, std::nullopt);
  CHECK(selection.first == "ab");
  CHECK(selection.last == "ac");
  CHECK(select("a\xFF\xFF", std::nullopt, std::nullopt).last == "b");
  CHECK(select("\xFF", std::nullopt, std::nullopt).last == std::nullopt);
  CHECK(select("", std::nullopt, std::nullopt).first == "");
  CHECK(select("", std::nullopt, std::nullopt).last == std::nullopt);
}

TEST_CASE("prefix, from and to are all kept to") {
  CHECK(select("b", "a", "z").first == "b");
  CHECK(select("b", "a", "z").last == "c");
  CHECK(select("b", "bb", "bx").first == "bb");
  CHECK(select("b", "bb", "bx").last == "bx");
  CHECK(select(std::nullopt, "a", std::nullopt).first == "a");
}

TEST_CASE("many rows and large rows come in pages, each once, in order and in reverse") {
  const auto store = test::map_store();
  std::vector<std::string> all;
  WriteBatch batch;
  for (int i = 0; i < 2'500; ++i) {
    all.push_back(fmt::format("{:06}", i));
    batch.put(all.back(), i % 500 == 0 ? std::string(1'500'000, 'v') : "v");
  }
  REQUIRE_OK(store->write(batch, Durability::memory));
  CHECK(walked(*store, {}) == all);
  std::reverse(all.begin(), all.end());
  CHECK(walked(*store, {.reverse = true}) == all);
  CHECK(walked(*store, {.reverse = true, .limit = 1'001}) ==
        std::vector<std::string>(all.begin(), all.begin() + 1'001));
}

TEST_CASE("bounds that exclude each other give nothing") {
  const auto store = test::map_store();
  WriteBatch batch;
  batch.put("k", "v");
  REQUIRE_OK(store->write(batch, Durability::memory));
  CHECK(walked(*store, {.first = "z", .last = "a"}).empty());
  CHECK(walked(*store, {.first = "k", .last = "k"}).empty());
  CHECK(walked(*store, {.limit = 0}).empty());
  CHECK(walked(*store, {.first = "k"}) == std::vector<std::string>{"k"});
}

TEST_CASE("a walk ends where it is told to, after the page") {
  const auto store = test::map_store();
  WriteBatch batch;
  for (int i = 0; i < 5'000; ++i) batch.put(fmt::format("{:06}", i), "v");
  REQUIRE_OK(store->write(batch, Durability::memory));
  int pages = 0;
  const auto passed = walk_pages(
      *store, Space::records, {}, [](std::string_view, std::string_view) {}, [&] { return Result<bool>(++pages < 2); });
  REQUIRE_OK(passed);
  CHECK(*passed == 2'000);
}

TEST_CASE("records written between two pages are met where they lie ahead") {
  const auto store = test::map_store();
  WriteBatch batch;
  for (int i = 0; i < 2'000; ++i) batch.put(fmt::format("{:06}", i), "v");
  REQUIRE_OK(store->write(batch, Durability::memory));
  int pages = 0;
  const auto passed = walk_pages(
      *store, Space::records, {}, [](std::string_view, std::string_view) {},
      [&]() -> Result<bool> {
        if (++pages > 1) return true;
        WriteBatch more;
        more.put("000000x", "behind");
        more.put_meta("m", "not a record");
        more.put("zzz", "ahead");
        KV_TRY(store->write(more, Durability::memory));
        return true;
      });
  REQUIRE_OK(passed);
  CHECK(*passed == 2'001);
}

}  // namespace
}  // namespace kvingest::query
