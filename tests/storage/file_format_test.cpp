// The bytes of a slot file: the example of storage/FORMAT.md to the byte, and whatever is not such bytes is refused.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/file/compact_key.hpp"
#include "storage/file/slot_format.hpp"
#include "storage/file/slot_space.hpp"
#include "tests/support/catch.hpp"

namespace kvingest::slots {
namespace {

constexpr Geometry kGeometry{.slot_bytes = 64, .seed = 0x0123456789ABCDEF};

std::string from_hex(std::string_view text) {
  std::string bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return bytes;
}

RecordHead example_head() {
  return {.kind = RecordKind::put, .batch = 1, .index = 0, .count = 2, .key_bytes = 1, .value_bytes = 5};
}

std::string encoded(RecordHead head, std::uint64_t slot, std::string_view key, std::string_view value) {
  std::string bytes(kGeometry.length(head.bytes()) * kGeometry.slot_bytes, '?');
  encode_record(bytes.data(), kGeometry, slot, head, key, value);
  return bytes;
}

TEST_CASE("slot format: records are the bytes of the example") {
  const std::string put = from_hex("E67E17012EDDDBD0 A750010000000000 0000000002000000 0500000001006B76 616C7565");
  CHECK(encoded(example_head(), 0, "k", "value") == put + std::string(64 - put.size(), '\0'));
  const std::string erase = from_hex("D448E90AB6953785 A745010000000000 0100000002000000 0000000001007800");
  const RecordHead head{.kind = RecordKind::erase, .batch = 1, .index = 1, .count = 2, .key_bytes = 1};
  CHECK(encoded(head, 1, "x", "") == erase + std::string(64 - erase.size(), '\0'));
}

TEST_CASE("slot format: a commit header is the bytes of the example, and is read back") {
  const CommitHeader header{.geometry = kGeometry,
                            .generation = 3,
                            .committed = 1,
                            .synced = 1,
                            .live = {.slots = 1, .checks = 0xD0DBDD2E01177EE6}};
  std::string bytes(kCommitHeaderBytes, '?');
  encode_commit_header(bytes.data(), header);
  CHECK(bytes == from_hex("6B76736C6F74730A 0100000040000000 EFCDAB8967452301 0300000000000000 0100000000000000"
                          "0100000000000000 0100000000000000 E67E17012EDDDBD0 B59FA3B6FD6D1B59"));
  const auto read = decode_commit_header(bytes);
  REQUIRE(read);
  CHECK(read->geometry == header.geometry);
  CHECK(read->generation == 3);
  CHECK(read->committed == 1);
  CHECK(read->synced == 1);
  CHECK(read->live == header.live);
  CHECK_FALSE(decode_commit_header(bytes.substr(1)));
  CHECK_FALSE(decode_commit_header(bytes.substr(0, 71)));
}

TEST_CASE("slot format: a record is read back, and only in the slot and the file it was written to") {
  const std::string bytes = encoded(example_head(), 5, "k", "value");
  const auto head = decode_head(bytes, kGeometry, 5);
  REQUIRE(head);
  CHECK(head->batch == 1);
  CHECK(head->count == 2);
  CHECK(body_matches(*head, bytes, kGeometry, 5));
  CHECK(key_of(*head, bytes) == "k");
  CHECK(value_of(*head, bytes) == "value");
  CHECK_FALSE(decode_head(bytes, kGeometry, 6));
  CHECK_FALSE(decode_head(bytes, {.slot_bytes = 64, .seed = 1}, 5));
  CHECK_FALSE(body_matches(*head, bytes.substr(0, kRecordHeadBytes + 5), kGeometry, 5));
}

TEST_CASE("slot format: the largest batch number, index and lengths are kept") {
  RecordHead head{.kind = RecordKind::put_meta,
                  .batch = (std::uint64_t{1} << 48) - 1,
                  .index = 0xFFFFFFFE,
                  .count = 0xFFFFFFFF,
                  .key_bytes = kKeyBytesMax,
                  .value_bytes = kValueBytesMax};
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kValueBytesMax, 'v');
  std::string bytes(kGeometry.length(head.bytes()) * kGeometry.slot_bytes, '?');
  const Place place = encode_record(bytes.data(), kGeometry, 77, head, key, value);
  CHECK(place.length * 64 == bytes.size());
  const auto read = decode_head(bytes, kGeometry, 77);
  REQUIRE(read);
  CHECK(read->batch == head.batch);
  CHECK(read->index == head.index);
  CHECK(read->count == head.count);
  CHECK(read->value_bytes == kValueBytesMax);
  CHECK(read->space() == Space::meta);
  CHECK(body_matches(*read, bytes, kGeometry, 77));
}

TEST_CASE("slot format: random bytes are neither record nor header") {
  std::minstd_rand random(1);
  std::string bytes(128, '\0');
  for (int i = 0; i < 20'000; ++i) {
    for (char& byte : bytes) byte = static_cast<char>(random());
    bytes[8] = '\xA7';
    bytes[9] = 'P';
    CHECK_FALSE(decode_head(bytes, kGeometry, 0));
    bytes.replace(0, 12, std::string_view("kvslots\n\1\0\0\0", 12));
    CHECK_FALSE(decode_commit_header(bytes));
  }
}

TEST_CASE("slot space: no two records share a slot, whatever comes and goes") {
  std::minstd_rand random(2);
  SlotSpace space;
  std::set<std::uint64_t> used;
  std::vector<Extent> records;
  for (int i = 0; i < 20'000; ++i) {
    if (records.empty() || random() % 2 == 0) {
      const std::uint64_t length = 1 + random() % 8;
      records.push_back({space.allocate(length), length});
      for (std::uint64_t slot = 0; slot < length; ++slot) REQUIRE(used.insert(records.back().first + slot).second);
      REQUIRE(*used.rbegin() < space.end());
    } else {
      Extent& victim = records[random() % records.size()];
      for (std::uint64_t slot = 0; slot < victim.length; ++slot) used.erase(victim.first + slot);
      space.add_free(victim);
      victim = records.back();
      records.pop_back();
    }
    REQUIRE(space.free_slots() + used.size() == space.end());
  }
}

TEST_CASE("slot space: all of it comes back in one piece when everything is freed") {
  std::minstd_rand random(3);
  SlotSpace space;
  std::vector<Extent> records;
  std::uint64_t slots = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t length = 1 + random() % 8;
    records.push_back({space.allocate(length), length});
    slots += length;
  }
  CHECK(space.end() == slots);
  std::shuffle(records.begin(), records.end(), random);
  for (const Extent& record : records) space.add_free(record);
  CHECK(space.free_extents() == std::vector<Extent>{{0, slots}});
  CHECK(space.allocate(5) == 0);  // Taken from what is free, not from the end.
  CHECK(space.end() == slots);
  space.cut(7);
  CHECK(space.free_extents() == std::vector<Extent>{{5, 2}});
  CHECK(space.allocate(3) == 7);
}

