// Compaction of the mmap engine: space stays bounded, nothing that is read changes, nothing comes back, whatever is
// interrupted.
//
// World: small segments, so that little data meets every step; a second thread that writes while a scan stands still.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "storage/mmap/segment_list.hpp"
#include "tests/storage/mmap_fixture.hpp"
#include "tests/support/posix_fault.hpp"

namespace kvingest::test {
namespace {

constexpr std::uint64_t kSegment = std::uint64_t{64} << 10;
const EngineOptions kSmallSegments{{"segment", "64K"}};

std::uint64_t listed_bytes(const MmapDir& dir) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir.path())) {
    std::error_code gone;  // Compaction may remove it meanwhile.
    const auto size = std::filesystem::file_size(file.path(), gone);
    if (!gone && file.path().extension() == ".log") bytes += size;
  }
  return bytes;
}

// A listing is of no one moment: compaction may remove a file that it has counted and make one that it counts later.
// What is there for longer is in each of a few listings.
std::uint64_t log_file_bytes(const MmapDir& dir) {
  return std::min({listed_bytes(dir), listed_bytes(dir), listed_bytes(dir)});
}

std::uint64_t entry_bytes(const std::map<std::string, std::string>& entries) {
  std::uint64_t bytes = 0;
  for (const auto& [key, value] : entries) bytes += key.size() + value.size();
  return bytes;
}

std::string value_for(std::uint64_t number, std::size_t bytes) {
  std::string value = std::to_string(number) + ":";
  value.resize(bytes, static_cast<char>('a' + number % 26));
  return value;
}

void check_same(Store& store, const std::map<std::string, std::string>& want) {
  CHECK(entries_of(store) == Entries(want.begin(), want.end()));
  CHECK(store.count().value() == want.size());
}

// ---- space ----------------------------------------------------------------------------------------------------------

TEST_CASE(
    "mmap: files never take more than twice the live bytes and two segments, however often keys are overwritten") {
  for (const std::uint64_t keys : {3U, 60U, 250U, 1000U}) {
    INFO(keys << " keys");
    MmapDir dir(kSmallSegments);
    auto store = dir.open();
    std::mt19937_64 random(keys);
    std::map<std::string, std::string> want;
    std::uint64_t written = 0;
    std::uint64_t largest = 0;
    for (std::uint64_t round = 0; written < 40 * kSegment + 10 * keys * 500; ++round) {
      WriteBatch batch;
      for (int i = 0; i < 4; ++i) {
        const std::string key = "key" + std::to_string(round < keys ? round : random() % keys);
        want[key] = value_for(round, 400 + random() % 200);
        batch.put(key, want[key]);
        written += want[key].size();
      }
      REQUIRE(store->write(batch, Durability::kernel));
      const std::uint64_t bound = 2 * entry_bytes(want) + 2 * kSegment;
      const std::uint64_t taken = log_file_bytes(dir);
      largest = std::max(largest, taken * 1000 / bound);
      if (taken > bound) FAIL("round " << round << ": " << taken << " bytes, at most " << bound << " promised");
    }
    CHECK(largest > 300);  // Else the bound would say nothing.
    CHECK(stat_of(*store, "compacted_segments") > 10);
    check_same(*store, want);
    CHECK(store->verify());
    store.reset();
    store = dir.open();
    check_same(*store, want);
  }
}

TEST_CASE("mmap: keys that come and go beside many that stay leave no growing trail of erasures") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  std::map<std::string, std::string> want;
  for (int i = 0; i < 500; ++i) {
    want["stays" + std::to_string(i)] = value_for(static_cast<std::uint64_t>(i), 500);
    REQUIRE(put(*store, "stays" + std::to_string(i), want["stays" + std::to_string(i)]));
  }
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    WriteBatch batch;
    batch.put("goes" + std::string(40, '-') + std::to_string(i), "v");
    if (i > 0) batch.erase("goes" + std::string(40, '-') + std::to_string(i - 1));
    REQUIRE(store->write(batch, Durability::kernel));
    if (i % 50 != 0) continue;
    const std::uint64_t taken = log_file_bytes(dir);
    if (taken > 2 * entry_bytes(want) + 2 * kSegment) FAIL("after " << i << " keys: " << taken << " bytes");
  }
  want["goes" + std::string(40, '-') + "29999"] = "v";
  check_same(*store, want);
  store.reset();
  check_same(*dir.open(), want);
}

