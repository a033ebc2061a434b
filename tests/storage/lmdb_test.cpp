// What is special to the lmdb engine; what all engines promise is in the contract suite.
#include <sys/mount.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "storage/engine_rows.hpp"
#include "tests/storage/engine_fixture.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/strace.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::unique_ptr<Store> fresh(const std::filesystem::path& dir, EngineOptions options = {}) {
  return open_engine(kLmdbEngine, context_for(dir, Opening::fresh, std::move(options)));
}
std::unique_ptr<Store> again(const std::filesystem::path& dir, EngineOptions options = {}) {
  return open_engine(kLmdbEngine, context_for(dir, Opening::again, std::move(options)));
}

TEST_CASE("lmdb: batches in any order of keys leave what a map has") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}});
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
  store = again(dir.path());
  CHECK(entries_of(*store) == Entries(model.begin(), model.end()));
  CHECK(entries_of(*store, {}, Space::meta) == Entries(meta_model.begin(), meta_model.end()));
  CHECK(store->last_batch() == 300);
  CHECK(store->count().value() == model.size());
  const auto report = store->verify();
  REQUIRE(report);
  CHECK(report->records == model.size());
}

TEST_CASE("lmdb: keys in order are appended, others are sorted") {
  TempDir dir;
  auto store = fresh(dir.path());
  write(*store, numbered_batch("k", 0, 100, 20));
  write(*store, numbered_batch("k", 100, 100, 20));
  WriteBatch run;
  for (int i = 0; i < 50; ++i) run.put_next("value");
  run.number(1);  // Its keys begin with NUL bytes: they are below "k".
  write(*store, run);
  CHECK(stat_of(*store, "appended_batches") == 2);
  CHECK(stat_of(*store, "sorted_batches") == 1);
  CHECK(store->count().value() == 250);

  TempDir other;
  store = fresh(other.path());
  run.number(1);
  write(*store, run);
  run.number(51);
  write(*store, run);
  CHECK(stat_of(*store, "appended_batches") == 2);
}

TEST_CASE("lmdb: of operations on one key the last one in the batch counts, wherever sorting puts them") {
  TempDir dir;
  auto store = fresh(dir.path());
  WriteBatch batch;
  batch.put("z", "end");
  for (const char* key : {"b", "a", "c"}) {
    batch.put(key, "first");
    batch.erase(key);
    batch.put(key, "last");
  }
  batch.erase("c");
  batch.put("\0\0\0\0\0\0\0\x01", "c string, so an empty key would be refused: see the next line");
  batch.clear();
  batch.put("z", "end");
  batch.put("b", "first");
  batch.erase("b");
  batch.put("b", "last");
  batch.put(std::string("\0\0\0\0\0\0\0\x05", 8), "spelled out");
  batch.put_next("numbered");  // Number 5: the same key.
  batch.erase("z");
  batch.number(1);
  write(*store, batch);
  CHECK(entries_of(*store) == Entries{{std::string("\0\0\0\0\0\0\0\x05", 8), "numbered"}, {"b", "last"}});
}

