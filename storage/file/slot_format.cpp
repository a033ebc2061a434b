#include "storage/file/slot_format.hpp"

#define XXH_INLINE_ALL  // Two short hashes a record: a call into the library costs as much as they do.
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::slots {
namespace {

using codec::get_fixed;
using codec::put_fixed;

constexpr char kRecordMagic = '\xA7';  // Not text, so that a value of text seldom looks like a head.
constexpr std::string_view kFileMagic = "kvslots\n";

// Offsets in a record head. The first check covers all of the head behind it, the second one the key and the value.
constexpr std::size_t kHeadCheck = 0;
constexpr std::size_t kBodyCheck = 4;
constexpr std::size_t kMagic = 8;
constexpr std::size_t kKind = 9;
constexpr std::size_t kBatch = 10;
constexpr std::size_t kBatchBytes = 6;
constexpr std::size_t kIndex = 16;
constexpr std::size_t kCount = 20;
constexpr std::size_t kValueLength = 24;
constexpr std::size_t kKeyLength = 28;
static_assert(kKeyLength + sizeof(std::uint16_t) == kRecordHeadBytes);

// Offsets in a commit header; the checksum covers everything before it.
constexpr std::size_t kVersion = 8;
constexpr std::size_t kSlotBytes = 12;
constexpr std::size_t kSeed = 16;
constexpr std::size_t kGeneration = 24;
constexpr std::size_t kCommitted = 32;
constexpr std::size_t kSynced = 40;
constexpr std::size_t kLiveSlots = 48;
constexpr std::size_t kLiveChecks = 56;
constexpr std::size_t kHeaderChecksum = 64;
static_assert(kHeaderChecksum + sizeof(std::uint64_t) == kCommitHeaderBytes);

std::uint32_t check(const char* bytes, std::size_t size, const Geometry& geometry, std::uint64_t slot) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(bytes, size, geometry.seed + slot));
}

std::uint32_t head_check(const char* head, const Geometry& geometry, std::uint64_t slot) noexcept {
  return check(head + kBodyCheck, kRecordHeadBytes - kBodyCheck, geometry, slot);
}

bool known_kind(char kind) noexcept {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::put:
    case RecordKind::erase:
    case RecordKind::put_meta:
    case RecordKind::erase_meta:
    case RecordKind::nothing:
      return true;
  }
  return false;
}

// A check of 32 bits lets one damaged head in four thousand million through; none may lead outside the limits.
bool plausible(const RecordHead& head) noexcept {
  if (head.index >= head.count || head.key_bytes > kKeyBytesMax || head.value_bytes > kValueBytesMax) return false;
  return (head.key_bytes == 0) == (head.kind == RecordKind::nothing) && (head.is_put() || head.value_bytes == 0);
}

}  // namespace

Place place_of(const RecordHead& head, const Geometry& geometry, std::uint64_t slot) noexcept {
  Place place;
  place.checks = head.checks;
  place.slot = slot & ((std::uint64_t{1} << 40) - 1);
  place.length = geometry.length(head.bytes()) & ((std::uint64_t{1} << 22) - 1);
  place.tombstone = head.is_put() ? 0 : 1;
  return place;
}

Place encode_record(char* to, const Geometry& geometry, std::uint64_t slot, RecordHead& head, std::string_view key,
                    std::string_view value) noexcept {
  // The batch goes in first: its two bytes too many are then written over by the index.
  put_fixed(to + kBatch, head.batch);
  to[kMagic] = kRecordMagic;
  to[kKind] = static_cast<char>(head.kind);
  put_fixed(to + kIndex, head.index);
  put_fixed(to + kCount, head.count);
  put_fixed(to + kValueLength, head.value_bytes);
  put_fixed(to + kKeyLength, static_cast<std::uint16_t>(head.key_bytes));
  char* const body = to + kRecordHeadBytes;
  std::copy(value.begin(), value.end(), std::copy(key.begin(), key.end(), body));
  const std::uint64_t length = geometry.length(head.bytes());
  std::memset(to + head.bytes(), 0, length * geometry.slot_bytes - head.bytes());
  put_fixed(to + kBodyCheck, check(body, key.size() + value.size(), geometry, slot));
  put_fixed(to + kHeadCheck, head_check(to, geometry, slot));
  head.checks = get_fixed<std::uint64_t>(to + kHeadCheck);
  return place_of(head, geometry, slot);
}