TEST_CASE("mmap: compact gives back what was erased, and says so in the statistics") {
  MmapDir dir(EngineOptions{{"segment", "1M"}});
  auto store = dir.open();
  for (std::uint64_t i = 0; i < 2000; ++i) REQUIRE(put(*store, "key" + std::to_string(i), value_for(i, 2000)));
  WriteBatch erase;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    if (i % 10 != 0) erase.erase("key" + std::to_string(i));
  }
  REQUIRE(store->write(erase, Durability::kernel));
  REQUIRE(store->compact());
  CHECK(store->count().value() == 200);
  CHECK(stat_of(*store, "live_bytes") > 200 * 2000);
  CHECK(stat_of(*store, "live_bytes") < 200 * 2050);
  CHECK(stat_of(*store, "space_amplification_percent") < 115);
  CHECK(stat_of(*store, "dead_bytes") < 200 * 2000 / 8);
  REQUIRE(store->close());
  CHECK(log_file_bytes(dir) < 200 * 2000 * 9 / 8);
  CHECK(dir.open()->count().value() == 200);
}

TEST_CASE("mmap: a store without dead records is left as it is") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  for (std::uint64_t i = 0; i < 500; ++i) REQUIRE(put(*store, "key" + std::to_string(i), value_for(i, 1000)));
  const auto before = stat_of(*store, "last_frame");
  REQUIRE(store->compact());
  CHECK(stat_of(*store, "last_frame") == before);
  CHECK(stat_of(*store, "compaction_moved_bytes") == 0);
}

// ---- what is read ---------------------------------------------------------------------------------------------------

TEST_CASE("mmap: a scan sees the store as of its start while its records are erased and compaction moves the others") {
  for (const bool reverse : {false, true}) {
    MmapDir dir(kSmallSegments);
    auto store = dir.open();
    std::map<std::string, std::string> want;
    REQUIRE(store->write(lines(1, 2000), Durability::kernel));
    for (std::uint64_t i = 1; i <= 2000; ++i) want[number_key(i)] = "line " + std::to_string(i);
    for (std::uint64_t i = 0; i < 2000; ++i) {
      want["key " + std::to_string(i)] = value_for(i, 100);
      REQUIRE(put(*store, "key " + std::to_string(i), value_for(i, 100)));
    }
    std::uint64_t changed = 0;
    const auto change_all = [&] {
      for (std::uint64_t part = 0; part < 10; ++part) {
        WriteBatch batch;
        for (std::uint64_t i = part; i <= 2000; i += 10) {
          i % 3 == 0 ? batch.erase(number_key(i)) : batch.put("key " + std::to_string(i), "new");
          if (i % 7 == 0) batch.erase("key " + std::to_string(i));
        }
        if (store->write(batch, Durability::kernel) && store->compact()) ++changed;
      }
    };
    check_scan_gives(*store, want, reverse, [&](std::size_t seen) {
      if (seen == 10 || seen == 1500) std::thread(change_all).join();
    });
    REQUIRE(changed == 20);
    CHECK(stat_of(*store, "compaction_moved_bytes") > 0);
    // What the scan held is given back by the next one who writes.
    const auto held = stat_of(*store, "segments");
    REQUIRE(put(*store, "after", "the scan"));
    REQUIRE(store->compact());
    CHECK(stat_of(*store, "segments") < held);
    const Entries after = entries_of(*store);
    store.reset();
    CHECK(entries_of(*dir.open()) == after);
  }
}