TEST_CASE("lmdb: the map grows under readers, who never see a batch in part") {
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}});
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> reads = 0;
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        std::uint64_t seen = 0;
        const auto scanned = store->scan({}, [&](std::string_view key, std::string_view value) {
          if (key != numbered_key("k", seen) || value != numbered_value(seen, 1000)) ++wrong;
          ++seen;
          return true;
        });
        const auto got = store->get(numbered_key("k", 0), [&](std::string_view) {});
        if (!scanned || !got || seen % 500 != 0) ++wrong;
        ++reads;
      }
    });
  }
  for (std::uint64_t batch = 0; batch < 16; ++batch) {
    write(*store, numbered_batch("k", batch * 500, 500, 1000));
    const std::uint64_t before = reads;
    CHECK(eventually([&] { return reads > before; }));
  }
  done = true;
  for (auto& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(stat_of(*store, "map_grown") >= 3);
  CHECK(store->count().value() == 8'000);
}

TEST_CASE("lmdb: a full map refuses puts whole, still erases, and takes puts again") {
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}, {"map_max", "4M"}});
  std::uint64_t stored = 0;
  Result<void> full;
  while ((full = store->write(numbered_batch("k", stored, 100, 1000), Durability::kernel))) {
    stored += 100;
    REQUIRE(stored < 10'000);
  }
  CHECK_CODE(full, Code::no_space);
  CHECK(full.error().text.find("map_max") != std::string::npos);
  CHECK(store->count().value() == stored);
  CHECK(value_of(*store, numbered_key("k", stored)) == std::nullopt);
  CHECK(store->last_batch() == stored / 100);

  WriteBatch erases;
  for (std::uint64_t number = 0; number < stored; number += 2) erases.erase(numbered_key("k", number));
  erases.put_meta("erased", "half");
  write(*store, erases);
  CHECK(store->count().value() == stored / 2);
  erases.clear();
  for (std::uint64_t number = 1; number < stored; number += 2) erases.erase(numbered_key("k", number));
  write(*store, erases);
  write(*store, WriteBatch());  // What a batch frees can be used from the second one after it on.
  write(*store, numbered_batch("n", 0, stored / 2, 1000));
  CHECK(store->count().value() == stored / 2);
  CHECK(stat_of(*store, "map_bytes") < 4 * kMiB + 64 * kMiB);
}

TEST_CASE("lmdb: readers that were killed do not keep their pages") {
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}});
  write(*store, numbered_batch("k", 0, 100, 100));
  EngineProcess alive("lmdb", dir.path(), Opening::read_only);  // While anybody reads, the table of readers stays.
  CHECK(alive.ask("count") == "100");
  const auto die_reading = [&] {
    EngineProcess reader("lmdb", dir.path(), Opening::read_only);
    CHECK(reader.ask("block") == "blocked");
    reader.process().kill();
  };
  die_reading();
  write(*store, numbered_batch("k", 0, 4000, 1000));  // Fills the map: before it grows, readers are looked after.
  CHECK(stat_of(*store, "stale_readers_cleared") == 1);
  die_reading();
  store.reset();
  store = again(dir.path());
  CHECK(stat_of(*store, "stale_readers_cleared") == 1);
  CHECK(alive.ask("count") == "4000");
}

TEST_CASE("lmdb: other processes read while one writes, and follow a map that grows") {
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}});
  write(*store, numbered_batch("k", 0, 10, 100));
  EngineProcess reader("lmdb", dir.path(), Opening::read_only);
  CHECK(reader.ask("count") == "10");
  write(*store, numbered_batch("k", 10, 5000, 1000));
  REQUIRE(stat_of(*store, "map_grown") > 0);
  CHECK(reader.ask("count") == "5010");
  CHECK(reader.ask("put k 0 1 1 disk") == "unsupported");
  store.reset();
  CHECK(reader.ask("count") == "5010");
}

