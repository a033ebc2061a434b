// What the file engine finds after a crash, after damage and after failed system calls. The world in these tests: a
// crash is a copy of the file as it was at some moment, a power failure takes back what was not synced, and what was
// acknowledged is noted outside the store.
#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/storage/file_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {
namespace {

using Model = std::map<std::string, std::string>;

Contents as_contents(const Model& model) {
  return {model.begin(), model.end()};
}

// A few operations on a few keys, values of one to several slots; applied to `model`, too.
WriteBatch random_batch(std::minstd_rand& random, Model& model) {
  WriteBatch batch;
  for (auto operations = 1 + random() % 6; operations > 0; --operations) {
    const std::string key = "key" + std::to_string(random() % 12);
    if (random() % 4 == 0) {
      batch.erase(key);
      model.erase(key);
    } else {
      std::string value(random() % 5 == 0 ? random() % 700 : random() % 30, static_cast<char>('a' + random() % 26));
      batch.put(key, value);
      model[key] = std::move(value);
    }
  }
  return batch;
}

// A store of three synced batches and one that only the kernel has, as kill -9 leaves it.
struct Torn {
  Torn() {
    auto store = dir.open();
    for (int i = 0; i < 3; ++i) {
      WriteBatch batch;
      batch.put("key" + std::to_string(i), std::string(100, 'v'));
      batch.put("each", std::to_string(i));
      REQUIRE(store->write(batch, Durability::disk));
    }
    before = contents(*store);
    end_before = dir.bytes().size();
    WriteBatch last;
    last.put("each", "last");
    last.erase("key1");
    last.put("new", std::string(200, 'n'));
    last.put_meta("m", "1");
    REQUIRE(store->write(last, Durability::kernel));
    after = contents(*store);
    bytes = dir.bytes();
  }

  FileDir dir;
  Contents before;
  Contents after;
  std::size_t end_before = 0;
  std::string bytes;
};

// Opens what is in `dir` and goes on writing; what was dropped must never come back.
void check_goes_on(FileDir& dir, const Contents& want) {
  {
    auto store = dir.open(false);
    REQUIRE(contents(*store) == want);
    REQUIRE(put(*store, "next", "1", Durability::kernel));
  }
  auto store = dir.open(false);
  Contents more = want;
  more.emplace_back("next", "1");
  std::sort(more.begin(), more.end());
  REQUIRE(contents(*store) == more);
  REQUIRE(store->verify());
}

TEST_CASE("file: a tail torn at any byte is dropped whole, said, and never comes back") {
  Torn torn;
  for (std::size_t cut = torn.end_before; cut < torn.bytes.size(); ++cut) {
    torn.dir.set_bytes(std::string_view(torn.bytes).substr(0, cut));
    auto store = torn.dir.open(false);
    const bool whole = contents(*store) == torn.after;  // Only zeros were cut off.
    if (!whole) {
      REQUIRE(contents(*store) == torn.before);
      REQUIRE(store->last_batch() == 3);
      REQUIRE(value_of(*store, "m", Space::meta) == "(none)");
      REQUIRE(torn.dir.notices().size() == 1);
      REQUIRE(torn.dir.notices()[0].find("torn tail: batch 4") != std::string::npos);
      REQUIRE(store->verify().value().torn_tail == torn.dir.notices()[0]);
    }
    store.reset();
    check_goes_on(torn.dir, whole ? torn.after : torn.before);
  }
}

TEST_CASE("file: any damaged byte of a batch above the synced one drops that batch and nothing else") {
  Torn torn;
  for (std::size_t at = torn.end_before; at < torn.bytes.size(); ++at) {
    std::string damaged = torn.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    torn.dir.set_bytes(damaged);
    const auto store = torn.dir.open(false);
    const Contents found = contents(*store);
    REQUIRE((found == torn.before || found == torn.after));
    REQUIRE((found == torn.before) == !torn.dir.notices().empty());
  }
}

TEST_CASE("file: opening changes no byte, nor does closing a store that was only read") {
  Torn torn;
  const std::string cut = torn.bytes.substr(0, torn.bytes.size() - 100);
  for (const bool read_only : {true, false}) {
    torn.dir.set_bytes(cut);
    auto store = torn.dir.open(false, {}, read_only);
    CHECK(contents(*store) == torn.before);
    CHECK(store->close());
    store.reset();
    CHECK(torn.dir.bytes() == cut);
  }
  auto store = torn.dir.open(false, {}, true);
  const auto refused = put(*store, "k", "v", Durability::disk);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::invalid_argument);
}