TEST_CASE("mmap: readers on other threads never miss a record while compaction moves all of them, again and again") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  REQUIRE(store->write(lines(1, 1000), Durability::kernel));
  for (std::uint64_t i = 0; i < 300; ++i) REQUIRE(put(*store, "stays" + std::to_string(i), value_for(i, 300)));
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> reads{0};
  // Catch2's assertions are for one thread.
  const auto holds = [&](const std::string& key, std::string_view want) {
    bool same = false;
    const auto got = store->get(key, [&](std::string_view value) { same = value == want; });
    return got && *got && same;
  };
  std::thread reader([&] {
    for (std::uint64_t i = 0; !done; i = (i + 1) % 300) {
      if (!holds("stays" + std::to_string(i), value_for(i, 300))) ++wrong;
      if (!holds(number_key(1 + i), "line " + std::to_string(1 + i))) ++wrong;
      std::size_t rows = 0;
      if (i % 20 == 0) {
        static_cast<void>(
            store->scan({.first = "stays", .last = "stayt"}, [&](std::string_view, std::string_view value) {
              rows += value.size() == 300 ? 1 : 0;
              return true;
            }));
        if (rows != 300) ++wrong;
      }
      ++reads;
    }
  });
  for (std::uint64_t round = 0; round < 40 || reads < 300; ++round) {
    REQUIRE(put(*store, "changes", value_for(round, 60'000)));
    if (round % 4 == 0) {
      WriteBatch again;  // Makes the segments of what stays worth compacting.
      for (std::uint64_t i = round % 7; i < 300; i += 7) again.put("stays" + std::to_string(i), value_for(i, 300));
      REQUIRE(store->write(again, Durability::kernel));
      REQUIRE(store->compact());
    }
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(stat_of(*store, "compacted_segments") > 10);
}

// ---- nothing comes back ---------------------------------------------------------------------------------------------

// Batches that overwrite and erase across many segments, and the model of what is there.
class Changes {
 public:
  explicit Changes(std::uint64_t seed) : random_(seed) {}

  WriteBatch next() {
    WriteBatch batch;
    for (int i = 0; i < 12; ++i) {
      const std::string key = "key" + std::to_string(random_() % 150);
      if (random_() % 3 == 0) {
        batch.erase(key);
        pending_.emplace_back(key, std::nullopt);
      } else {
        const std::string value = value_for(random_(), 100 + random_() % 900);
        batch.put(key, value);
        pending_.emplace_back(key, value);
      }
    }
    return batch;
  }
  void taken() {
    for (auto& [key, value] : std::exchange(pending_, {})) {
      value ? static_cast<void>(model_[key] = *value) : static_cast<void>(model_.erase(key));
    }
  }
  void refused() { pending_.clear(); }
  [[nodiscard]] const std::map<std::string, std::string>& model() const { return model_; }

 private:
  std::mt19937_64 random_;
  std::map<std::string, std::string> model_;
  std::vector<std::pair<std::string, std::optional<std::string>>> pending_;
};

TEST_CASE("mmap: random changes and compactions agree with std::map, also after each reopening") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Changes changes(seed);
  MmapDir dir(kSmallSegments);
  for (int round = 0; round < 8; ++round) {
    auto store = dir.open();
    check_same(*store, changes.model());
    for (int i = 0; i < 60; ++i) {
      REQUIRE(store->write(changes.next(), Durability::kernel));
      changes.taken();
      if (i % 20 == 7) REQUIRE(store->compact());
    }
    check_same(*store, changes.model());
    CHECK(store->verify().value().records == changes.model().size());
  }
}

TEST_CASE("mmap: compaction that stops at any system call, for ever, loses nothing and brings nothing back") {
  for (const bool power : {false, true}) {
    std::uint64_t nth = 1;
    std::uint64_t compacted = 0;
    for (bool happened = true; happened; nth += 1 + nth / 12) {
      PosixFault fault;
      INFO((power ? "power cut at call " : "end at call ") << nth);
      REQUIRE(nth < 5000);
      MmapDir dir(kSmallSegments, fault.table());
      Changes changes(nth);
      DiskModel* disk = power ? &fault.watch_disk() : nullptr;
      {
        auto store = dir.open();
        for (int i = 0; i < 40; ++i) {
          REQUIRE(store->write(changes.next(), Durability::disk));
          changes.taken();
        }
        fault.fail_nth(nth, EIO, true);
        static_cast<void>(store->compact());
        compacted += stat_of(*store, "compacted_segments");
        static_cast<void>(store->close());
      }
      happened = fault.has_failed();
      if (disk != nullptr) disk->lose(nth);
      fault.heal();
      for (int again = 0; again < 2; ++again) {
        auto store = dir.open();
        check_same(*store, changes.model());
        CHECK(store->verify());
        CHECK(store->last_batch() == 40);
        REQUIRE(store->compact());
        check_same(*store, changes.model());
      }
    }
    CHECK(nth > 3);  // Closing alone makes three calls; what compaction has left to do by then is not always the same.
    CHECK(compacted > 0);
  }
}

TEST_CASE("mmap: a store killed at any moment of overwriting and compacting has all that was written") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  Changes changes(11);
  MmapDir crashed(kSmallSegments);
  std::uint64_t compacted = 0;
  for (std::uint64_t batch = 1; batch <= 150; ++batch) {
    REQUIRE(store->write(changes.next(), Durability::kernel));
    changes.taken();
    if (batch % 5 != 0) continue;
    // A copy that compaction went on under is no moment: only one with the same list and last frame counts.
    const auto list = mmap_store::segment_list_path(dir.path());
    const auto now = [&] {
      const std::string text = std::filesystem::exists(list) ? file_text(list) : std::string();
      return std::pair(text, stat_of(*store, "last_frame"));
    };
    try {
      const auto before = now();
      crashed.copy_from(dir);
      if (now() != before) continue;
    } catch (const std::filesystem::filesystem_error&) {
      continue;
    }
    auto again = crashed.open();
    CHECK(again->last_batch() == batch);
    check_same(*again, changes.model());
    ++compacted;
  }
  CHECK(compacted > 5);
  CHECK(stat_of(*store, "compacted_segments") > 3);
}

// ---- runs -----------------------------------------------------------------------------------------------------------

TEST_CASE("mmap: compaction moves what is left of runs, and joins neighbours to one entry") {
  MmapDir dir(kSmallSegments);
  std::map<std::string, std::string> want;
  {
    auto store = dir.open();
    for (std::uint64_t i = 1; i <= 3000; ++i) {
      REQUIRE(store->write(lines(i, 1), Durability::kernel));  // A frame each.
      want[number_key(i)] = "line " + std::to_string(i);
    }
    // How much of this the compaction in the background did already is not known.
    REQUIRE(store->compact());
    check_same(*store, want);
    CHECK(stat_of(*store, "index_bytes") < want.size());  // An entry of its own takes more than 30 bytes.
    WriteBatch batch;
    for (std::uint64_t i = 1; i <= 3000; ++i) {
      if (i % 100 < 40 || i % 7 == 0) {
        batch.erase(number_key(i));
        want.erase(number_key(i));
      } else if (i % 11 == 0) {
        batch.put(number_key(i), "again");
        want[number_key(i)] = "again";
      }
    }
    REQUIRE(store->write(batch, Durability::kernel));
    for (int i = 0; i < 3; ++i) {
      REQUIRE(put(*store, "k" + std::to_string(i % 2), std::string(60'000, 'k')));
      want["k" + std::to_string(i % 2)] = std::string(60'000, 'k');
    }
    REQUIRE(store->compact());
    check_same(*store, want);
    CHECK(store->verify());
  }
  auto store = dir.open();
  check_same(*store, want);
}

// ---- files ----------------------------------------------------------------------------------------------------------

TEST_CASE("mmap: a dropped segment whose file is still there is ignored and removed, a listed one must be there") {
  MmapDir dir(kSmallSegments);
  {
    auto store = dir.open();
    for (std::uint64_t i = 0; i < 300; ++i) REQUIRE(put(*store, "key", value_for(i, 2000)));
  }
  REQUIRE_FALSE(std::filesystem::exists(dir.segment(1)));
  write_text(dir.segment(1), "left over");
  CHECK(dir.open(true)->count().value() == 1);
  CHECK(std::filesystem::exists(dir.segment(1)));
  CHECK(value_of(*dir.open(), "key") == value_for(299, 2000));
  CHECK_FALSE(std::filesystem::exists(dir.segment(1)));

  const auto list_path = mmap_store::segment_list_path(dir.path());
  const std::string list = file_text(list_path);
  for (std::size_t at = 0; at < list.size(); ++at) {
    write_text(list_path, list.substr(0, at) + static_cast<char>(list[at] ^ 1) + list.substr(at + 1));
    REQUIRE_CODE(dir.try_open(), Code::corrupt);
  }
  std::filesystem::remove(list_path);
  const auto no_list = dir.try_open();
  REQUIRE_CODE(no_list, Code::corrupt);
  CHECK(no_list.error().text.find("000001.log is missing") != std::string::npos);
  write_text(list_path, list);
  CHECK(dir.open()->count().value() == 1);
}

TEST_CASE("mmap: damage in a segment ends its compaction, and nothing is dropped") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  for (std::uint64_t i = 0; i < 60; ++i) REQUIRE(put(*store, "key" + std::to_string(i), value_for(i, 2000)));
  WriteBatch erase;
  for (int i = 0; i < 60; i += 2) erase.erase("key" + std::to_string(i));
  REQUIRE(store->write(erase, Durability::disk));
  poke(dir.segment(1), 5000, "#");
  const auto compacted = store->compact();
  REQUIRE_CODE(compacted, Code::corrupt);
  CHECK(compacted.error().text.find("000001.log") != std::string::npos);
  CHECK(std::filesystem::exists(dir.segment(1)));
  CHECK(value_of(*store, "key59") == value_for(59, 2000));
  REQUIRE(put(*store, "still", "written"));
}

TEST_CASE("mmap: a backup of a store that was compacted is a store itself") {
  MmapDir dir(kSmallSegments);
  auto store = dir.open();
  Changes changes(5);
  for (int i = 0; i < 80; ++i) {
    REQUIRE(store->write(changes.next(), Durability::kernel));
    changes.taken();
  }
  REQUIRE(store->compact());
  REQUIRE(stat_of(*store, "compacted_segments") > 0);
  MmapDir copy(kSmallSegments);
  REQUIRE(store->backup(copy.path()));
  auto copied = copy.open();
  check_same(*copied, changes.model());
  CHECK(copied->last_batch() == 80);
  CHECK(copied->verify());
}

}  // namespace
}  // namespace kvingest::test