TEST_CASE("lmdb: the largest key, value and batch fit into one transaction") {
  TempDir dir;
  auto store = fresh(dir.path(), {{"map", "1M"}});
  const std::string key(kKeyBytesMax, 'k');
  const std::string large(kValueBytesMax, 'v');
  WriteBatch batch;
  batch.put(key, large);
  batch.put("empty", "");
  write(*store, batch);
  CHECK(value_of(*store, key)->size() == kValueBytesMax);
  CHECK(value_of(*store, "empty") == "");
  batch.clear();
  for (std::uint64_t i = 0; batch.bytes().size() + 2000 < kBatchBytesMax; ++i)
    batch.put(numbered_key("n", i * 7919 % 100'000), numbered_value(i, 1900));
  REQUIRE(batch.bytes().size() > kBatchBytesMax - 4000);
  write(*store, batch);
  CHECK(store->last_batch() == 2);
  CHECK(store->verify().has_value());
}

// Some 1.5 GB: run by hand (test_lmdb "[large]"). LMDB keeps at most 131,071 changed pages in memory and writes the
// others out before the commit.
TEST_CASE("lmdb: a batch that changes more pages than LMDB keeps in memory", "[.][large]") {
  TempDir dir;
  auto store = fresh(dir.path());
  constexpr std::uint64_t kRecords = 320'000;  // Two to a page.
  for (std::uint64_t first = 0; first < kRecords; first += 40'000)
    write(*store, numbered_batch("k", first, 40'000, 1900));
  WriteBatch batch;
  for (std::uint64_t i = 0; i < kRecords; ++i) batch.put(numbered_key("k", i * 7919 % kRecords), "small");
  write(*store, batch);
  CHECK(value_of(*store, numbered_key("k", 12'345)) == "small");
  CHECK(store->verify().value().records == kRecords);
}

TEST_CASE("lmdb: a directory is open once in a process") {
  TempDir dir;
  auto store = fresh(dir.path());
  CHECK_CODE(kLmdbEngine.open(context_for(dir.path(), Opening::read_only)), Code::locked);
  std::filesystem::create_symlink(dir.path(), dir / "self");
  CHECK_CODE(kLmdbEngine.open(context_for(dir / "self", Opening::again)), Code::locked);
  REQUIRE_OK(store->close());
  store = again(dir.path());
}

TEST_CASE("lmdb: a store whose file is gone or empty is damaged, not new") {
  TempDir dir;
  fresh(dir.path()).reset();
  std::filesystem::resize_file(dir / "data.mdb", 0);
  CHECK_CODE(kLmdbEngine.open(context_for(dir.path(), Opening::again)), Code::corrupt);
  std::filesystem::remove(dir / "data.mdb");
  CHECK_CODE(kLmdbEngine.open(context_for(dir.path(), Opening::again)), Code::corrupt);
  write_text(dir / "data.mdb", std::string(16384, 'x'));
  CHECK_CODE(kLmdbEngine.open(context_for(dir.path(), Opening::again)), Code::corrupt);
}

TEST_CASE("lmdb: what an interrupted creation left does not matter") {
  TempDir dir;
  write_text(dir / "data.mdb", std::string(5000, 'x'));
  write_text(dir / "lock.mdb", "x");
  auto store = fresh(dir.path());
  write(*store, numbered_batch("k", 0, 10, 10));
  CHECK(store->count().value() == 10);
}

// A store whose pages are of every kind: branches, leaves, overflow pages, a free list with and without them.
void fill_for_damage(const std::filesystem::path& dir) {
  auto store = fresh(dir);
  write(*store, numbered_batch("k", 0, 2000, 300));
  WriteBatch batch;
  for (std::uint64_t i = 0; i < 2000; i += 3) batch.erase(numbered_key("k", i));
  batch.put("large", std::string(20'000, 'l'));
  batch.put_meta("m", std::string(5000, 'm'));
  write(*store, batch);
  write(*store, numbered_batch("n", 0, 10, 300));
  CHECK(store->verify().value().records == 2000 - 667 + 1 + 10);
  REQUIRE_OK(store->close());
}

// What a store answers to a damaged file: an error at opening, or from verify(), or neither.
Result<VerifyReport> open_and_verify(const std::filesystem::path& dir) {
  auto opened = kLmdbEngine.open(context_for(dir, Opening::read_only));
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  return (*opened)->verify();
}

TEST_CASE("lmdb: a file cut anywhere is found damaged and not read beyond its end") {
  TempDir dir;
  fill_for_damage(dir.path());
  const std::string whole = file_text(dir / "data.mdb");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 4096) {
    write_text(dir / "data.mdb", whole.substr(0, bytes + (bytes % 8192 == 0 ? 0 : 1000)));
    const auto answer = open_and_verify(dir.path());
    CAPTURE(bytes);
    if (bytes < 2 * 4096) CHECK_CODE(answer, Code::corrupt);
    if (!answer) CHECK_CODE(answer, Code::corrupt);
  }
  write_text(dir / "data.mdb", whole);
  CHECK(open_and_verify(dir.path()).has_value());
}

TEST_CASE("lmdb: verify names a damaged page, whatever bytes it holds, and never crashes") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempDir dir;
  fill_for_damage(dir.path());
  const std::string whole = file_text(dir / "data.mdb");
  int found = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = whole;
    const std::size_t page = random() % (round % 3 == 0 ? 2 : whole.size() / 4096) * 4096;  // Headers more often.
    const std::size_t at = page + random() % (round % 2 == 0 ? 160 : 4096);                 // Heads, or anywhere.
    const std::size_t bytes = round % 4 == 0 ? 4096 : 1 + random() % 8;
    for (std::size_t i = at; i < std::min(at + bytes, damaged.size()); ++i) damaged[i] = static_cast<char>(random());
    write_text(dir / "data.mdb", damaged);
    CAPTURE(round, page, at, bytes);
    const auto answer = open_and_verify(dir.path());
    if (answer) continue;  // In a value, in free space, or in a page that is not used.
    ++found;
    CAPTURE(answer.error().text);
    CHECK((answer.error().code == Code::corrupt || answer.error().code == Code::unsupported));
    CHECK(answer.error().text.find("data.mdb") != std::string::npos);
  }
  CHECK(found > 40);
}

TEST_CASE("lmdb: verify is sound beside a writer") {
  TempDir dir;
  auto store = fresh(dir.path());
  write(*store, numbered_batch("k", 0, 2000, 100));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::uint64_t i = 0; !done; ++i) {
      if (!store->write(numbered_batch("k", i * 37 % 2000, 20, 100 + i % 300), Durability::kernel)) break;
    }
  });
  for (int i = 0; i < 20; ++i) {
    const auto report = store->verify();
    CHECK_OK(report);
  }
  done = true;
  writer.join();
  CHECK(store->verify().value().records == 2000);
}

TEST_CASE("lmdb: options that make no sense are refused") {
  TempDir dir;
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"map", "large"}, {"map_max", "-1"}, {"readahead", "maybe"}, {"bulk", "yes"}}) {
    const auto opened = kLmdbEngine.open(context_for(dir.path(), Opening::fresh, {{name, value}}));
    REQUIRE_CODE(opened, Code::invalid_argument);
    CHECK(opened.error().text.find(name) != std::string::npos);
  }
}

TEST_CASE("lmdb: a bulk load says so, ends with a sync, and is remembered until then") {
  TempDir dir;
  std::vector<std::string> notices;
  auto store = open_engine(kLmdbEngine, context_for(dir.path(), Opening::fresh, {{"bulk", "true"}}, &notices));
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("power cut") != std::string::npos);
  CHECK(store->capabilities().strongest == Durability::kernel);
  CHECK_FALSE(store->capabilities().exact_prefix);
  write(*store, numbered_batch("k", 0, 10, 10), Durability::disk);
  CHECK(std::filesystem::exists(dir / "BULK"));
  REQUIRE_OK(store->sync());
  CHECK_FALSE(std::filesystem::exists(dir / "BULK"));
  write(*store, numbered_batch("k", 10, 10, 10));
  REQUIRE_OK(store->close());
  CHECK(again(dir.path())->count().value() == 20);
}

