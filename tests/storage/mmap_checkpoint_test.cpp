// Checkpoints of the index of the mmap engine: a store that is opened with one holds what it held, whatever was
// written, erased, moved and dropped since; one that is torn, stale, damaged or of another store is not believed.
//
// World: small segments and a checkpoint every 64 KiB, so that little data meets every step. A crash is a copy of the
// directory, as in the other tests.
#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <random>
#include <string>

#include "storage/mmap/checkpoint_format.hpp"
#include "storage/mmap/format.hpp"
#include "storage/mmap/segment_list.hpp"
#include "tests/storage/mmap_fixture.hpp"
#include "tests/storage/mmap_power.hpp"
#include "tests/support/posix_fault.hpp"

namespace kvingest::test {
namespace {

const EngineOptions kSmall{{"segment", "64K"}, {"checkpoint", "64K"}};

std::filesystem::path index_of(const MmapDir& dir) {
  return mmap_store::checkpoint_path(dir.path());
}

// Keys of all kinds, runs of numbers and meta entries that come, change and go; and what is there.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed) : random_(seed) {}

  WriteBatch next() {
    WriteBatch batch;
    for (int i = 0; i < 10; ++i) {
      const std::string key = some_key();
      if (random_() % 4 == 0) {
        batch.erase(key);
        pending_.erase(key);
      } else {
        pending_[key] = std::string(random_() % 700, static_cast<char>('a' + random_() % 26));
        batch.put(key, pending_[key]);
      }
    }
    const std::string meta = "source " + std::to_string(random_() % 20);
    if (random_() % 3 == 0) {
      batch.erase_meta(meta);
      pending_meta_.erase(meta);
    } else {
      pending_meta_[meta] = std::to_string(random_());
      batch.put_meta(meta, pending_meta_[meta]);
    }
    if (random_() % 2 == 0) {
      const std::uint64_t count = 1 + random_() % 60;
      const std::uint64_t first = random_() % 5 == 0 ? 1 + random_() % number_ : number_;
      batch.append(lines(first, count));
      for (std::uint64_t n = first; n < first + count; ++n) pending_[number_key(n)] = "line " + std::to_string(n);
      number_ = std::max(number_, first + count);
    }
    return batch;
  }
  void taken() {
    model_ = pending_;
    meta_ = pending_meta_;
  }
  void refused() {
    pending_ = model_;
    pending_meta_ = meta_;
  }
  void check(const Store& store) const {
    REQUIRE(entries_of(store) == Entries(model_.begin(), model_.end()));
    REQUIRE(entries_of(store, {}, Space::meta) == Entries(meta_.begin(), meta_.end()));
    REQUIRE(store.count().value() == model_.size());
    for (const auto& [key, value] : model_) REQUIRE(value_of(store, key) == value);
  }

 private:
  std::string some_key() {
    switch (random_() % 4) {
      case 0:
        return number_key(random_() % (number_ + 2));
      case 1:
        return "a key longer than its prefix " + std::to_string(random_() % 60);
      case 2:
        return std::string(1 + random_() % 9, static_cast<char>(random_() % 2));
      default:
        return "key" + std::to_string(random_() % 200);
    }
  }

  std::mt19937_64 random_;
  std::uint64_t number_ = 1;
  std::map<std::string, std::string> model_;
  std::map<std::string, std::string> meta_;
  std::map<std::string, std::string> pending_;
  std::map<std::string, std::string> pending_meta_;
};

void write(Store& store, Traffic& traffic, int batches) {
  for (int i = 0; i < batches; ++i) {
    REQUIRE(store.write(traffic.next(), Durability::kernel));
    traffic.taken();
  }
}

// A closed store with a checkpoint of all of it.
void fill(MmapDir& dir, Traffic& traffic, int batches) {
  auto store = dir.open();
  write(*store, traffic, batches);
  REQUIRE(store->close());
  REQUIRE(std::filesystem::exists(index_of(dir)));
}

TEST_CASE("mmap checkpoint: a store opened with that of its close reads next to no log, and holds what it held") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Traffic traffic(seed);
  MmapDir dir(kSmall);
  for (int round = 0; round < 6; ++round) {
    fill(dir, traffic, 60);
    for (const bool read_only : {true, false}) {
      auto store = dir.open(read_only);
      CHECK(stat_of(*store, "bytes_behind_checkpoint") < 4096);  // Less is not worth another one at close.
      traffic.check(*store);
      CHECK(store->verify());
    }
    CHECK(dir.notices.empty());
  }
}

