// The bytes of the mmap engine's files: the example of storage/FORMAT.md, and damage of every kind.
#include "storage/mmap/format.hpp"

#include <string>

#include "storage/mmap/record_place.hpp"
#include "storage/mmap/segment_list.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::mmap_store {
namespace {

using namespace std::string_literals;

constexpr std::uint64_t kSeed = 0x1122334455667788;
const std::string kPayload = "\x01\x01\x01kv";

std::string example_frame() {
  std::string frame(frame_bytes(kPayload.size()), '\0');
  encode(FrameHeader{.kind = FrameKind::batch, .number = 1, .batch = 1, .synced_to = 0, .payload_bytes = 5}, kSeed,
         frame.data());
  kPayload.copy(frame.data() + kFrameHeaderBytes, kPayload.size());
  encode_commit(frame.data(), kPayload, kSeed, frame.data() + frame.size() - kCommitBytes);
  return frame;
}

TEST_CASE("mmap format: the worked example is what is written") {
  std::string header(kSegmentHeaderBytes, '\0');
  encode(SegmentHeader{.number = 1, .seed = kSeed, .store_id = 0x0A0B0C0D0E0F1011}, header.data());
  CHECK(header == "kvsegmnt\x02\0\0\0\x40\0\0\0\x01\0\0\0\0\0\0\0"s +
                      "\x88\x77\x66\x55\x44\x33\x22\x11\x11\x10\x0F\x0E\x0D\x0C\x0B\x0A"s + std::string(16, '\0') +
                      "\x9C\xC7\x83\x71\x5C\xF5\xFC\x80"s);
  CHECK(example_frame() ==
        "kvfr\x01\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\x60\xD5\xE2\x98"s +
            "\x01\x01\x01kv\0\0\0kvcm\x40\0\0\0\x44\x2C\x67\x09\x32\x90\xF0\x36"s);
}

TEST_CASE("mmap format: the worked example of a list of segments is what is written, and is read back") {
  const test::TempDir dir;
  const SegmentList list{.store_id = 0x0A0B0C0D0E0F1011,
                         .synced_to = 20,
                         .segments = {{.number = 3, .frames_before = 11, .batches_before = 9, .last_frame = 18},
                                      {.number = 4, .frames_before = 18, .batches_before = 16, .last_frame = 0}}};
  REQUIRE(write_segment_list(Posix::real(), dir.path(), list));
  const auto number = [](char low) { return std::string(1, low) + std::string(7, '\0'); };
  CHECK(test::file_text(segment_list_path(dir.path())) ==
        "kvsegset\x01\0\0\0\x02\0\0\0\x11\x10\x0F\x0E\x0D\x0C\x0B\x0A"s + number(20) + number(3) + number(11) +
            number(9) + number(18) + number(4) + number(18) + number(16) + number(0) +
            "\x48\x4B\x97\x2F\xA1\x98\xDD\x25"s);
  const auto read = read_segment_list(Posix::real(), dir.path());
  REQUIRE((read && *read));
  CHECK((*read)->synced_to == 20);
  REQUIRE((*read)->find(4) != nullptr);
  CHECK((*read)->find(4)->batches_before == 16);
  CHECK((*read)->find(5) == nullptr);
}

TEST_CASE("mmap format: headers come back as they were") {
  std::string header(kSegmentHeaderBytes, '\0');
  encode(SegmentHeader{.number = 17, .seed = 1, .store_id = 2}, header.data());
  const auto segment = decode_segment_header(header.data());
  REQUIRE(segment);
  CHECK(segment->number == 17);
  CHECK(segment->store_id == 2);
  const std::string frame = example_frame();
  const auto decoded = decode_frame_header(frame.data(), kSeed);
  REQUIRE(decoded);
  CHECK(decoded->number == 1);
  CHECK(decoded->payload_bytes == 5);
  CHECK(frame_is_sound(frame.data(), 5, kSeed));
}

TEST_CASE("mmap format: any bit flipped anywhere is found") {
  std::string header(kSegmentHeaderBytes, '\0');
  encode(SegmentHeader{.number = 17, .seed = 1, .store_id = 2}, header.data());
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    std::string flipped = header;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(decode_segment_header(flipped.data()));
  }
  const std::string frame = example_frame();
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    std::string flipped = frame;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto decoded = decode_frame_header(flipped.data(), kSeed);
    CHECK((!decoded || decoded->payload_bytes == 5));
    CHECK_FALSE((decoded && frame_is_sound(flipped.data(), 5, kSeed)));
  }
}

TEST_CASE("mmap format: a frame of another segment is none of this one") {
  const std::string frame = example_frame();
  CHECK_FALSE(decode_frame_header(frame.data(), kSeed + 1));
}

TEST_CASE("mmap format: segment names") {
  CHECK(segment_name(17) == "000017.log");
  CHECK(segment_name(12345678) == "12345678.log");
  CHECK(segment_number("000017.log") == 17);
  CHECK(segment_number("12345678.log") == 12345678);
  for (const char* other : {"17.log", "000000.log", "000017.log.tmp", "torn-000017.segment", "00001x.log", ".log"}) {
    CHECK_FALSE(segment_number(other));
  }
}

TEST_CASE("mmap: a record's place keeps its place, and its size to within a 128th") {
  for (std::uint64_t bytes = 1; bytes < std::uint64_t{200} << 20; bytes += 1 + bytes / 37) {
    const RecordPlace place((std::uint64_t{1} << 44) - 1 - bytes, bytes % 2 == 0, bytes);
    CHECK(place.place() == (std::uint64_t{1} << 44) - 1 - bytes);
    CHECK(place.in_run() == (bytes % 2 == 0));
    CHECK(place.about_bytes() <= bytes + bytes / 128);
    CHECK(place.about_bytes() + bytes / 128 >= bytes);
    CHECK(place.word() >> RecordPlace::kBits == 0);
  }
}

}  // namespace
}  // namespace kvingest::mmap_store
