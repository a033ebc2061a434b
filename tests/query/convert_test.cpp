// Conversion between engines: everything comes along, an interruption costs nothing, and what differs is found.
#include "query/convert.hpp"

#include "kvingest/ledger.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::query {
namespace {

using test::Json;
using test::TempDir;

/// Records under numbers with gaps, under names, and meta entries; more than a page of each.
void fill(Store& store) {
  WriteBatch batch;
  for (int i = 0; i < 1'500; ++i) batch.put_next(fmt::format("run {}", i));
  batch.number(10);
  WriteBatch more;
  for (int i = 0; i < 700; ++i) more.put_next(std::string(static_cast<std::size_t>(i), 'v'));
  more.number(100'000);
  batch.append(more);
  for (int i = 0; i < 1'200; ++i) batch.put(fmt::format("name/{:05}", i), fmt::format("{}", i));
  for (int i = 0; i < 1'100; ++i) batch.put_meta(fmt::format("meta/{:05}", i), "m");
  REQUIRE_OK(store.write(batch, Durability::disk));
}

Result<void> always(std::uint64_t) {
  return {};
}

TEST_CASE("a store goes through every engine and comes out the same, meta and labels included") {
  const TempDir temp;
  const auto engines = test::persistent_engines();
  std::filesystem::path dir = temp / "start";
  const auto source = test::created(engines.back(), dir, {{"key", "k/{seq}"}});
  fill(*source);
  const auto records = test::entries_of(*source, Space::records);
  const auto meta = test::entries_of(*source, Space::meta);
  REQUIRE_OK(source->close());
  for (const std::string& engine : engines) {
    INFO(engine);
    const auto to = temp / ("as-" + engine);
    const Json report =
        Json::parse(test::kvq_out({"convert", "--to", engine + ":" + to.native(), "--quiet", "--json"}, dir));
    CHECK(report["entries"].number() == records.size() + meta.size());
    CHECK_FALSE(report["resumed"].text() == "true");
    test::kvq_out({"verify"}, to);
    const auto opened = open_for_reading(to, [](std::string_view) {});
    REQUIRE_OK(opened);
    CHECK(opened->marker.engine == engine);
    CHECK(opened->marker.labels.at("key") == "k/{seq}");
    CHECK(test::entries_of(*opened->store, Space::records) == records);
    CHECK(test::entries_of(*opened->store, Space::meta) == meta);
    dir = to;
  }
}

TEST_CASE("a conversion interrupted after any page goes on from there") {
  const auto source = test::map_store();
  fill(*source);
  for (int pages = 1; pages <= 7; ++pages) {
    INFO(pages);
    const auto target = test::map_store();
    int seen = 0;
    const auto cut = convert(*source, *target, [&](std::uint64_t) -> Result<void> {
      if (++seen < pages) return {};
      return fail(Code::busy, "interrupted");
    });
    REQUIRE_CODE(cut, Code::busy);
    CHECK_OK(target->get(Space::meta, kMetaConversion, [](std::string_view) {}));
    const auto rest = convert(*source, *target, always);
    REQUIRE_OK(rest);
    CHECK(rest->resumed);
    CHECK(rest->copied < 3'500 + 1'100);
    CHECK(test::entries_of(*target, Space::records) == test::entries_of(*source, Space::records));
    CHECK(test::entries_of(*target, Space::meta) == test::entries_of(*source, Space::meta));
  }
}

TEST_CASE("an unfinished conversion says so when it is read, and is no source and no place for a feed") {
  const TempDir temp;
  const std::string engine = test::persistent_engines().front();
  test::write_numbered(engine, temp / "from", 10);
  const auto target = test::created(engine, temp / "to", {});
  const auto source = open_for_reading(temp / "from", [](std::string_view) {});
  REQUIRE_OK(source);
  const auto cut =
      convert(*source->store, *target, [](std::uint64_t) -> Result<void> { return fail(Code::busy, "interrupted"); });
  REQUIRE_CODE(cut, Code::busy);
  const auto onwards = test::map_store();
  CHECK_CODE(convert(*target, *onwards, always), Code::invalid_argument);
  REQUIRE_OK(target->close());
  CHECK(test::kvq({"count"}, temp / "to").err.find("unfinished conversion") != std::string::npos);
  const test::Finished compacted = test::kvq({"compact"}, temp / "to");
  CHECK(compacted.exit.code == 3);
  CHECK(compacted.err.find("unfinished conversion") != std::string::npos);
  const test::Finished fed = test::run(
      {test::program("kvingest"), "--store", engine, "--listen", "127.0.0.1:0", "--dir", (temp / "to").native()});
  CHECK(fed.exit.code == 3);
  CHECK(fed.err.find("run kvq convert again") != std::string::npos);
}

TEST_CASE("a target that holds a store is refused, and a wrong target is wrong usage") {
  const TempDir temp;
  const std::string engine = test::persistent_engines().front();
  test::write_numbered(engine, temp / "from", 10);
  test::write_numbered(engine, temp / "to", 3);
  const auto refused = test::kvq({"convert", "--to", engine + ":" + (temp / "to").native()}, temp / "from");
  CHECK(refused.exit.code == 1);
  CHECK(test::kvq_out({"count"}, temp / "to") == "3\n");
  for (const char* target : {"", "mmap", "mmap:", "nothing:x", "map:x"}) {
    INFO(target);
    CHECK(test::kvq({"convert", "--to", target}, temp / "from").exit.code == 2);
  }
}

TEST_CASE("a source that changes meanwhile is found out") {
  const auto source = test::map_store();
  fill(*source);
  const auto target = test::map_store();
  bool changed = false;
  const auto done = convert(*source, *target, [&](std::uint64_t) -> Result<void> {
    if (std::exchange(changed, true)) return {};
    WriteBatch batch;
    batch.put("\x01 behind the first page", "new");
    batch.erase(test::entries_of(*source, Space::records).front().first);
    return source->write(batch, Durability::memory);
  });
  CHECK_CODE(done, Code::corrupt);
}

TEST_CASE("the digest knows the space, and where a key ends") {
  const auto digest = [](auto change) {
    const auto store = test::map_store();
    WriteBatch batch;
    change(batch);
    REQUIRE_OK(store->write(batch, Durability::memory));
    return digest_of(*store, always)->sum;
  };
  const auto one = digest([](WriteBatch& batch) { batch.put("ab", "c"); });
  CHECK(one != digest([](WriteBatch& batch) { batch.put("a", "bc"); }));
  CHECK(one != digest([](WriteBatch& batch) { batch.put_meta("ab", "c"); }));
  CHECK(one == digest([](WriteBatch& batch) { batch.put("ab", "c"), batch.put_meta(kMetaConversion, "0"); }));
}

}  // namespace
}  // namespace kvingest::query