TEST_CASE("mmap checkpoint: opening and closing without a write leaves log and checkpoint as they are") {
  Traffic traffic(1);
  MmapDir dir(kSmall);
  fill(dir, traffic, 60);
  const Entries before = tree_of(dir.path());
  for (int i = 0; i < 3; ++i) CHECK(dir.open()->close());
  CHECK(tree_of(dir.path()) == before);
}

TEST_CASE("mmap checkpoint: what lives and what is dead is counted as if the log had been read") {
  Traffic traffic(2);
  MmapDir dir(kSmall);
  for (int round = 0; round < 4; ++round) {
    fill(dir, traffic, 80);
    MmapDir without(kSmall);
    without.copy_from(dir);
    std::filesystem::remove(index_of(without));
    auto quick = dir.open(true);
    auto slow = without.open(true);
    const auto live = static_cast<double>(stat_of(*slow, "live_bytes"));
    CHECK(static_cast<double>(stat_of(*quick, "live_bytes")) < live * 1.02);
    CHECK(static_cast<double>(stat_of(*quick, "live_bytes")) > live * 0.98);
    CHECK(stat_of(*quick, "log_bytes") == stat_of(*slow, "log_bytes"));
  }
}

TEST_CASE("mmap checkpoint: a store killed at any moment of writing, compacting and checkpointing has all of it") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Traffic traffic(seed);
  MmapDir dir(kSmall);
  MmapDir crashed(kSmall);
  auto store = dir.open();
  std::uint64_t with_checkpoint = 0;
  const auto list = mmap_store::segment_list_path(dir.path());
  const auto now = [&] {
    const std::string text = std::filesystem::exists(list) ? file_text(list) : std::string();
    return std::pair(text, stat_of(*store, "last_frame"));
  };
  // Bounded by what is to be seen: how many checkpoints are written in so many batches is a matter of time.
  for (int batch = 1; batch <= 3000 && (batch <= 200 || with_checkpoint < 10); ++batch) {
    write(*store, traffic, 1);
    if (batch % 40 == 0) REQUIRE(store->compact());
    if (batch % 4 != 0) continue;
    try {  // Only a copy that compaction did not go on under is a moment.
      const auto before = now();
      crashed.copy_from(dir);
      if (now() != before) continue;
    } catch (const std::filesystem::filesystem_error&) {
      continue;
    }
    INFO("batch " << batch);
    if (std::filesystem::exists(index_of(crashed))) ++with_checkpoint;
    crashed.notices.clear();
    auto again = crashed.open();
    traffic.check(*again);
    CHECK(crashed.notices.empty());
    REQUIRE(again->compact());
    CHECK(again->verify());
    again.reset();
    traffic.check(*crashed.open());
  }
  CHECK(with_checkpoint >= 10);
  CHECK(stat_of(*store, "checkpoint_failures") == 0);
}

TEST_CASE(
    "mmap checkpoint: an older one is as good, with all of the log behind it, also when compaction dropped much") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Traffic traffic(seed);
  MmapDir dir(kSmall);
  fill(dir, traffic, 100);
  const std::string old = file_text(index_of(dir));
  for (int round = 0; round < 4; ++round) {
    {
      auto store = dir.open();
      write(*store, traffic, 60);
      REQUIRE(store->compact());
      CHECK(stat_of(*store, "compacted_segments") > 0);
    }
    write_text(index_of(dir), old);
    auto store = dir.open();
    traffic.check(*store);
    CHECK(dir.notices.empty());
    CHECK(stat_of(*store, "bytes_behind_checkpoint") > 0);
  }
}