TEST_CASE("slot space: a tombstone becomes free one sync after what it erased") {
  SlotSpace space;
  for (int i = 0; i < 3; ++i) static_cast<void>(space.allocate(1));
  space.wait({.slot = 0, .length = 1}, 5);
  space.wait({.slot = 1, .length = 1, .tombstone = 1}, 5);
  CHECK_FALSE(space.may_clear(4, 0));
  CHECK(space.clearable(4, 0).empty());
  CHECK(space.clearable(5, 0) == std::vector<Extent>{{0, 1}});
  CHECK(space.clearable(5, 0) == std::vector<Extent>{{0, 1}});  // Named until it is cleared.
  space.cleared();
  CHECK_FALSE(space.may_clear(5, 0));
  CHECK(space.may_clear(5, 1));
  CHECK(space.clearable(5, 1) == std::vector<Extent>{{1, 1}});
  space.cleared();
  CHECK(space.waiting_slots() == 0);
  CHECK(space.free_slots() == 2);
}

TEST_CASE("compact key: keys of every length keep their bytes and order when they are moved and copied") {
  std::string previous;
  for (std::size_t length = 1; length <= kKeyBytesMax; ++length) {
    const std::string text(length, 'k');
    CompactKey key(text);
    CHECK(key.view() == text);
    CompactKey copy(key);
    CompactKey moved(std::move(key));
    CHECK(copy.view() == text);
    CHECK(moved.view() == text);
    copy = std::move(moved);
    CHECK(copy.view() == text);
    CHECK(CompactKeyLess()(previous, copy));
    previous = text;
  }
}

}  // namespace
}  // namespace kvingest::slots
