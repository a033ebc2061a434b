// What the mmap engine promises, on real files in a temporary directory: what is written is read back, from the log and
// after reopening; runs of numbers and single keys side by side; scans during writes; errors of the system.
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "tests/storage/mmap_fixture.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {
namespace {

using Call = PosixFault::Call;

TEST_CASE("mmap: a batch is one pwritev, and at disk one fdatasync more") {
  PosixFault fault;
  MmapDir dir({}, fault.table());
  auto store = dir.open();
  REQUIRE(put(*store, "first", "makes the first segment"));
  while (fault.count(Call::mmap) < 4) std::this_thread::yield();  // Two to reserve, two segments: the helper is done.
  const auto calls = [&](Durability durability) {
    fault.start_trace();
    REQUIRE(store->write(lines(1, 256), durability));
    return fault.trace();
  };
  CHECK(calls(Durability::kernel) == std::vector{Call::pwritev});
  CHECK(calls(Durability::memory) == std::vector{Call::pwritev});
  CHECK(calls(Durability::disk) == std::vector{Call::pwritev, Call::fdatasync});
}

TEST_CASE("mmap: what was written is there after reopening, with its batch number, in both spaces") {
  for (const char* write : {"file", "map"}) {
    MmapDir dir(EngineOptions{{"write", write}});
    {
      auto store = dir.open();
      WriteBatch batch;
      batch.put("a", "1");
      batch.put("b", "");
      batch.put_meta("a", "meta");
      batch.put_next("by number");
      batch.number(7);
      REQUIRE(store->write(batch, Durability::kernel));
      REQUIRE(store->write(WriteBatch(), Durability::disk));
      WriteBatch second;
      second.erase("a");
      second.put("b", std::string(300, 'b'));
      second.erase_meta("none");
      REQUIRE(store->write(second, Durability::kernel));
      CHECK(store->close());
    }
    for (const bool read_only : {true, false}) {
      auto store = dir.open(read_only);
      CHECK(store->last_batch() == 3);
      CHECK(entries_of(*store) == Entries{{number_key(9), "by number"}, {"b", std::string(300, 'b')}});
      CHECK(value_of(*store, "a", Space::meta) == "meta");
      CHECK(store->count().value() == 2);
      CHECK(store->verify().value().records == 2);
      CHECK(dir.notices.empty());
    }
  }
}

TEST_CASE("mmap: a store killed at any moment between writes has all of them") {
  MmapDir dir;
  auto store = dir.open();
  MmapDir crashed;
  for (std::uint64_t batch = 1; batch <= 12; ++batch) {
    REQUIRE(store->write(lines(batch * 1000, 1000), batch % 3 == 0 ? Durability::disk : Durability::kernel));
    crashed.copy_from(dir);
    auto again = crashed.open();
    CHECK(again->last_batch() == batch);
    CHECK(again->count().value() == batch * 1000);
    CHECK(value_of(*again, number_key(batch * 1000 + 999)) == "line " + std::to_string(batch * 1000 + 999));
  }
  CHECK(crashed.notices.empty());
}

TEST_CASE("mmap: a log of many segments is read back, however often it is reopened") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  std::map<std::string, std::string> want;
  std::mt19937_64 random(3);
  for (int round = 0; round < 5; ++round) {
    auto store = dir.open();
    CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
    for (int i = 0; i < 100; ++i) {
      const std::string key = "key" + std::to_string(random() % 400);
      want[key] = std::string(random() % 3000, static_cast<char>('a' + i % 26));
      REQUIRE(put(*store, key, want[key]));
    }
    CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
    CHECK(store->verify());
  }
  CHECK(std::filesystem::exists(dir.segment(5)));
}

TEST_CASE("mmap: a batch larger than a segment gets one of its own") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  const std::string large(3'000'000, 'x');
  {
    auto store = dir.open();
    REQUIRE(put(*store, "a", "small"));
    REQUIRE(put(*store, "b", large));
    REQUIRE(put(*store, "c", "small again"));
    REQUIRE(put(*store, "d", large, Durability::disk));
    CHECK(value_of(*store, "b") == large);
  }
  auto store = dir.open();
  CHECK(entries_of(*store) == Entries{{"a", "small"}, {"b", large}, {"c", "small again"}, {"d", large}});
}