TEST_CASE("mmap checkpoint: one cut at any byte, or with any bit flipped, is not believed, and that is said") {
  Traffic traffic(3);
  MmapDir dir(EngineOptions{{"segment", "64K"}, {"checkpoint", "64K"}});
  {
    auto store = dir.open();
    WriteBatch batch = lines(1, 30);
    for (int i = 0; i < 20; ++i) batch.put("key" + std::to_string(i), std::string(300, 'v'));
    batch.erase(number_key(7));
    batch.put_meta("m", "meta");
    REQUIRE(store->write(batch, Durability::kernel));
  }
  REQUIRE(std::filesystem::exists(index_of(dir)));
  const std::string sound = file_text(index_of(dir));
  const Entries want = entries_of(*dir.open(true));
  const auto check_not_believed = [&](const std::string& bytes) {
    write_text(index_of(dir), bytes);
    dir.notices.clear();
    auto store = dir.open(true);
    REQUIRE(entries_of(*store) == want);
    REQUIRE(value_of(*store, "m", Space::meta) == "meta");
    REQUIRE(dir.notices.size() == 1);
    REQUIRE(dir.notices[0].find("INDEX") != std::string::npos);
  };
  std::mt19937_64 random(4);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    INFO("byte " << at << " of " << sound.size());
    check_not_believed(sound.substr(0, at));
    std::string flipped = sound;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
    check_not_believed(flipped);
  }
  check_not_believed(sound + "more");
}

TEST_CASE("mmap checkpoint: that of another store, or of a log that has been replaced, is not believed") {
  Traffic traffic(5);
  Traffic other_traffic(6);
  MmapDir dir(kSmall);
  fill(dir, traffic, 60);
  MmapDir earlier(kSmall);
  earlier.copy_from(dir);
  const Traffic then = traffic;
  MmapDir other(kSmall);
  fill(other, other_traffic, 60);
  std::filesystem::copy_file(index_of(other), index_of(dir), std::filesystem::copy_options::overwrite_existing);
  traffic.check(*dir.open(true));
  REQUIRE(dir.notices.size() == 1);
  CHECK(dir.notices[0].find("of another store") != std::string::npos);

  fill(dir, traffic, 60);  // Goes on; the checkpoint knows more than the copy that is restored.
  std::filesystem::copy_file(index_of(dir), index_of(earlier), std::filesystem::copy_options::overwrite_existing);
  then.check(*earlier.open(true));
  REQUIRE(earlier.notices.size() == 1);
  CHECK(earlier.notices[0].find("INDEX") != std::string::npos);
}

TEST_CASE("mmap checkpoint: opening does not read what a checkpoint has, and verify finds damage there") {
  MmapDir dir(kSmall);
  for (std::uint64_t first = 1; first < 20'000; first += 1000) {
    REQUIRE(dir.open()->write(lines(first, 1000), Durability::kernel));
  }
  REQUIRE(std::filesystem::exists(index_of(dir)));
  const auto frame = stat_of(*dir.open(true), "last_frame");
  poke(dir.segment(1), mmap_store::kSegmentHeaderBytes, "####");
  auto store = dir.open(true);
  CHECK(stat_of(*store, "last_frame") == frame);
  const auto verified = store->verify();
  REQUIRE_CODE(verified, Code::corrupt);
  CHECK(verified.error().text.find("000001.log: damaged at offset 64") != std::string::npos);
}

