// What the file engine promises, on real files in a temporary directory: system calls are counted, shortened and failed
// through its table, and a crash is a copy of the file taken at that moment.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/engine_rows.hpp"
#include "tests/storage/file_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/posix_fault.hpp"

namespace kvingest::test {
namespace {

using Call = PosixFault::Call;

TEST_CASE("file: a record costs exactly one seek and one write, and a batch one commit header") {
  PosixFault fault;
  FileDir dir(fault.table());
  auto store = dir.open();
  WriteBatch batch;
  for (int i = 0; i < 256; ++i) batch.put_next("Benchmark Message " + std::to_string(i));
  batch.number(1);
  for (int round = 0; round < 3; ++round) {
    fault.start_trace();
    REQUIRE(store->write(batch, Durability::kernel));  // The second and third time over the records of the first.
    std::map<Call, int> calls;
    for (const Call call : fault.trace()) ++calls[call];
    CHECK(calls == std::map<Call, int>{{Call::lseek, 256}, {Call::write, 256}, {Call::pwrite, 1}});
  }
}

TEST_CASE("file: a record of many slots is written with one seek and one write, too") {
  PosixFault fault;
  FileDir dir(fault.table());
  auto store = dir.open();
  WriteBatch batch;
  batch.put("large", std::string(1'000'000, 'x'));
  fault.start_trace();
  REQUIRE(store->write(batch, Durability::kernel));
  CHECK(fault.trace() == std::vector{Call::lseek, Call::write, Call::pwrite});
  CHECK(value_of(*store, "large") == std::string(1'000'000, 'x'));
}

TEST_CASE("file: at disk the data is synced before and after the commit header that says so") {
  PosixFault fault;
  FileDir dir(fault.table());
  auto store = dir.open();
  fault.start_trace();
  REQUIRE(put(*store, "k", "v", Durability::disk));
  CHECK(fault.trace() ==
        std::vector{Call::lseek, Call::write, Call::pwrite, Call::fdatasync, Call::pwrite, Call::fdatasync});
}

TEST_CASE("file: what was written is there after reopening, with its batch number, in both spaces") {
  FileDir dir;
  {
    auto store = dir.open();
    WriteBatch batch;
    batch.put("a", "1");
    batch.put("b", "");
    batch.put_meta("a", "meta");
    batch.put_next("by number");
    batch.number(7);
    REQUIRE(store->write(batch, Durability::kernel));
    REQUIRE(store->write(WriteBatch(), Durability::kernel));
    WriteBatch second;
    second.erase("a");
    second.put("b", std::string(300, 'b'));
    REQUIRE(store->write(second, Durability::kernel));
    CHECK(store->close());
  }
  auto store = dir.open();
  CHECK(store->last_batch() == 3);
  CHECK(contents(*store) ==
        Contents{{std::string("\0\0\0\0\0\0\0\x09", 8), "by number"}, {"b", std::string(300, 'b')}});
  CHECK(value_of(*store, "a", Space::meta) == "meta");
  CHECK(store->count().value() == 2);
  CHECK(store->verify().value().records == 2);
}

TEST_CASE("file: within a batch the last operation on a key holds") {
  FileDir dir;
  {
    auto store = dir.open();
    WriteBatch batch;
    batch.put("put", "1");
    batch.put("put", "2");
    batch.put("erased", "1");
    batch.erase("erased");
    batch.erase("again");
    batch.put("again", "1");
    batch.erase("never");
    REQUIRE(store->write(batch, Durability::kernel));
    CHECK(contents(*store) == Contents{{"again", "1"}, {"put", "2"}});
  }
  CHECK(contents(*dir.open()) == Contents{{"again", "1"}, {"put", "2"}});
}

TEST_CASE("file: overwriting and erasing a few keys for ever keeps the file small") {
  FileDir dir;
  auto store = dir.open();
  for (int i = 0; i < 50'000; ++i) {
    WriteBatch batch;
    const std::string key = "key" + std::to_string(i % 10);
    batch.put(key, std::to_string(i));
    if (i % 7 == 0) batch.erase("key" + std::to_string((i + 1) % 10));
    REQUIRE(store->write(batch, Durability::kernel));
  }
  CHECK(std::filesystem::file_size(dir.slots()) < 400'000);  // About 2,000 slots wait at most, twice.
  CHECK(stat_of(*store, "self_syncs") > 10);
  const Contents before = contents(*store);
  CHECK(store->verify());
  store.reset();
  CHECK(contents(*dir.open()) == before);
}

TEST_CASE("file: records of many sizes share the space that was freed") {
  FileDir dir;
  auto store = dir.open();
  std::minstd_rand random(1);
  std::map<std::string, std::string> want;
  std::uint64_t largest = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string key = std::to_string(random() % 50);
    want[key] = std::string(random() % 2000, static_cast<char>('a' + i % 26));
    REQUIRE(put(*store, key, want[key], i % 50 == 0 ? Durability::disk : Durability::kernel));
    largest = std::max(largest, stat_of(*store, "live_bytes"));
  }
  CHECK(contents(*store) == Contents(want.begin(), want.end()));
  CHECK(std::filesystem::file_size(dir.slots()) < 6 * largest + 400'000);
  store.reset();
  CHECK(contents(*dir.open()) == Contents(want.begin(), want.end()));
}

TEST_CASE("file: a slot is not written over before a sync covers what replaced it") {
  FileDir dir;
  auto store = dir.open();
  REQUIRE(put(*store, "k", "old value", Durability::disk));
  REQUIRE(put(*store, "k", "new value", Durability::kernel));
  REQUIRE(put(*store, "other", "1", Durability::kernel));
  REQUIRE(put(*store, "other", "2", Durability::kernel));
  CHECK(dir.bytes().find("old value") != std::string::npos);
  REQUIRE(store->sync());
  REQUIRE(put(*store, "another", "3", Durability::kernel));
  CHECK(dir.bytes().find("old value") == std::string::npos);
  CHECK(stat_of(*store, "live_slots") == 3);
}

TEST_CASE("file: a scan that runs keeps the slots of what it may still visit") {
  FileDir dir;
  auto store = dir.open();
  WriteBatch batch;
  for (int i = 0; i < 3000; ++i) batch.put("key" + std::to_string(10'000 + i), "first");
  REQUIRE(store->write(batch, Durability::kernel));
  std::size_t visited = 0;
  const auto seen = store->scan(Range{}, [&](std::string_view, std::string_view value) {
    CHECK(value == "first");
    if (++visited % 500 != 1) return true;
    std::thread([&] {  // The writer is another thread, as in the service.
      WriteBatch change;
      for (int i = 0; i < 3000; ++i) {
        const std::string key = "key" + std::to_string(10'000 + i);
        i % 3 == 0 ? change.erase(key) : change.put(key, "second");
      }
      CHECK(store->write(change, Durability::disk));
      CHECK(store->write(change, Durability::disk));
    })
        .join();
    return true;
  });
  REQUIRE(seen);
  CHECK(*seen == 3000);
  CHECK(store->count().value() == 2000);
  // Now the records are cleared, and when that is on disk, their tombstones.
  for (int i = 0; i < 3; ++i) REQUIRE(put(*store, "k", "v", Durability::disk));
  CHECK(stat_of(*store, "waiting_slots") <= 2);
}

TEST_CASE("file: compact gives the space of what was erased back to the file system") {
  FileDir dir;
  auto store = dir.open();
  WriteBatch batch;
  for (int i = 0; i < 5000; ++i) batch.put("key" + std::to_string(10'000 + i), std::string(100, 'x'));
  REQUIRE(store->write(batch, Durability::kernel));
  WriteBatch erase;
  for (int i = 1; i < 5000; ++i) erase.erase("key" + std::to_string(10'000 + i));
  REQUIRE(store->write(erase, Durability::kernel));
  REQUIRE(store->compact());
  CHECK(std::filesystem::file_size(dir.slots()) < 12'288);
  CHECK(stat_of(*store, "dead_bytes") == 0);
  REQUIRE(put(*store, "more", "1", Durability::kernel));
  store.reset();
  CHECK(contents(*dir.open()) == Contents{{"key10000", std::string(100, 'x')}, {"more", "1"}});
}

TEST_CASE("file: a backup holds one moment while writes go on, and is a store of its own") {
  FileDir dir;
  FileDir copy;
  auto store = dir.open();
  for (int i = 0; i < 100; ++i) REQUIRE(put(*store, std::to_string(i % 20), std::to_string(i), Durability::kernel));
  REQUIRE(put_meta(*store, "m", "meta"));
  const Contents before = contents(*store);
  REQUIRE(store->backup(copy.path()));
  REQUIRE(put(*store, "later", "1", Durability::kernel));
  auto again = copy.open(false);
  CHECK(contents(*again) == before);
  CHECK(again->last_batch() == 101);
  CHECK(value_of(*again, "m", Space::meta) == "meta");
  REQUIRE(put(*again, "own", "1", Durability::disk));

  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      WriteBatch batch;  // Two keys that always agree.
      batch.put("x", std::to_string(i));
      batch.put("y", std::to_string(i));
      if (!store->write(batch, i % 8 == 0 ? Durability::disk : Durability::kernel)) return;
    }
  });
  for (int i = 0; i < 5; ++i) {
    FileDir moment;
    REQUIRE(store->backup(moment.path()));
    auto opened = moment.open(false);
    CHECK(value_of(*opened, "x") == value_of(*opened, "y"));
    CHECK(value_of(*opened, "0") == "80");
  }
  stop = true;
  writer.join();
}

std::function<void()> g_before_read;

TEST_CASE("file: what a backup is to hold stays in its slots while the store replaces it") {
  Posix table = Posix::real();
  table.pread = [](int fd, void* to, size_t bytes, off_t offset) {
    if (g_before_read) std::exchange(g_before_read, nullptr)();
    return Posix::real().pread(fd, to, bytes, offset);
  };
  FileDir dir(table);
  FileDir copy;
  auto store = dir.open();
  for (int i = 0; i < 100; ++i) REQUIRE(put(*store, std::to_string(i), "old", Durability::disk));
  g_before_read = [&] {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 100; ++i) CHECK(put(*store, std::to_string(i), "new", Durability::disk));
    }
  };
  REQUIRE(store->backup(copy.path()));
  CHECK_FALSE(g_before_read);
  CHECK(value_of(*store, "99") == "new");
  for (const auto& [key, value] : contents(*copy.open(false))) CHECK(value == "old");
  CHECK(stat_of(*store, "waiting_slots") >= 300);
  REQUIRE(put(*store, "0", "newer", Durability::disk));
  CHECK(stat_of(*store, "waiting_slots") == 1);
}

TEST_CASE("file: the slot size is chosen for new stores only") {
  FileDir dir;
  REQUIRE(put(*dir.open(true, {{"slot", "256"}}), "k", "v", Durability::disk));
  CHECK(stat_of(*dir.open(), "slot_bytes") == 256);
  CHECK(value_of(*dir.open(true, {{"slot", "64"}}), "k") == "v");
  REQUIRE(dir.notices().size() == 1);
  CHECK(dir.notices()[0].find("have 256 bytes") != std::string::npos);
  for (const char* bad : {"63", "100", "8192", "x"}) {
    FileDir other;
    const auto opened = other.try_open(true, {{"slot", bad}});
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Code::invalid_argument);
  }
}

}  // namespace
}  // namespace kvingest::test
