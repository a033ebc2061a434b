// CheckedStore: what holds for every engine, tried on a fake one that fails on demand.
#include "storage/checked_store.hpp"

#include <string>

#include "tests/storage/fake_engine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

using test::contains_text;
using namespace std::string_literals;
using test::fake_plan;

struct CheckedWorld {
  CheckedWorld() {
    fake_plan = {};
    auto opened = open_store({.engine = &test::kFakeEngine}, {.dir = temp / "data"});
    REQUIRE(opened);
    store = std::move(*opened);
  }
  Result<void> put(std::string_view key, std::string_view value) const {
    WriteBatch batch;
    batch.put(key, value);
    return store->write(batch, Durability::kernel);
  }
  Result<bool> get(std::string_view key) const {
    return store->get(key, [](std::string_view) {});
  }

  test::TempDir temp;
  std::unique_ptr<Store> store;
};

TEST_CASE("keys beyond the limits never reach an engine") {
  CheckedWorld world;
  const std::string long_key(kKeyBytesMax + 1, 'k');
  fake_plan.get = Error{Code::corrupt, 0, "reached"};
  fake_plan.write = fake_plan.get;
  CHECK(world.get("").error().code == Code::invalid_argument);
  CHECK(world.get(long_key).error().code == Code::too_large);
  CHECK(world.get(long_key.substr(1)).error().text == "reached");
  CHECK(world.put("", "v").error().code == Code::invalid_argument);
  CHECK(world.put(long_key, "v").error().code == Code::too_large);
  CHECK(world.put(long_key.substr(1), "v").error().text == "reached");
  const std::string_view keys[] = {"good", ""};
  CHECK(world.store->multi_get(keys, [](std::size_t, std::string_view) {}).error().code == Code::invalid_argument);
}

TEST_CASE("a bound may be empty or longer than a key, and an engine gets one it can seek") {
  CheckedWorld world;
  const auto scan = [&](const Range& range) { REQUIRE(world.store->scan(range, [](auto, auto) { return true; })); };
  const std::string key(kKeyBytesMax, 'k');
  const std::string behind = key + '\0';
  scan({.first = "", .last = behind});
  CHECK_FALSE(fake_plan.seen_range.first);
  CHECK(fake_plan.seen_last == std::string(kKeyBytesMax - 1, 'k') + 'l');
  scan({.first = behind});
  CHECK(fake_plan.seen_first == std::string(kKeyBytesMax - 1, 'k') + 'l');
  const std::string carried = "a" + std::string(kKeyBytesMax, '\xFF');
  scan({.first = carried, .limit = 7});
  CHECK(fake_plan.seen_first == "b");
  CHECK(fake_plan.seen_range.limit == 7);
  const std::string top(kKeyBytesMax + 1, '\xFF');
  scan({.last = top});
  CHECK_FALSE(fake_plan.seen_range.last);
  scan({.first = top});
  CHECK(fake_plan.seen_range.limit == 0);
  scan({.first = "b", .last = "b"});
  CHECK(fake_plan.seen_range.limit == 0);
  scan({.last = "", .reverse = true});
  CHECK(fake_plan.seen_range.limit == 0);
}

TEST_CASE("after close every call fails, except a second close") {
  CheckedWorld world;
  REQUIRE(world.put("k", "v"));
  REQUIRE(world.store->close());
  CHECK(fake_plan.closes == 1);
  CHECK(world.store->close());
  CHECK(fake_plan.closes == 1);
  CHECK(world.put("k", "v").error().code == Code::invalid_argument);
  CHECK(world.get("k").error().text == "the store is closed");
  CHECK_FALSE(world.store->scan({}, [](auto, auto) { return true; }));
  CHECK_FALSE(world.store->multi_get({}, [](auto, auto) {}));
  CHECK_FALSE(world.store->sync());
  CHECK_FALSE(world.store->count());
  CHECK_FALSE(world.store->verify());
  CHECK_FALSE(world.store->compact());
  CHECK_FALSE(world.store->backup(world.temp / "copy"));
  world.store->stats([](auto, auto) { FAIL("a closed store has no stats"); });
  CHECK(world.store->last_batch() == 1);
}

TEST_CASE("a backup that fails leaves nothing, so that the next one can have its place") {
  CheckedWorld world;
  fake_plan.backup = Error{Code::no_space, ENOSPC, "write batches: No space left on device"};
  CHECK(world.store->backup(world.temp / "copy").error().code == Code::no_space);
  CHECK_FALSE(std::filesystem::exists(world.temp / "copy"));
  fake_plan.backup.reset();
  CHECK(world.store->backup(world.temp / "copy"));
}

TEST_CASE("a backup goes beside the store, not into it") {
  CheckedWorld world;
  const auto inside = world.store->backup(world.temp / "data" / "copy");
  REQUIRE_FALSE(inside);
  CHECK(inside.error().code == Code::invalid_argument);
  CHECK_THAT(inside.error().text, contains_text("inside the store's own directory"));
  CHECK_FALSE(std::filesystem::exists(world.temp / "data" / "copy"));
}

TEST_CASE("a failed sync latches: every later call names the first reason, and reopening is the way out") {
  CheckedWorld world;
  fake_plan.sync = Error{Code::io_error, EIO, "fdatasync data: Input/output error"};
  CHECK(world.store->sync().error().code == Code::io_error);
  fake_plan.sync.reset();
  const auto later = world.put("k", "v");
  REQUIRE_FALSE(later);
  CHECK(later.error().code == Code::failed);
  CHECK_THAT(later.error().text, contains_text("fdatasync data: Input/output error"));
  CHECK(world.get("k").error().code == Code::failed);
  CHECK(world.store->sync().error().code == Code::failed);
  const auto closed = world.store->close();
  REQUIRE_FALSE(closed);
  CHECK(closed.error().code == Code::failed);
  CHECK(world.store->close());
  CHECK(open_store({.engine = &test::kFakeEngine}, {.dir = world.temp / "data"}));
}

TEST_CASE("a write with an unknown outcome latches, a refused one does not") {
  CheckedWorld world;
  for (const Code code : {Code::no_space, Code::busy, Code::too_large}) {
    fake_plan.write = Error{code, 0, "not written"};
    CHECK(world.put("k", "v").error().code == code);
    fake_plan.write.reset();
    CHECK(world.put("k", "v"));
  }
  fake_plan.write = Error{Code::failed, 0, "who knows"};
  CHECK(world.put("k", "v").error().code == Code::failed);
  fake_plan.write.reset();
  CHECK_THAT(world.put("k", "v").error().text, contains_text("who knows"));
}

TEST_CASE("a damaged place does not stop reads of others") {
  CheckedWorld world;
  REQUIRE(world.put("k", "v"));
  fake_plan.get = Error{Code::corrupt, 0, "slot 7"};
  CHECK(world.get("k").error().code == Code::corrupt);
  fake_plan.get = Error{Code::io_error, EIO, "pread"};
  CHECK(world.get("k").error().code == Code::io_error);
  fake_plan.get.reset();
  CHECK(world.get("k").value());
}

}  // namespace
}  // namespace kvingest