bool looks_like_head(std::string_view bytes) noexcept {
  return bytes.size() >= kRecordHeadBytes && bytes[kMagic] == kRecordMagic && known_kind(bytes[kKind]);
}

std::uint64_t raw_batch(std::string_view bytes) noexcept {
  return get_fixed<std::uint64_t>(bytes.data() + kBatch) & ((std::uint64_t{1} << (8 * kBatchBytes)) - 1);
}

std::optional<RecordHead> decode_head(std::string_view bytes, const Geometry& geometry, std::uint64_t slot) noexcept {
  if (!looks_like_head(bytes)) return std::nullopt;
  const char* const from = bytes.data();
  if (get_fixed<std::uint32_t>(from + kHeadCheck) != head_check(from, geometry, slot)) return std::nullopt;
  RecordHead head;
  head.checks = get_fixed<std::uint64_t>(from + kHeadCheck);
  head.kind = static_cast<RecordKind>(from[kKind]);
  head.batch = raw_batch(bytes);
  head.index = get_fixed<std::uint32_t>(from + kIndex);
  head.count = get_fixed<std::uint32_t>(from + kCount);
  head.value_bytes = get_fixed<std::uint32_t>(from + kValueLength);
  head.key_bytes = get_fixed<std::uint16_t>(from + kKeyLength);
  if (!plausible(head)) return std::nullopt;
  return head;
}

bool body_matches(const RecordHead& head, std::string_view bytes, const Geometry& geometry,
                  std::uint64_t slot) noexcept {
  if (bytes.size() < head.bytes()) return false;
  const std::size_t body_bytes = head.bytes() - kRecordHeadBytes;
  return static_cast<std::uint32_t>(head.checks >> 32) ==
         check(bytes.data() + kRecordHeadBytes, body_bytes, geometry, slot);
}

void encode_commit_header(char* to, const CommitHeader& header) noexcept {
  std::memcpy(to, kFileMagic.data(), kFileMagic.size());
  put_fixed(to + kVersion, kFormatVersion);
  put_fixed(to + kSlotBytes, header.geometry.slot_bytes);
  put_fixed(to + kSeed, header.geometry.seed);
  put_fixed(to + kGeneration, header.generation);
  put_fixed(to + kCommitted, header.committed);
  put_fixed(to + kSynced, header.synced);
  put_fixed(to + kLiveSlots, header.live.slots);
  put_fixed(to + kLiveChecks, header.live.checks);
  put_fixed(to + kHeaderChecksum, static_cast<std::uint64_t>(XXH3_64bits(to, kHeaderChecksum)));
}

std::optional<CommitHeader> decode_commit_header(std::string_view bytes) noexcept {
  if (commit_header_version(bytes) != kFormatVersion) return std::nullopt;
  const char* const from = bytes.data();
  if (get_fixed<std::uint64_t>(from + kHeaderChecksum) != XXH3_64bits(from, kHeaderChecksum)) return std::nullopt;
  CommitHeader header;
  header.geometry = {get_fixed<std::uint32_t>(from + kSlotBytes), get_fixed<std::uint64_t>(from + kSeed)};
  header.generation = get_fixed<std::uint64_t>(from + kGeneration);
  header.committed = get_fixed<std::uint64_t>(from + kCommitted);
  header.synced = get_fixed<std::uint64_t>(from + kSynced);
  header.live = {get_fixed<std::uint64_t>(from + kLiveSlots), get_fixed<std::uint64_t>(from + kLiveChecks)};
  const std::uint32_t slot_bytes = header.geometry.slot_bytes;
  if (slot_bytes < kSlotBytesMin || slot_bytes > kSlotBytesMax || !std::has_single_bit(slot_bytes)) return std::nullopt;
  if (header.synced > header.committed) return std::nullopt;
  return header;
}

std::optional<std::uint32_t> commit_header_version(std::string_view bytes) noexcept {
  if (bytes.size() < kCommitHeaderBytes || !bytes.starts_with(kFileMagic)) return std::nullopt;
  return get_fixed<std::uint32_t>(bytes.data() + kVersion);
}

}  // namespace kvingest::slots
