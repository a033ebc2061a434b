// The bytes of the mmap engine's files: the example of storage/FORMAT.md, and damage of every kind.
#include "storage/mmap/format.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/codec/fixed.hpp"
#include "storage/mmap/checkpoint_format.hpp"
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

// The checkpoint of a store that holds the frame of the example and nothing else.
CheckpointTable example_checkpoint(std::string& block) {
  BplusTree::Prefix prefix = BplusTree::Prefix{'k'} << 120;
  std::uint64_t word = std::uint64_t{1} << BplusTree::kValueBits |
                       RecordPlace(kSegmentHeaderBytes + kFrameHeaderBytes, false, kPayload.size()).word();
  KeyBlockEncoder keys;
  keys.add_leaf({{&prefix, 1}, {&word, 1}});
  block = keys.bytes();
  CheckpointTable table{.store_id = 0x0A0B0C0D0E0F1011, .frame = 1, .batch = 1, .synced_to = 1};
  table.segments.push_back({.number = 1,
                            .seed = kSeed,
                            .base = 0,
                            .place_end = 128,
                            .end = 128,
                            .last_frame = 1,
                            .last_batch = 1,
                            .commit = 0x36F0903209672C44,
                            .records = 1,
                            .bytes = 5});
  table.blocks.push_back({.offset = kCheckpointHeaderBytes,
                          .bytes = static_cast<std::uint32_t>(block.size()),
                          .kind = BlockKind::keys,
                          .entries = 1,
                          .leaves = 1,
                          .checksum = checksum_of(block)});
  return table;
}

TEST_CASE("mmap format: the worked example of a checkpoint is what is written, and is read back") {
  const auto number = [](char low) { return std::string(1, low) + std::string(7, '\0'); };
  std::string block;
  const CheckpointTable table = example_checkpoint(block);
  CHECK(block == "\x01\x00\x01k\x0A\xD0\x01"s);
  const std::string table_bytes = encode_table(table);
  CHECK(table_bytes == number(1) + "\x88\x77\x66\x55\x44\x33\x22\x11"s + number(0) + number('\x80') + number('\x80') +
                           number(0) + number(0) + number(1) + number(1) + "\x44\x2C\x67\x09\x32\x90\xF0\x36"s +
                           number(1) + number(5) + number(0) + number(96) +
                           "\x07\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0"s + "\xE4\x4F\x9F\x4C\x5F\x9D\xE9\xC0"s +
                           number(0));
  const std::string header = encode_header(table, table_bytes, kCheckpointHeaderBytes + block.size());
  CHECK(header == "kvindex\n\x01\0\0\0\x60\0\0\0\x11\x10\x0F\x0E\x0D\x0C\x0B\x0A"s + number(1) + number(1) + number(1) +
                      number(103) + "\x01\0\0\0\x01\0\0\0"s + number(0) + number(0) +
                      "\x17\x59\xB7\x47\x29\xF9\xD2\x7E"s + "\x0F\x97\x8C\x8E\x83\x0A\x8F\xFB"s);
  const auto place = decode_header(header);
  REQUIRE(place);
  CHECK(place->offset == 103);
  CHECK(place->bytes == table_bytes.size());
  const auto read = decode_table(header, table_bytes);
  REQUIRE(read);
  CHECK(read->segments.at(0).commit == table.segments[0].commit);
  CHECK(read->blocks.at(0).checksum == table.blocks[0].checksum);
  KeyBlockDecoder decoder(block);
  BplusTree::Prefix prefixes[BplusTree::kLeafEntries];
  std::uint64_t words[BplusTree::kLeafEntries];
  REQUIRE(decoder.next_leaf(prefixes, words) == 1);
  CHECK(decoder.at_end());
  const bool same_prefix = prefixes[0] == BplusTree::Prefix{'k'} << 120;
  CHECK(same_prefix);
  CHECK(RecordPlace::from_word(words[0] & BplusTree::kValueMask).place() == 104);
}

TEST_CASE("mmap format: keys, runs and meta entries of a checkpoint come back as they were, cut ones do not") {
  std::mt19937_64 random(1);
  std::map<std::pair<std::string, std::uint8_t>, std::uint64_t> want;
  while (want.size() < 1000) {
    std::string key(1 + random() % 20, '\0');
    for (char& letter : key) letter = static_cast<char>(random() % 3);
    const auto key_class = static_cast<std::uint8_t>(std::min<std::size_t>(key.size(), BplusTree::kLongKey));
    key.resize(16);
    want[{key, key_class}] = RecordPlace(random() >> 20, false, random() % 100'000).word();
  }
  KeyBlockEncoder keys;
  std::vector<std::pair<BplusTree::Prefix, std::uint64_t>> entries;
  for (const auto& [key, word] : want) {
    const auto* const bytes = key.first.data();
    entries.emplace_back(BplusTree::Prefix{codec::get_ordered<std::uint64_t>(bytes)} << 64 |
                             codec::get_ordered<std::uint64_t>(bytes + 8),
                         std::uint64_t{key.second} << BplusTree::kValueBits | word);
  }
  for (std::size_t i = 0; i < entries.size(); i += 50) {
    std::vector<BplusTree::Prefix> prefixes;
    std::vector<std::uint64_t> words;
    for (std::size_t k = i; k < i + 50; ++k) {
      prefixes.push_back(entries[k].first);
      words.push_back(entries[k].second);
    }
    keys.add_leaf({prefixes, words});
  }
  KeyBlockDecoder decoder(keys.bytes());
  std::size_t at = 0;
  bool same = true;
  for (std::uint32_t leaf = 0; leaf < keys.leaves(); ++leaf) {
    BplusTree::Prefix prefixes[BplusTree::kLeafEntries];
    std::uint64_t words[BplusTree::kLeafEntries];
    REQUIRE(decoder.next_leaf(prefixes, words) == 50);
    for (std::size_t k = 0; k < 50; ++k, ++at) {
      same = same && prefixes[k] == entries[at].first && words[k] == entries[at].second;
    }
  }
  CHECK(same);
  CHECK(decoder.at_end());

  std::string runs;
  append_run({.first = 7, .count = 70, .payload = 5000, .bytes = 900, .struck_bytes = 12, .struck = {1, 2}}, runs);
  std::string_view rest = runs;
  const auto run = take_run(rest);
  REQUIRE(run);
  CHECK(rest.empty());
  CHECK((run->first == 7 && run->count == 70 && run->payload == 5000 && run->bytes == 900 && run->struck_bytes == 12));
  CHECK(run->struck == std::vector<std::uint64_t>{1, 2});
  std::string meta;
  append_meta("key", 99, meta);
  rest = meta;
  const auto entry = take_meta(rest);
  REQUIRE(entry);
  CHECK((entry->key == "key" && entry->word == 99 && rest.empty()));
  for (std::size_t size = 0; size < runs.size(); ++size) {
    std::string_view cut = std::string_view(runs).substr(0, size);
    CHECK_FALSE(take_run(cut));
  }
  for (std::size_t size = 0; size < meta.size(); ++size) {
    std::string_view cut = std::string_view(meta).substr(0, size);
    CHECK_FALSE(take_meta(cut));
  }
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