TEST_CASE("mmap checkpoint: damage in frames that opening did not read is found by the first read from them") {
  MmapDir dir(kSmall);
  {
    auto store = dir.open();
    for (int i = 0; i < 12; ++i) {
      REQUIRE(put(*store, "a key longer than its prefix " + std::to_string(10 + i), std::string(20'000, 'v')));
    }
    REQUIRE(put(*store, "a key longer than its prefix 10", "again"));
    REQUIRE(store->write(lines(1, 100), Durability::kernel));
  }
  REQUIRE(std::filesystem::exists(index_of(dir)));
  poke(dir.segment(2), 30'000, "#");
  const auto damaged = [](const auto& result) {
    return !result && result.error().code == Code::corrupt &&
           result.error().text.find("000002.log: damaged at offset") != std::string::npos;
  };
  const auto get = [](const Store& store, const std::string& key) {
    return store.get(key, [](std::string_view value) { CHECK(value.find('#') == std::string_view::npos); });
  };
  auto store = dir.open();
  CHECK(value_of(*store, number_key(50)) == "line 50");
  CHECK(damaged(get(*store, "a key longer than its prefix 13")));
  CHECK(damaged(get(*store, "a key longer than its prefix that is not there")));
  CHECK(value_of(*store, number_key(50)) == "line 50");
  CHECK(damaged(store->scan({}, [](std::string_view, std::string_view) { return true; })));
  const std::array<std::string_view, 1> absent{"absent"};
  CHECK(damaged(store->multi_get(absent, [](std::size_t, std::string_view) {})));
  CHECK(damaged(put(*store, "k", "v")));
  CHECK(damaged(store->compact()));
  CHECK(damaged(store->verify()));
  store.reset();
  // A write that only finds it when the batch is in the log does not know what the index is worth.
  store = dir.open();
  const auto written = put(*store, "a key longer than its prefix 13", "v");
  REQUIRE_FALSE(written);
  CHECK((written.error().code == Code::failed || written.error().code == Code::corrupt));
}

// Fails call number `nth` of what is done with a store, at its close alone or while it is written to as well. Returns
// whether there was such a call, and adds up the checkpoints that failed.
bool fail_call(std::uint64_t nth, int error, bool at_close, std::uint64_t& failures) {
  INFO("call " << nth << (at_close ? " of closing" : "") << " fails with " << error);
  PosixFault fault;
  MmapDir dir(EngineOptions{{"segment", "64K"}, {"checkpoint", at_close ? "1M" : "64K"}}, fault.table());
  Traffic traffic(nth);
  std::uint64_t acknowledged = 0;
  {
    auto store = dir.open();
    write(*store, traffic, 60);  // Beyond a 16th of a MiB: enough for a checkpoint at close.
    fault.fail_nth(nth, error);
    for (int i = 0; !at_close && i < 30; ++i) {
      const auto written = store->write(traffic.next(), Durability::kernel);
      written ? traffic.taken() : traffic.refused();
      if (!written) break;
    }
    acknowledged = store->last_batch();
    static_cast<void>(store->close());
    failures += stat_of(*store, "checkpoint_failures");
  }
  const bool failed = fault.has_failed();
  fault.heal();
  auto store = dir.open();
  CHECK(store->last_batch() >= acknowledged);
  if (store->last_batch() == acknowledged) traffic.check(*store);
  CHECK(store->verify());
  CHECK_FALSE(std::filesystem::exists(index_of(dir).native() + ".tmp"));
  return failed;
}

TEST_CASE("mmap checkpoint: whichever system call fails while it is written, the store loses nothing") {
  for (const int error : {EIO, ENOSPC}) {
    for (const bool at_close : {true, false}) {
      std::uint64_t failures = 0;
      std::uint64_t nth = 1;
      while (fail_call(nth, error, at_close, failures)) {
        nth += at_close ? 1 : 1 + nth / 5;
        REQUIRE(nth < 2000);
      }
      // Which call is the n-th is a matter of time: a segment that is being made ready takes some of the numbers, and
      // in the background any may be another's.
      if (at_close) CHECK(failures >= 2);
    }
  }
}

TEST_CASE("mmap checkpoint: after a power failure the log is an exact prefix, with a checkpoint of no more than it") {
  check_power_failures({.options = kSmall, .rounds = 25, .calls = 160, .batches = 40, .sync_every = 5});
}

}  // namespace
}  // namespace kvingest::test
