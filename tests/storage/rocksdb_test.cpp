// What is special to the rocksdb engine; what all engines promise is in the contract suite.
#include "storage/engine_rows.hpp"
#include "tests/storage/engine_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

std::unique_ptr<Store> fresh(const std::filesystem::path& dir, EngineOptions options = {}) {
  return open_engine(kRocksdbEngine, context_for(dir, Opening::fresh, std::move(options)));
}
std::unique_ptr<Store> again(const std::filesystem::path& dir, EngineOptions options = {}) {
  return open_engine(kRocksdbEngine, context_for(dir, Opening::again, std::move(options)));
}

TEST_CASE("rocksdb: both key spaces and the batch number are written together and stay apart") {
  TempDir dir;
  auto store = fresh(dir.path());
  WriteBatch batch;
  batch.put("b", "record");
  batch.put_meta("b", "meta");
  batch.put_next("numbered");
  batch.number(7);
  write(*store, batch);
  batch.clear();
  batch.put("a", "");
  batch.erase("b");
  write(*store, batch, Durability::disk);
  REQUIRE(store->close());
  store = again(dir.path());
  CHECK(store->last_batch() == 2);
  CHECK(store->count().value() == 2);
  CHECK(value_of(*store, "a") == "");
  CHECK(value_of(*store, "b") == std::nullopt);
  CHECK(value_of(*store, "b", Space::meta) == "meta");
  CHECK(entries_of(*store, {}, Space::meta) == Entries{{"b", "meta"}});
  CHECK(entries_of(*store) == Entries{{std::string("\0\0\0\0\0\0\0\x08", 8), "numbered"}, {"a", ""}});
  CHECK(store->verify().value().records == 2);
}

}  // namespace
}  // namespace kvingest::test