TEST_CASE("mmap: values of the largest size are kept") {
  MmapDir dir(EngineOptions{{"segment", "64M"}});
  const std::string large(kValueBytesMax, 'v');
  {
    auto store = dir.open();
    REQUIRE(put(*store, "large", large));
  }
  auto store = dir.open();
  CHECK(value_of(*store, "large") == large);
}

TEST_CASE("mmap: a closed store takes no more disk than its frames") {
  MmapDir dir(EngineOptions{{"segment", "16M"}});
  {
    auto store = dir.open();
    REQUIRE(put(*store, "k", "v"));
    CHECK(std::filesystem::file_size(dir.segment(1)) == std::uintmax_t{16} << 20);
    REQUIRE(store->close());
  }
  CHECK(std::filesystem::file_size(dir.segment(1)) < 1000);
  CHECK_FALSE(std::filesystem::exists(dir.segment(2)));
  auto store = dir.open();
  REQUIRE(put(*store, "l", "w"));
  CHECK(entries_of(*store) == Entries{{"k", "v"}, {"l", "w"}});
}

TEST_CASE("mmap: opening and closing without a write does not make the log longer") {
  MmapDir dir;
  CHECK(put(*dir.open(), "k", "v"));
  const auto size = std::filesystem::file_size(dir.segment(1));
  for (int i = 0; i < 3; ++i) CHECK(dir.open()->close());
  CHECK(std::filesystem::file_size(dir.segment(1)) == size);
}

// ---- numbers and other keys -----------------------------------------------------------------------------------------

TEST_CASE("mmap: consecutive numbers take about a byte of index a record, and each is found") {
  MmapDir dir(EngineOptions{{"segment", "16M"}});
  auto store = dir.open();
  constexpr std::uint64_t kLines = 200'000;
  for (std::uint64_t first = 1; first < kLines; first += 1000)
    REQUIRE(store->write(lines(first, 1000), Durability::kernel));
  CHECK(store->count().value() == kLines);
  for (std::uint64_t number = 1; number <= kLines; number += 997) {
    CHECK(value_of(*store, number_key(number)) == "line " + std::to_string(number));
  }
  CHECK_FALSE(value_of(*store, number_key(kLines + 1)));
  CHECK_FALSE(value_of(*store, number_key(0)));
  CHECK(stat_of(*store, "index_bytes") < kLines);
}

TEST_CASE("mmap: a number erased or put again leaves its run, and comes back right after reopening") {
  MmapDir dir;
  Entries want;
  {
    auto store = dir.open();
    REQUIRE(store->write(lines(1, 200), Durability::kernel));
    WriteBatch batch;
    batch.erase(number_key(1));
    batch.erase(number_key(100));
    batch.put(number_key(150), "again");
    batch.erase(number_key(150));
    batch.put(number_key(151), "again");
    batch.erase(number_key(200));
    REQUIRE(store->write(batch, Durability::kernel));
    for (std::uint64_t i = 2; i < 200; ++i) {
      if (i != 100 && i != 150) want.emplace_back(number_key(i), i == 151 ? "again" : "line " + std::to_string(i));
    }
    CHECK(entries_of(*store) == want);
    CHECK(store->count().value() == want.size());
  }
  auto store = dir.open();
  CHECK(entries_of(*store) == want);
  REQUIRE(store->write(lines(200, 3), Durability::kernel));  // The last number was free again.
  for (std::uint64_t i = 200; i < 203; ++i) want.emplace_back(number_key(i), "line " + std::to_string(i));
  CHECK(entries_of(*store) == want);
}

TEST_CASE("mmap: runs that overlap, fall behind others or enclose single keys are kept record by record") {
  MmapDir dir;
  std::map<std::string, std::string> want;
  {
    auto store = dir.open();
    const auto write = [&](std::uint64_t first, std::uint64_t count) {
      REQUIRE(store->write(lines(first, count), Durability::kernel));
      for (std::uint64_t i = first; i < first + count; ++i) want[number_key(i)] = "line " + std::to_string(i);
    };
    write(1000, 100);
    write(500, 100);   // Below.
    write(1050, 100);  // Half over.
    REQUIRE(put(*store, number_key(2005), "single"));
    REQUIRE(put(*store, number_key(3005) + "x", "nearly a number"));
    want[number_key(3005) + "x"] = "nearly a number";
    write(2000, 10);  // Over the single key.
    write(3000, 10);  // Around the other.
    write(~std::uint64_t{0} - 5, 5);
    CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
  }
  auto store = dir.open();
  CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
  CHECK(store->count().value() == want.size());
}