TEST_CASE("lmdb: a bulk load cut short by a kill goes on, one cut short by a power cut is refused") {
  TempDir dir;
  EngineProcess loader("lmdb", dir.path(), Opening::fresh, "bulk=true");
  CHECK(loader.ask("put k 0 100 100 kernel") == "ok");
  loader.process().kill();
  const std::string mark = file_text(dir / "BULK");
  REQUIRE_FALSE(mark.empty());
  std::vector<std::string> notices;
  auto store = open_engine(kLmdbEngine, context_for(dir.path(), Opening::again, {}, &notices));
  CHECK(notices.size() == 1);
  CHECK(store->count().value() == 100);
  CHECK_FALSE(std::filesystem::exists(dir / "BULK"));
  store.reset();
  write_text(dir / "BULK", "another boot");
  const auto tree = tree_of(dir.path());
  CHECK_CODE(kLmdbEngine.open(context_for(dir.path(), Opening::again)), Code::corrupt);
  CHECK(tree_of(dir.path()) == tree);
}

TEST_CASE("lmdb: compacting gives space back and keeps everything") {
  TempDir dir;
  auto store = fresh(dir.path());
  write(*store, numbered_batch("k", 0, 5000, 1000));
  WriteBatch batch;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    if (i >= 500) batch.erase(numbered_key("k", i));
  }
  batch.put_meta("m", "kept");
  write(*store, batch);
  const auto entries = entries_of(*store);
  const auto before = std::filesystem::file_size(dir / "data.mdb");
  SECTION("alone") {
    REQUIRE_OK(store->compact());
    CHECK(std::filesystem::file_size(dir / "data.mdb") < before / 4);
  }
  SECTION("not while another process reads") {
    EngineProcess reader("lmdb", dir.path(), Opening::read_only);
    const auto compacted = store->compact();
    REQUIRE_CODE(compacted, Code::busy);
    CHECK(compacted.error().text.find(std::to_string(reader.process().pid())) != std::string::npos);
    CHECK(reader.ask("count") == "500");
    write(*store, numbered_batch("n", 0, 1, 1));
    CHECK(reader.ask("count") == "501");
    CHECK(reader.ask("close") == "ok");
    REQUIRE_OK(store->compact());
    REQUIRE_OK(store->write(
        [] {
          WriteBatch erase;
          erase.erase(numbered_key("n", 0));
          return erase;
        }(),
        Durability::disk));
  }
  CHECK_FALSE(std::filesystem::exists(dir / "data.mdb.compact"));
  CHECK(entries_of(*store) == entries);
  CHECK(value_of(*store, "m", Space::meta) == "kept");
  const auto last = store->last_batch();
  write(*store, numbered_batch("l", 0, 10, 10));
  {
    EngineProcess reader("lmdb", dir.path(), Opening::read_only);
    CHECK(reader.ask("count") == "510");
    write(*store, numbered_batch("l", 10, 10, 10));
    CHECK(reader.ask("count") == "520");
  }
  REQUIRE_OK(store->close());
  store = again(dir.path());
  CHECK(store->last_batch() == last + 2);
  CHECK(store->count().value() == 520);
}