TEST_CASE("file: a whole batch behind a hole does not come back, now or later") {
  FileDir dir;
  std::string bytes;
  {
    auto store = dir.open();
    REQUIRE(put(*store, "a", "1", Durability::disk));
    REQUIRE(put(*store, "hole", "2", Durability::kernel));
    REQUIRE(put(*store, "behind", "3", Durability::kernel));
    bytes = dir.bytes();
  }
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.find("hole") - slots::kRecordHeadBytes), 64, '\0');
  dir.set_bytes(bytes);
  {
    auto store = dir.open(false);
    CHECK(contents(*store) == Contents{{"a", "1"}});
    REQUIRE(put(*store, "b", "2", Durability::kernel));  // Batch 2 again, where batch 3 would fit behind it.
    bytes = dir.bytes();                                 // As kill -9 leaves it.
  }
  dir.set_bytes(bytes);
  CHECK(contents(*dir.open(false)) == Contents{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("file: every flipped bit of a synced record is refused as corrupt, with file and offset") {
  FileDir dir;
  {
    auto store = dir.open();
    WriteBatch batch;
    batch.put("one", "slot");
    batch.put("two", std::string(80, '2'));
    batch.put_meta("meta", "m");
    REQUIRE(store->write(batch, Durability::disk));
  }
  const std::string bytes = dir.bytes();
  const std::size_t lengths[] = {37, 113, 35};  // Of the records, in slots 0, 1 and 2, and 3.
  const std::size_t first_slots[] = {0, 1, 3};
  for (int record = 0; record < 3; ++record) {
    const std::size_t offset = slots::kSlotsBegin + 64 * first_slots[record];
    for (std::size_t bit = 0; bit < 8 * lengths[record]; ++bit) {
      std::string damaged = bytes;
      damaged[offset + bit / 8] = static_cast<char>(damaged[offset + bit / 8] ^ 1 << bit % 8);
      dir.set_bytes(damaged);
      const auto opened = dir.try_open(false);
      REQUIRE_FALSE(opened);
      REQUIRE(opened.error().code == Code::corrupt);
      INFO(opened.error().text);
      REQUIRE(opened.error().text.find("records.slots: the slot at offset " + std::to_string(offset) + " fails") !=
              std::string::npos);
      REQUIRE(dir.bytes() == damaged);
    }
  }
}

TEST_CASE("file: a record that vanished below the synced batch is refused as corrupt") {
  FileDir dir;
  {
    auto store = dir.open();
    REQUIRE(put(*store, "gone", "1", Durability::disk));
    REQUIRE(put(*store, "there", "2", Durability::disk));
  }
  std::string bytes = dir.bytes();
  std::fill_n(bytes.begin() + slots::kSlotsBegin, 64, '\0');
  dir.set_bytes(bytes);
  const auto opened = dir.try_open(false);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::corrupt);
  CHECK(opened.error().text.find("1 live slots are found and 2 were there as of batch 2") != std::string::npos);
}

TEST_CASE("file: damage in an open store is found by get, scan and verify, and other records are read on") {
  FileDir dir;
  auto store = dir.open();
  for (const char* key : {"a", "b", "c"}) REQUIRE(put(*store, key, "value of " + std::string(key), Durability::kernel));
  std::string bytes = dir.bytes();
  bytes[bytes.find("value of b")] = '#';
  dir.set_bytes(bytes);
  CHECK(value_of(*store, "a") == "value of a");
  CHECK(value_of(*store, "b") == "(corrupt)");
  const auto scanned = store->scan(Range{}, [](std::string_view, std::string_view) { return true; });
  REQUIRE_FALSE(scanned);
  CHECK(scanned.error().code == Code::corrupt);
  const auto verified = store->verify();
  REQUIRE_FALSE(verified);
  CHECK(verified.error().code == Code::corrupt);
  CHECK(verified.error().text.find("records.slots: the slot at offset 8256 ") != std::string::npos);
  const std::vector<std::string_view> keys{"c", "b"};
  const auto both = store->multi_get(keys, [](std::size_t, std::string_view) {});
  REQUIRE_FALSE(both);
  CHECK(both.error().code == Code::corrupt);
}

TEST_CASE("file: with one commit header damaged the other one serves, without both the store is corrupt") {
  FileDir dir;
  {
    auto store = dir.open();
    REQUIRE(put(*store, "k", "v", Durability::kernel));
    REQUIRE(store->close());
  }
  const std::string bytes = dir.bytes();
  for (std::size_t copy = 0; copy < 2; ++copy) {
    for (std::size_t bit = 0; bit < 8 * slots::kCommitHeaderBytes; ++bit) {
      if (bit / 8 >= 8 && bit / 8 < 12) continue;  // The version: a newer one may have any header.
      std::string damaged = bytes;
      const std::size_t at = copy * slots::kCommitHeaderStrideBytes + bit / 8;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit % 8);
      dir.set_bytes(damaged);
      REQUIRE(contents(*dir.open(false)) == Contents{{"k", "v"}});
      REQUIRE(dir.notices().size() == 1);
    }
  }
  std::string damaged = bytes;
  damaged[20] = damaged[slots::kCommitHeaderStrideBytes + 20] = 'x';
  dir.set_bytes(damaged);
  const auto opened = dir.try_open(false);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::corrupt);
}