TEST_CASE("mmap: random operations on numbers and other keys agree with std::map, both ways and by ranges") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  std::map<std::string, std::string> want;
  std::uint64_t next = 1;
  const auto some_key = [&] {
    switch (random() % 3) {
      case 0:
        return number_key(random() % (next + 2));
      case 1:
        return "a key longer than its prefix " + std::to_string(random() % 50);
      default:
        return std::string(1 + random() % 9, static_cast<char>(random() % 2));
    }
  };
  for (int round = 0; round < 4; ++round) {
    auto store = dir.open();
    for (int i = 0; i < 150; ++i) {
      WriteBatch batch;
      for (std::uint64_t op = random() % 6; op > 0; --op) {
        const std::string key = some_key();
        if (random() % 3 == 0) {
          batch.erase(key);
          want.erase(key);
        } else {
          want[key] = std::to_string(random());
          batch.put(key, want[key]);
        }
      }
      const std::uint64_t count = random() % 40;
      const std::uint64_t first = random() % 10 == 0 ? 1 + random() % next : next;
      batch.append(lines(first, count));
      for (std::uint64_t n = first; n < first + count; ++n) want[number_key(n)] = "line " + std::to_string(n);
      next = std::max(next, first + count);
      REQUIRE(store->write(batch, Durability::kernel));
    }
    Entries all(want.begin(), want.end());
    CHECK(entries_of(*store) == all);
    std::reverse(all.begin(), all.end());
    CHECK(entries_of(*store, {.reverse = true}) == all);
    for (int i = 0; i < 30; ++i) {
      std::string low = some_key();
      std::string high = some_key();
      if (high < low) std::swap(low, high);
      Entries part(want.lower_bound(low), want.lower_bound(high));
      CHECK(entries_of(*store, {.first = low, .last = high}) == part);
      std::reverse(part.begin(), part.end());
      CHECK(entries_of(*store, {.first = low, .last = high, .reverse = true}) == part);
      const auto at = want.find(low);
      CHECK(value_of(*store, low) == (at == want.end() ? std::nullopt : std::optional(at->second)));
    }
    CHECK(store->count().value() == want.size());
    CHECK(store->verify().value().records == want.size());
  }
}

TEST_CASE("mmap: multi_get finds what is there, in one view") {
  MmapDir dir;
  auto store = dir.open();
  REQUIRE(store->write(lines(1, 10), Durability::kernel));
  REQUIRE(put(*store, "k", "v"));
  const std::string two = number_key(2);
  const std::array<std::string_view, 4> keys{"k", "absent", two, "k"};
  std::map<std::size_t, std::string> found;
  CHECK(store->multi_get(keys, [&](std::size_t index, std::string_view value) { found[index] = value; }).value() == 3);
  CHECK(found == std::map<std::size_t, std::string>{{0, "v"}, {2, "line 2"}, {3, "v"}});
}

// ---- scans and writes -----------------------------------------------------------------------------------------------