TEST_CASE("lmdb: a backup is a store of its own, of one moment") {
  TempDir dir;
  TempDir copies;
  auto store = fresh(dir.path());
  write(*store, numbered_batch("k", 0, 1000, 100));
  REQUIRE_OK(store->backup(copies / "one"));
  write(*store, numbered_batch("k", 1000, 1, 100));
  CHECK_FALSE(store->backup(copies / "one").has_value());
  auto copy = again(copies / "one");
  CHECK(copy->count().value() == 1000);
  CHECK(copy->last_batch() == 1);
  write(*copy, numbered_batch("k", 1000, 10, 100));
  CHECK(copy->count().value() == 1010);
}

TEST_CASE("lmdb: a read-only file system is read without a lock file") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs files(16 * kMiB);
  auto store = fresh(files.path());
  write(*store, numbered_batch("k", 0, 100, 100));
  REQUIRE_OK(store->close());
  REQUIRE(::mount(nullptr, files.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  store = open_engine(kLmdbEngine, context_for(files.path(), Opening::read_only));
  CHECK(store->count().value() == 100);
  CHECK(store->verify().value().records == 100);
}

TEST_CASE("lmdb: a full disk refuses a batch whole, erases, and takes it when there is space") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  const auto level = GENERATE(Durability::kernel, Durability::disk);
  Tmpfs files(8 * kMiB);
  write_text(files / "ballast", std::string(2 * kMiB, 'b'));
  std::filesystem::create_directory(files / "store");
  auto store = fresh(files / "store");
  std::uint64_t stored = 0;
  Result<void> full;
  while ((full = store->write(numbered_batch("k", stored, 64, 1000), level))) {
    stored += 64;
    REQUIRE(stored < 20'000);
  }
  CHECK_CODE(full, Code::no_space);
  CHECK_CODE(store->write(numbered_batch("k", stored, 64, 1000), level), Code::no_space);
  CHECK(store->count().value() == stored);
  CHECK(store->last_batch() == stored / 64);
  std::filesystem::remove(files / "ballast");
  write(*store, numbered_batch("k", stored, 64, 1000), level);
  CHECK(store->count().value() == stored + 64);
  REQUIRE_OK(store->close());
  store = again(files / "store");
  CHECK(store->verify().value().records == stored + 64);
}

TEST_CASE("lmdb: a store is opened and erased from on a full disk") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs files(8 * kMiB);
  auto store = fresh(files.path());
  std::uint64_t stored = 0;
  while (store->write(numbered_batch("k", stored, 64, 1000), Durability::kernel)) stored += 64;
  REQUIRE_OK(store->close());
  std::filesystem::remove(files / "lock.mdb");  // As in a copy of the store: it must get real blocks before it is used.
  {
    std::ofstream rest(files / "rest");
    const std::string page(4096, 'r');
    while (rest.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }
  CHECK_CODE(kLmdbEngine.open(context_for(files.path(), Opening::again)), Code::no_space);
  std::filesystem::resize_file(files / "rest", 0);
  store = again(files.path());
  // Erasing copies the pages it changes, so what it needs depends on how many those are.
  for (std::uint64_t first = 0; first < stored; first += 64) {
    WriteBatch erases;
    for (std::uint64_t number = first; number < first + 64; ++number) erases.erase(numbered_key("k", number));
    write(*store, erases, Durability::disk);
  }
  CHECK(store->count().value() == 0);
}

TEST_CASE("lmdb: a limit on the size of files is met like a full disk") {
  TempDir dir;
  Process::Options limits{.pipe_input = true, .pipe_output = true, .file_bytes_max = 2 * kMiB};
  Process tool({program("test_engine_tool"), "lmdb", dir.path().native(), "fresh"}, limits);
  const auto ask = [&](std::string_view line) {
    tool.input().send_all(std::string(line) + "\n");
    return tool.output().read_line().value_or("(ended)");
  };
  REQUIRE(tool.output().read_line() == "open");
  CHECK(ask("put k 0 1000 1000 kernel") == "ok");
  CHECK(ask("put k 1000 2000 1000 kernel") == "no_space");
  CHECK(ask("put k 1000 10 1000 kernel") == "ok");
  CHECK(ask("count") == "1010");
  CHECK(ask("close") == "ok");
}

TEST_CASE("lmdb: after a failed sync nothing more is written") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  const auto level = GENERATE(as<std::string>{}, "kernel", "disk");
  TempDir dir;
  EngineProcess store("lmdb", dir.path(), Opening::fresh);
  CHECK(store.ask("put k 0 10 100 " + level) == "ok");
  {
    Strace faults(store.process().pid(), {"-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1"});
    CHECK(store.ask("put k 10 10 100 " + level) == "failed");
    faults.detach();
  }
  CHECK(store.ask("put k 20 10 100 " + level) == "failed");
  CHECK(store.ask("sync") == "failed");
  CHECK(store.ask("last_batch") == "1");
  CHECK(store.ask("close") == "failed");
  store.tell("exit");
  CHECK(store.process().finish() == Exit{0, 0});
  CHECK(again(dir.path())->count().value() % 10 == 0);
}

