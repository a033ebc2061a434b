// What is special to the lmdb engine; what all engines promise is in the contract suite.
#include <map>
#include <random>

#include "storage/engine_rows.hpp"
#include "tests/storage/engine_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {
namespace {

std::unique_ptr<Store> fresh(const TempDir& dir, EngineOptions options = {}) {
  return open_engine(kLmdbEngine, context_for(dir.path(), true, std::move(options)));
}
std::unique_ptr<Store> again(const TempDir& dir, EngineOptions options = {}) {
  return open_engine(kLmdbEngine, context_for(dir.path(), false, std::move(options)));
}

void write(Store& store, const WriteBatch& batch, Durability level = Durability::kernel) {
  const auto written = store.write(batch, level);
  if (!written) FAIL("write: " << written.error().text);
}

[[maybe_unused]] std::string numbered(std::string_view text, std::uint64_t number) {
  return fmt::format("{}{:08}", text, number);
}

TEST_CASE("lmdb: batches in any order of keys leave what a map has") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempDir dir;
  auto store = fresh(dir, {{"map", "1M"}});
  std::map<std::string, std::string> model;
  std::map<std::string, std::string> meta_model;
  std::uint64_t next_number = 1;
  const auto key_of = [&] {
    std::string key(1 + random() % (random() % 8 == 0 ? 511 : 12), '\0');
    for (char& byte : key) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
    return key;
  };
  for (int round = 0; round < 300; ++round) {
    WriteBatch batch;
    const std::uint64_t first = next_number;
    std::uint64_t number = first;
    const std::size_t operations = random() % (round % 10 == 0 ? 2000 : 60);
    const bool erasing = random() % 8 == 0;
    for (std::size_t i = 0; i < operations; ++i) {
      const std::uint64_t what = random() % 16;
      if (what < 2) {
        const std::string value(random() % 40, 'n');
        batch.put_next(value);
        char key[kSeqKeyBytes];
        codec::put_ordered(key, number++);
        model[std::string(key, sizeof key)] = value;
      } else if (what < 3) {
        const auto key = key_of();
        batch.put_meta(key, "m");
        meta_model[key] = "m";
      } else if (what < 4) {
        const auto key = meta_model.empty() || random() % 2 == 0 ? key_of() : meta_model.begin()->first;
        batch.erase_meta(key);
        meta_model.erase(key);
      } else if (what < 6 || erasing) {
        auto at = model.lower_bound(key_of());
        const auto key = at == model.end() ? key_of() : at->first;
        batch.erase(key);
        model.erase(key);
      } else {
        const auto key = key_of();
        const std::string value(random() % 50 == 0 ? random() % 20000 : random() % 200, static_cast<char>(random()));
        batch.put(key, value);
        model[key] = value;
        ++number;
      }
    }
    // Every put takes a number, so a run's keys are those of its place among the puts: keep the model in step.
    REQUIRE(batch.number(first) == first + batch.puts());
    next_number = first + batch.puts();
    write(*store, batch, round % 3 == 0 ? Durability::disk : Durability::kernel);
    if (round % 20 != 0) continue;
    CHECK(entries_of(*store) == Entries(model.begin(), model.end()));
    CHECK(entries_of(*store, {.reverse = true}) == Entries(model.rbegin(), model.rend()));
    CHECK(entries_of(*store, {}, Space::meta) == Entries(meta_model.begin(), meta_model.end()));
  }
  REQUIRE(store->close());
  store = again(dir);
  CHECK(entries_of(*store) == Entries(model.begin(), model.end()));
  CHECK(entries_of(*store, {}, Space::meta) == Entries(meta_model.begin(), meta_model.end()));
  CHECK(store->last_batch() == 300);
  CHECK(store->count().value() == model.size());
  const auto report = store->verify();
  REQUIRE(report);
  CHECK(report->records == model.size());
}

}  // namespace
}  // namespace kvingest::test