TEST_CASE("mmap: a scan sees the store as of its start while runs, puts and erasures go on") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  auto store = dir.open();
  std::map<std::string, std::string> want;
  REQUIRE(store->write(lines(1, 2000), Durability::kernel));
  for (std::uint64_t i = 1; i <= 2000; ++i) want[number_key(i)] = "line " + std::to_string(i);
  for (int i = 0; i < 2000; ++i) {
    const std::string key = "key " + std::to_string(i);
    REQUIRE(put(*store, key, "old"));
    want[key] = "old";
  }
  for (const bool reverse : {false, true}) {
    // Before the first entry a writer changes everything; the scan goes on only when that is done.
    bool changed = false;
    const auto change_all = [&] {
      WriteBatch batch = lines(reverse ? 5001 : 3001, 500);
      for (std::uint64_t i = 1; i <= 2000; i += 3) batch.erase(number_key(i));
      for (std::uint64_t i = 2; i <= 2000; i += 3) batch.put(number_key(i), "new");
      for (int i = 0; i < 2000; i += 2) batch.erase("key " + std::to_string(i));
      for (int i = 1; i < 2000; i += 2) batch.put("key " + std::to_string(i), "new");
      for (int i = 0; i < 2000; i += 2) batch.put("kez " + std::to_string(i), "more");
      changed = store->write(batch, Durability::kernel).has_value();
    };
    check_scan_gives(*store, want, reverse, [&](std::size_t seen) {
      if (seen == 0) std::thread(change_all).join();
    });
    REQUIRE(changed);
    want.clear();
    for (auto& [key, value] : entries_of(*store)) want.emplace(key, value);
  }
  CHECK(want.size() > 3000);
  CHECK(stat_of(*store, "older_versions") == 0);
}

// ---- the world fails ------------------------------------------------------------------------------------------------

TEST_CASE("mmap: a write that fails half way is undone and can be tried again") {
  PosixFault fault;
  MmapDir dir({}, fault.table());
  auto store = dir.open();
  REQUIRE(put(*store, "a", "1"));
  fault.fail_next(Call::pwritev, ENOSPC);
  CHECK_CODE(put(*store, "b", std::string(5000, 'b')), Code::no_space);
  CHECK(store->last_batch() == 1);
  CHECK_FALSE(value_of(*store, "b"));
  REQUIRE(put(*store, "c", "3"));
  CHECK(store->last_batch() == 2);
  MmapDir crashed;
  crashed.copy_from(dir);
  CHECK(entries_of(*crashed.open()) == Entries{{"a", "1"}, {"c", "3"}});
  CHECK(crashed.notices.empty());
}

TEST_CASE("mmap: when a failed write cannot be undone, or a sync fails, the store is failed for good") {
  PosixFault fault;
  for (const bool sync : {false, true}) {
    const auto maps = fault.count(Call::mmap);
    MmapDir dir({}, fault.table());
    auto store = dir.open();
    REQUIRE(put(*store, "a", "1"));
    while (fault.count(Call::mmap) < maps + 4) std::this_thread::yield();  // The helper, which syncs too, is done.
    if (sync) {
      fault.fail_next(Call::fdatasync, EIO);
      CHECK_CODE(put(*store, "b", "2", Durability::disk), Code::io_error);
    } else {
      fault.fail_next(Call::pwritev, EIO);
      fault.fail_next(Call::pwrite, EIO);
      CHECK_CODE(put(*store, "b", "2"), Code::failed);
    }
    CHECK_CODE(put(*store, "c", "3"), Code::failed);
    CHECK_CODE(store->sync(), Code::failed);
    CHECK_CODE(store->close(), Code::failed);
  }
}