TEST_CASE("lmdb: a sync that fails by itself latches, too") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  TempDir dir;
  EngineProcess store("lmdb", dir.path(), Opening::fresh);
  CHECK(store.ask("put k 0 10 100 kernel") == "ok");
  Strace faults(store.process().pid(), {"-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"});
  CHECK(store.ask("sync") == "failed");
  CHECK(store.ask("put k 10 10 100 kernel") == "failed");
  faults.detach();
  CHECK(store.ask("put k 10 10 100 kernel") == "failed");
}

TEST_CASE("lmdb: a failed write of the header latches") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  TempDir dir;
  EngineProcess store("lmdb", dir.path(), Opening::fresh);
  CHECK(store.ask("put k 0 10 100 disk") == "ok");
  std::size_t calls = 0;
  {
    Strace counted(store.process().pid(), {"-e", "trace=pwrite64"});
    CHECK(store.ask("put k 0 10 100 disk") == "ok");
    calls = counted.detach().size();
  }
  {
    // The header is the last call of a commit.
    Strace faults(store.process().pid(),
                  {"-e", "trace=pwrite64", "-e", fmt::format("inject=pwrite64:error=EIO:when={}", calls)});
    CHECK(store.ask("put k 0 10 100 disk") == "failed");
    faults.detach();
  }
  CHECK(store.ask("put k 0 10 100 disk") == "failed");
  store.process().kill();
  CHECK(again(dir.path())->verify().value().records == 10);
}

}  // namespace
}  // namespace kvingest::test
