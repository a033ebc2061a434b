// How the mmap engine opens a damaged log: a torn tail is cut, set aside and said; damage below what is known to be on
// disk is refused; nothing behind a hole comes back; a power failure leaves an exact prefix.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "storage/mmap/format.hpp"
#include "storage/mmap/opening_progress.hpp"
#include "tests/storage/mmap_fixture.hpp"
#include "tests/storage/mmap_power.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

namespace format = mmap_store;

// Where the frames of a segment begin, and behind them where the log ends.
std::vector<std::uint64_t> frame_offsets(const std::filesystem::path& path) {
  const std::string bytes = file_text(path);
  const auto segment = format::decode_segment_header(bytes.data());
  REQUIRE(segment);
  std::vector<std::uint64_t> offsets{format::kSegmentHeaderBytes};
  while (offsets.back() + format::kFrameHeaderBytes <= bytes.size()) {
    const auto frame = format::decode_frame_header(bytes.data() + offsets.back(), segment->seed);
    if (!frame) break;
    offsets.push_back(offsets.back() + format::frame_bytes(frame->payload_bytes));
  }
  return offsets;
}

// A crash after `batches` batches of 10 lines each, of which the first `synced` were followed by a sync.
void crash_after(MmapDir& crashed, std::uint64_t batches, std::uint64_t synced = 0) {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  auto store = dir.open();
  for (std::uint64_t i = 0; i < batches; ++i) {
    REQUIRE(store->write(lines(1 + 10 * i, 10), Durability::kernel));
    if (i + 1 == synced) REQUIRE(store->sync());
  }
  crashed.copy_from(dir);
}

// The directory opens with exactly `batches` batches, says and keeps what was torn, and goes on from there.
void check_opens_with(MmapDir& dir, std::uint64_t batches, bool torn) {
  const std::string before = file_text(dir.segment(1));
  {
    auto store = dir.open(true);
    CHECK(store->last_batch() == batches);
    CHECK(store->verify().value().torn_tail.empty() != torn);
    CHECK(store->close());
    CHECK(file_text(dir.segment(1)) == before);
    CHECK(dir.torn_files().empty());
  }
  dir.notices.clear();
  {
    auto store = dir.open();
    CHECK(store->last_batch() == batches);
    CHECK(store->count().value() == 10 * batches);
    CHECK(dir.notices.size() == (torn ? 1 : 0));
    CHECK(dir.torn_files().empty() != torn);
    if (torn) CHECK(dir.notices.at(0).find("torn tail") != std::string::npos);
    if (torn) CHECK(dir.notices.at(0).find("set aside") != std::string::npos);
    REQUIRE(store->write(lines(1 + 10 * batches, 10), Durability::kernel));
  }
  dir.notices.clear();
  auto store = dir.open();
  CHECK(store->count().value() == 10 * batches + 10);
  CHECK(store->verify());
  CHECK(dir.notices.empty());
}

TEST_CASE("mmap: a log cut at any byte of its last frames opens with the whole frames before the cut") {
  MmapDir crashed;
  crash_after(crashed, 4);
  const auto offsets = frame_offsets(crashed.segment(1));
  REQUIRE(offsets.size() == 5);
  MmapDir cut(EngineOptions{{"segment", "64K"}});
  cut.copy_from(crashed);
  for (std::uint64_t at = offsets[4]; at >= offsets[2] - 3; --at) {
    INFO("cut at " << at);
    std::filesystem::resize_file(cut.segment(1), at);
    const auto whole = std::upper_bound(offsets.begin(), offsets.end(), at) - offsets.begin() - 1;
    const auto store = cut.open(true);
    REQUIRE(store->last_batch() == static_cast<std::uint64_t>(whole));
    REQUIRE(store->count().value() == 10 * static_cast<std::uint64_t>(whole));
    REQUIRE(cut.notices.empty() == (at == offsets[static_cast<std::size_t>(whole)]));
    cut.notices.clear();
  }
  for (const std::uint64_t at : {offsets[4], offsets[4] - 1, offsets[3] + 100, offsets[3] + 1, offsets[3]}) {
    INFO("cut at " << at << " and written to");
    cut.copy_from(crashed);
    std::filesystem::resize_file(cut.segment(1), at);
    check_opens_with(cut, at == offsets[4] ? 4 : 3, at != offsets[4] && at != offsets[3]);
  }
}