TEST_CASE("mmap: interrupted and short writes and reads make no difference") {
  PosixFault fault;
  MmapDir dir(EngineOptions{{"segment", "64K"}}, fault.table());
  fault.shorten(700);
  {
    auto store = dir.open();
    REQUIRE(store->write(lines(1, 3000), Durability::disk));
    REQUIRE(put(*store, "k", std::string(50'000, 'k')));
  }
  auto store = dir.open();
  CHECK(store->count().value() == 3001);
  CHECK(store->verify());
}

TEST_CASE("mmap: whichever system call fails, what was acknowledged is there after reopening") {
  PosixFault fault;
  std::uint64_t nth = 1;
  for (bool happened = true; happened; ++nth) {
    REQUIRE(nth < 200);
    const int error = nth % 3 == 0 ? ENOSPC : EIO;
    INFO("call " << nth << " fails with " << error);
    MmapDir dir(EngineOptions{{"segment", "64K"}}, fault.table());
    std::uint64_t acknowledged = 0;
    std::uint64_t sent = 0;
    fault.fail_nth(nth, error);
    if (auto opened = dir.try_open()) {
      auto store = std::move(*opened);
      for (; sent < 3; acknowledged = sent) {
        const auto durability = sent % 2 == 0 ? Durability::kernel : Durability::disk;
        if (!store->write(lines(1 + sent++ * 3000, 3000), durability)) break;
      }
      static_cast<void>(store->close());
    }
    happened = fault.has_failed();
    fault.heal();
    auto store = dir.open();
    const std::uint64_t found = store->last_batch();
    CHECK(found >= acknowledged);
    CHECK(found <= sent);
    CHECK(store->count().value() == found * 3000);
    REQUIRE(store->write(lines(1 + found * 3000, 3000), Durability::disk));
    CHECK(store->verify().value().records == (found + 1) * 3000);
  }
  CHECK(nth > 3);  // Each of the three writes makes a call itself; how many the helpers make is their affair.
}

TEST_CASE("mmap: a full disk refuses a batch, keeps what it has, and goes on when there is space again") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs disk(std::size_t{4} << 20);
  const auto ballast = disk / "ballast";
  write_text(ballast, std::string(2 << 20, 'b'));
  std::filesystem::create_directory(disk / "db");
  const auto open = [&] {
    return open_engine(kMmapEngine, context_for(disk / "db", Opening::again, {{"segment", "64M"}, {"index", "16M"}}));
  };
  auto store = open();
  std::uint64_t acknowledged = 0;
  const auto fill = [&] {
    Result<void> last;
    while ((last = put(*store, "key" + std::to_string(acknowledged), std::string(10'000, 'x'), Durability::disk))) {
      REQUIRE(++acknowledged < 1000);
    }
    CHECK_CODE(last, Code::no_space);
  };
  fill();
  CHECK(acknowledged > 50);
  CHECK(store->count().value() == acknowledged);
  CHECK(value_of(*store, "key7") == std::string(10'000, 'x'));
  store.reset();
  store = open();
  CHECK(store->count().value() == acknowledged);
  const std::uint64_t before = acknowledged;
  std::filesystem::remove(ballast);
  fill();
  CHECK(acknowledged > before + 50);
  store.reset();
  CHECK(open()->verify().value().records == acknowledged);
}

TEST_CASE("mmap: a full index refuses new keys and takes erasures and numbers") {
  MmapDir dir(EngineOptions{{"index", "1M"}});
  auto store = dir.open();
  std::uint64_t keys = 0;
  Result<void> last;
  for (; keys < 100'000; keys += 100) {
    WriteBatch batch;
    for (std::uint64_t i = 0; i < 100; ++i) batch.put("key" + std::to_string(keys + i), "v");
    last = store->write(batch, Durability::kernel);
    if (!last) break;
  }
  REQUIRE_CODE(last, Code::no_space);
  CHECK(last.error().text.find("index=") != std::string::npos);
  CHECK(keys > 15'000);
  CHECK(store->count().value() == keys);
  CHECK(store->write(lines(1, 1000), Durability::kernel));
  WriteBatch erase;
  for (std::uint64_t i = 0; i < keys; ++i) erase.erase("key" + std::to_string(i));
  REQUIRE(store->write(erase, Durability::kernel));
  CHECK(put(*store, "key", "v"));
  CHECK(store->count().value() == 1001);
}

TEST_CASE("mmap: options are checked") {
  for (const EngineOptions& options : std::vector<EngineOptions>{
           {{"segment", "1"}}, {{"segment", "x"}}, {{"index", "8G8"}}, {{"index", "1"}}, {{"write", "both"}}}) {
    MmapDir dir(options);
    const auto opened = dir.try_open();
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Code::invalid_argument);
    CHECK(opened.error().text.find(options.begin()->first) != std::string::npos);
  }
}

TEST_CASE("mmap: a backup is the store as of one moment, and a store itself") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  auto store = dir.open();
  REQUIRE(store->write(lines(1, 5000), Durability::kernel));
  REQUIRE(put(*store, "k", "v"));
  MmapDir copy;
  REQUIRE(store->backup(copy.path()));
  REQUIRE(put(*store, "later", "not in it"));
  auto copied = copy.open();
  CHECK(copied->last_batch() == 2);
  CHECK(copied->count().value() == 5001);
  CHECK(copied->verify());
  CHECK_FALSE(value_of(*copied, "later"));
}

}  // namespace
}  // namespace kvingest::test