TEST_CASE("file: a newer format and a missing file are refused by name") {
  FileDir dir;
  REQUIRE(put(*dir.open(), "k", "v", Durability::disk));
  std::string bytes = dir.bytes();
  bytes[8] = 9;
  dir.set_bytes(bytes);
  auto opened = dir.try_open(false);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::unsupported);
  CHECK(opened.error().text.find("format 9") != std::string::npos);
  std::filesystem::remove(dir.slots());
  opened = dir.try_open(false);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Code::corrupt);
  CHECK(opened.error().text.find("records.slots is missing") != std::string::npos);
}

TEST_CASE("file: a value that holds slots, even this file's own, is never taken for records") {
  FileDir dir;
  auto store = dir.open();
  for (int i = 0; i < 20; ++i) REQUIRE(put(*store, "k" + std::to_string(i), "old", Durability::disk));
  const std::string image = dir.bytes().substr(slots::kSlotsBegin);
  // The key is as long as to put the image on the borders of slots.
  const std::string key(64 - slots::kRecordHeadBytes, 'K');
  REQUIRE(put(*store, key, image, Durability::disk));
  for (int i = 0; i < 20; ++i) REQUIRE(put(*store, "k" + std::to_string(i), "new", Durability::disk));
  const Contents want = contents(*store);
  store.reset();
  store = dir.open(false);
  CHECK(contents(*store) == want);
  WriteBatch erase;
  erase.erase(key);
  REQUIRE(store->write(erase, Durability::disk));
  for (int i = 0; i < 3; ++i) REQUIRE(put(*store, "small", std::to_string(i), Durability::disk));
  store.reset();
  CHECK(dir.open(false)->count().value() == 21);
}

// Runs a workload until a call fails. Every batch is noted before it is written, its state after it.
struct Workload {
  explicit Workload(std::uint32_t seed) : random(seed) { states.emplace_back(); }

  // Writes until one fails or `batches` are done; true when all went well.
  bool run(Store& store, int batches) {
    for (int i = 0; i < batches; ++i) {
      Model next = states.back();
      const WriteBatch batch = random_batch(random, next);
      const Durability level = random() % 3 == 0 ? Durability::disk : Durability::kernel;
      const std::size_t number = states.size();
      const auto written = store.write(batch, level);
      if (!written) {
        error = written.error();
        attempted = std::move(next);
        return false;
      }
      states.push_back(std::move(next));
      if (level == Durability::disk) on_disk = number;
    }
    return true;
  }

  // Goes on from what was found.
  void restart_at(std::size_t batch) {
    if (batch == states.size()) states.push_back(*attempted);
    states.resize(batch + 1);
    attempted.reset();
  }

  std::minstd_rand random;
  std::vector<Model> states;       // By batch number.
  std::optional<Model> attempted;  // After the batch that failed, which may be there.
  Error error;
  std::size_t on_disk = 0;  // The last batch acknowledged at disk.
};

TEST_CASE("file: whichever call fails, nothing acknowledged is lost and a batch is all or none") {
  PosixFault fault;
  for (const int error : {EIO, ENOSPC}) {
    for (const bool all_later : {false, true}) {
      bool failed = true;
      for (std::uint64_t n = 1; failed; ++n) {
        FileDir dir(fault.table());
        Workload work(7);
        auto store = dir.open();
        fault.fail_nth(n, error, all_later);
        const bool done = work.run(*store, 25);
        failed = fault.has_failed();
        fault.heal();
        if (!done && work.error.code == Code::no_space) {
          // Nothing was written, and the store goes on.
          REQUIRE(contents(*store) == as_contents(work.states.back()));
          work.attempted.reset();
          REQUIRE(work.run(*store, 3));
        }
        store.reset();
        store = dir.open(false);
        const std::uint64_t last = store->last_batch();
        INFO("errno " << error << " at call " << n << (all_later ? " and later" : "") << ": " << work.error.text);
        REQUIRE(last + 1 >= work.states.size());
        REQUIRE(last <= work.states.size() - (work.attempted ? 0 : 1));
        work.restart_at(last);
        REQUIRE(contents(*store) == as_contents(work.states.back()));
        REQUIRE(work.run(*store, 2));
        store.reset();
        REQUIRE(contents(*dir.open(false)) == as_contents(work.states.back()));
      }
    }
  }
}

TEST_CASE("file: calls that are interrupted and take a few bytes only change nothing") {
  PosixFault fault;
  FileDir dir(fault.table());
  Workload work(3);
  auto store = dir.open();
  fault.shorten(7);
  REQUIRE(work.run(*store, 60));
  REQUIRE(contents(*store) == as_contents(work.states.back()));
  REQUIRE(store->compact());
  store.reset();
  store = dir.open(false);
  REQUIRE(contents(*store) == as_contents(work.states.back()));
  store.reset();
}