TEST_CASE("mmap: zeros from any byte of the last frame on are a torn tail as well") {
  MmapDir crashed;
  crash_after(crashed, 3);
  const auto offsets = frame_offsets(crashed.segment(1));
  MmapDir cut(EngineOptions{{"segment", "64K"}});
  for (std::uint64_t at = offsets[2]; at < offsets[3]; at += 19) {
    INFO("zeros from " << at);
    cut.copy_from(crashed);
    poke(cut.segment(1), at, std::string(offsets[3] - at, '\0'));
    check_opens_with(cut, 2, at != offsets[2]);
  }
}

TEST_CASE("mmap: any bit flipped in an unsynced frame is found, and the log ends before it") {
  MmapDir crashed;
  crash_after(crashed, 3);
  const auto offsets = frame_offsets(crashed.segment(1));
  const std::string bytes = file_text(crashed.segment(1));
  MmapDir flipped(EngineOptions{{"segment", "64K"}});
  for (std::uint64_t at = offsets[1]; at < offsets[2]; ++at) {
    INFO("bit " << at % 8 << " of byte " << at);
    flipped.copy_from(crashed);
    poke(flipped.segment(1), at, std::string(1, static_cast<char>(bytes[at] ^ (1 << at % 8))));
    auto store = flipped.open(true);
    REQUIRE(store->last_batch() == 1);
    REQUIRE(store->count().value() == 10);
  }
}

TEST_CASE("mmap: any bit flipped below what is known to be on disk is refused, and nothing is changed") {
  MmapDir crashed;
  crash_after(crashed, 4, 2);  // The third frame says that the first two are on disk.
  const auto offsets = frame_offsets(crashed.segment(1));
  const std::string bytes = file_text(crashed.segment(1));
  MmapDir flipped(EngineOptions{{"segment", "64K"}});
  for (std::uint64_t at = 0; at < offsets[2]; ++at) {
    INFO("bit " << at % 8 << " of byte " << at);
    flipped.copy_from(crashed);
    poke(flipped.segment(1), at, std::string(1, static_cast<char>(bytes[at] ^ (1 << at % 8))));
    const std::string damaged = file_text(flipped.segment(1));
    const auto store = flipped.try_open();
    REQUIRE_CODE(store, Code::corrupt);
    REQUIRE(store.error().text.find("000001.log") != std::string::npos);
    REQUIRE(store.error().text.find("offset") != std::string::npos);
    REQUIRE(file_text(flipped.segment(1)) == damaged);
    REQUIRE(flipped.torn_files().empty());
  }
}

TEST_CASE("mmap: a damaged frame of a closed store is refused, also the last one") {
  MmapDir dir;
  REQUIRE(dir.open()->write(lines(1, 10), Durability::kernel));
  poke(dir.segment(1), format::kSegmentHeaderBytes + format::kFrameHeaderBytes + 30, "#");
  CHECK_CODE(dir.try_open(), Code::corrupt);
  CHECK_CODE(dir.try_open(true), Code::corrupt);
}

TEST_CASE("mmap: a sound frame behind a hole does not come back, now or later") {
  MmapDir crashed;
  crash_after(crashed, 3);
  const auto offsets = frame_offsets(crashed.segment(1));
  poke(crashed.segment(1), offsets[1], std::string(offsets[2] - offsets[1], '\0'));
  check_opens_with(crashed, 1, true);
  auto store = crashed.open();
  CHECK(store->last_batch() == 2);
  CHECK(value_of(*store, number_key(11)) == "line 11");  // The one written since.
  CHECK_FALSE(value_of(*store, number_key(21)));
}

TEST_CASE("mmap: segments behind a torn one are set aside with it") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  MmapDir crashed(EngineOptions{{"segment", "64K"}});
  {
    PosixFault no_syncs;  // Full segments are synced in the background; here that must not be known.
    MmapDir unsynced(EngineOptions{{"segment", "64K"}}, no_syncs.table());
    auto store = unsynced.open();
    REQUIRE(put(*store, "a", std::string(30'000, 'a')));
    REQUIRE(put(*store, "b", std::string(30'000, 'b')));
    REQUIRE(put(*store, "c", std::string(60'000, 'c')));
    crashed.copy_from(unsynced);
  }
  poke(crashed.segment(1), 40'000, "#");
  {
    auto store = crashed.open();
    CHECK(entries_of(*store) == Entries{{"a", std::string(30'000, 'a')}});
    CHECK(crashed.torn_files().size() == 2);
    REQUIRE(crashed.notices.size() == 1);
    CHECK(crashed.notices[0].find("000002") != std::string::npos);
    REQUIRE(put(*store, "d", std::string(60'000, 'd')));
  }
  auto store = crashed.open();
  CHECK(store->count().value() == 2);
  CHECK(crashed.notices.size() == 1);
}

TEST_CASE("mmap: segments without frames behind a torn one leave no gap, whatever of them is used again") {
  PosixFault no_syncs;
  MmapDir unsynced(EngineOptions{{"segment", "64K"}}, no_syncs.table());
  auto running = unsynced.open();
  for (int i = 0; i < 4; ++i)
    REQUIRE(put(*running, std::string(1, static_cast<char>('a' + i)), std::string(60'000, 'v')));
  REQUIRE(eventually([&] { return std::filesystem::exists(unsynced.segment(5)); }));  // It is made in the background.
  // What is left of each segment: all of it, only zeros behind its header, or a first frame that is not sound.
  const auto [left, count] = GENERATE(table<std::string, std::uint64_t>({{"stay empty empty empty", 1},
                                                                         {"stay torn empty empty", 1},
                                                                         {"torn empty empty empty", 0},
                                                                         {"empty empty empty empty", 0}}));
  CAPTURE(left);
  MmapDir crashed(EngineOptions{{"segment", "64K"}});
  crashed.copy_from(unsynced);
  std::filesystem::remove(crashed.segment(5));
  std::istringstream words(left);
  int number = 0;
  for (std::string word; words >> word;) {
    const auto path = crashed.segment(++number);
    const std::string zeros(std::filesystem::file_size(path) - format::kSegmentHeaderBytes, '\0');
    if (word == "empty") poke(path, format::kSegmentHeaderBytes, zeros);
    if (word == "torn") poke(path, format::kSegmentHeaderBytes + format::kFrameHeaderBytes + 100, "#");
  }
  // Opened and closed; again; then written to.
  for (int round = 0; round < 2; ++round) CHECK(crashed.open()->count().value() == count);
  for (int i = 0; i < 3; ++i) REQUIRE(put(*crashed.open(), std::to_string(i), std::string(60'000, 'n')));
  CHECK(crashed.open()->count().value() == count + 3);
}

TEST_CASE("mmap: missing, foreign and renamed segments are refused") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  {
    auto store = dir.open();
    for (int i = 0; i < 5; ++i) REQUIRE(put(*store, "k" + std::to_string(i), std::string(50'000, 'x')));
  }
  MmapDir damaged(EngineOptions{{"segment", "64K"}});
  const auto refused = [&](std::string_view word) {
    const auto opened = damaged.try_open();
    REQUIRE_CODE(opened, Code::corrupt);
    CHECK(opened.error().text.find(word) != std::string::npos);
    damaged.copy_from(dir);
  };
  damaged.copy_from(dir);
  std::filesystem::remove(damaged.segment(2));
  refused("000002.log is missing");
  std::filesystem::remove(damaged.segment(3));
  std::filesystem::rename(damaged.segment(2), damaged.segment(3));
  refused("says segment 2");
  MmapDir other;
  REQUIRE(put(*other.open(), "other", "store"));
  std::filesystem::remove(damaged.segment(5));
  std::filesystem::copy_file(other.segment(1), damaged.segment(5));
  refused("000005.log");
  std::filesystem::resize_file(damaged.segment(5), 10);
  refused("too short");
  CHECK(damaged.open()->count().value() == 5);
}

TEST_CASE("mmap: a log of many segments, read by several threads and in several goes, gives the last of each key") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (const bool with_runs : {false, true}) {
    MmapDir dir(EngineOptions{{"segment", "64K"}, {"index", "1M"}, {"checkpoint", "1T"}});  // A MiB at a time.
    std::map<std::string, std::string> want;
    auto store = dir.open();
    for (int i = 0; i < 1500; ++i) {
      WriteBatch batch;
      for (int k = 0; k < 10; ++k) {
        const std::uint64_t number = random() % 9000;
        const std::string key = number % 3 == 0   ? number_key(number)
                                : number % 3 == 1 ? "a key longer than its prefix " + std::to_string(number)
                                                  : std::to_string(number);
        if (random() % 5 == 0) {
          batch.erase(key);
          want.erase(key);
        } else {
          want[key] = std::string(random() % 700, static_cast<char>('a' + i % 26));
          batch.put(key, want[key]);
        }
      }
      if (with_runs && i % 50 == 0) {
        const std::uint64_t first = random() % 9000;
        batch.append(lines(first, 40));
        for (std::uint64_t n = first; n < first + 40; ++n) want[number_key(n)] = "line " + std::to_string(n);
      }
      REQUIRE(store->write(batch, Durability::kernel));
    }
    const std::uint64_t live = stat_of(*store, "live_bytes");
    REQUIRE(store->close());
    store = dir.open(true);
    CHECK(stat_of(*store, "bytes_behind_checkpoint") > (3 << 19));
    CHECK(stat_of(*store, "segments") > 20);
    CHECK(entries_of(*store) == Entries(want.begin(), want.end()));
    CHECK(store->count().value() == want.size());
    CHECK(stat_of(*store, "live_bytes") == live);
    CHECK(store->verify().value().records == want.size());
  }
}

TEST_CASE("mmap: how far reading a log has come is said by the thread that began it") {
  std::vector<std::string> said;
  const mmap_store::OpeningProgress::Notice notice = [&](std::string_view text) { said.emplace_back(text); };
  mmap_store::OpeningProgress progress(notice, "opening here", std::uint64_t{8} << 20, std::chrono::milliseconds(0));
  progress.add(1000);
  CHECK(said.empty());
  progress.add(std::uint64_t{2} << 20);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("opening here: 2 of 8 MiB of log read (25 %)") == 0);
  std::thread([&] { progress.add(std::uint64_t{2} << 20); }).join();
  CHECK(said.size() == 1);
  progress.add(1);
  REQUIRE(said.size() == 2);
  CHECK(said[1].find("4 of 8 MiB") != std::string::npos);
  mmap_store::OpeningProgress rarely(notice, "opening here", 10, std::chrono::hours(1));
  rarely.add(std::uint64_t{2} << 20);
  CHECK(said.size() == 2);
}

TEST_CASE("mmap: what a crash left half made is removed") {
  MmapDir dir;
  REQUIRE(put(*dir.open(), "k", "v"));
  write_text(dir.path() / "000002.log.tmp", "half a segment");
  CHECK(dir.open(true)->count().value() == 1);
  CHECK(std::filesystem::exists(dir.path() / "000002.log.tmp"));
  CHECK(dir.open()->count().value() == 1);
  CHECK_FALSE(std::filesystem::exists(dir.path() / "000002.log.tmp"));
}

TEST_CASE("mmap: after a power failure the log is an exact prefix with all that was synced in it") {
  check_power_failures({.options = {{"segment", "64K"}}, .rounds = 15, .calls = 60, .batches = 30, .sync_every = 3});
}

}  // namespace
}  // namespace kvingest::test