TEST_CASE("file: clearing needs no space where it meets a hole in a full disk") {
  PosixFault fault;
  FileDir dir(fault.table());
  auto store = dir.open();
  for (const char* value : {"1", "2"}) REQUIRE(put(*store, "k", value, Durability::disk));
  fault.fail_next(PosixFault::Call::write, ENOSPC);
  const auto refused = put(*store, "k", "3", Durability::disk);  // Into the slot of the first.
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::no_space);
  fault.fail_next(PosixFault::Call::pwrite, ENOSPC);
  REQUIRE(put(*store, "k", "4", Durability::disk));
  CHECK(fault.count(PosixFault::Call::fallocate) == 1);
  CHECK(value_of(*store, "k") == "4");
}

TEST_CASE("file: after a failed sync every later change is refused") {
  PosixFault fault;
  FileDir dir(fault.table());
  auto store = dir.open();
  REQUIRE(put(*store, "k", "1", Durability::disk));
  fault.fail_next(PosixFault::Call::fdatasync, EIO);
  const auto written = put(*store, "k", "2", Durability::disk);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == Code::failed);
  for (const Durability level : {Durability::kernel, Durability::disk}) {
    const auto later = put(*store, "k", "3", level);
    REQUIRE_FALSE(later);
    CHECK(later.error().code == Code::failed);
  }
  CHECK(store->sync().error().code == Code::failed);
  CHECK(store->close().error().code == Code::failed);
  CHECK(value_of(*dir.open(false), "k") == "2");  // Unknown, that is: here the kernel had it.
}

TEST_CASE("file: power lost at any moment leaves an exact prefix with all that was acknowledged at disk") {
  const auto seed = static_cast<std::uint32_t>(std::random_device()());
  INFO("seed " << seed);
  std::minstd_rand random(seed);
  PosixFault fault;
  for (int run = 0; run < 40; ++run) {
    FileDir dir(fault.table());
    Workload work(static_cast<std::uint32_t>(random()));
    for (int cut = 0; cut < 8; ++cut) {
      DiskModel& disk = fault.watch_disk();
      auto store = dir.open(cut == 0);
      fault.cut_power_at(1 + random() % 400);
      const bool done = work.run(*store, 300);
      const std::size_t acknowledged = work.states.size() - 1;
      REQUIRE((!done || !fault.has_failed()));
      store.reset();
      disk.lose(random());
      fault.heal();
      store = dir.open(false);
      const std::uint64_t last = store->last_batch();
      INFO("run " << run << " cut " << cut << ": " << last << " of " << acknowledged << ", at disk " << work.on_disk);
      REQUIRE(last >= work.on_disk);
      REQUIRE(last <= work.states.size() - (work.attempted ? 0 : 1));
      work.restart_at(last);
      REQUIRE(contents(*store) == as_contents(work.states.back()));
      work.on_disk = std::min<std::size_t>(work.on_disk, last);
      store.reset();
    }
  }
}

TEST_CASE("file: a full disk takes nothing of the batch, and the store goes on when there is space again") {
  if (const std::optional<std::string> reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs small(std::size_t{4} << 20);
  std::vector<std::string> notices;
  auto opened = kFileEngine.open({.dir = small.path(),
                                  .options = {},
                                  .read_only = false,
                                  .fresh = true,
                                  .posix = &Posix::real(),
                                  .notice = [&](std::string_view text) { notices.emplace_back(text); }});
  REQUIRE(opened);
  Store& store = **opened;
  Model model;
  bool full = false;
  for (int i = 0; !full; ++i) {
    REQUIRE(i < 1000);
    WriteBatch batch;
    Model next = model;
    for (int k = 0; k < 50; ++k) {
      const std::string key = std::to_string(i) + "/" + std::to_string(k);
      batch.put(key, std::string(200, 'v'));
      next[key] = std::string(200, 'v');
    }
    const auto written = store.write(batch, Durability::disk);
    full = !written;
    if (full) CHECK(written.error().code == Code::no_space);
    if (!full) model = std::move(next);
  }
  CHECK(contents(store) == as_contents(model));
  // Room is made by a batch that fits where the failed one was cut off.
  WriteBatch erase;
  erase.erase("0/0");
  REQUIRE(store.write(erase, Durability::disk));
  model.erase("0/0");
  for (int i = 0; i < 3; ++i) REQUIRE(put(store, "0/1", std::to_string(i), Durability::disk));
  model["0/1"] = "2";
  CHECK(contents(store) == as_contents(model));
  CHECK(store.close());
}

}  // namespace
}  // namespace kvingest::test
