// slot_format.hpp -- the bytes of a slot file: two commit headers, then slots of one size. storage/FORMAT.md has the
// layout with a worked example.
//
// A record takes one slot or a run of neighbours: a head, the key, the value, zeros to the end of the slot. Its checks
// are seeded with the file's random seed and the number of its slot, so that bytes inside a value, from another file or
// from another slot are never taken for a record.
//
// Threads:  functions of their arguments only.
// Lifetime: a decoded record views the bytes it was decoded from.
// Errors:   decoding answers with nothing where the bytes are not what they should be; the caller knows what that
// means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kvingest/limits.hpp"
#include "kvingest/write_batch.hpp"

namespace kvingest::slots {

inline constexpr std::string_view kFileName = "records.slots";
inline constexpr std::uint32_t kFormatVersion = 1;

/// Each commit header has a block of its own, so that a torn write of one cannot touch the other.
inline constexpr std::uint64_t kCommitHeaderCopies = 2;
inline constexpr std::uint64_t kCommitHeaderStrideBytes = 4096;
inline constexpr std::size_t kCommitHeaderBytes = 72;
inline constexpr std::uint64_t kSlotsBegin = kCommitHeaderCopies * kCommitHeaderStrideBytes;

/// Slot sizes are powers of two, so that a small record never lies across two pages.
inline constexpr std::uint32_t kSlotBytesMin = 64;
inline constexpr std::uint32_t kSlotBytesMax = 4096;
inline constexpr std::size_t kRecordHeadBytes = 30;
static_assert(kRecordHeadBytes + kSeqKeyBytes + std::string_view("Benchmark Message 12345678").size() <= kSlotBytesMin,
              "the line of the benchmarks takes one slot");
static_assert(kCommitHeaderBytes <= 512, "a commit header lies within one disk sector");

/// What a slot file was made with.
struct Geometry {
  std::uint32_t slot_bytes = 0;
  std::uint64_t seed = 0;

  [[nodiscard]] constexpr std::uint64_t offset(std::uint64_t slot) const noexcept {
    return kSlotsBegin + slot * slot_bytes;
  }
  /// Slots that a record of so many bytes takes.
  [[nodiscard]] constexpr std::uint64_t length(std::uint64_t record_bytes) const noexcept {
    return (record_bytes + slot_bytes - 1) / slot_bytes;
  }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// Where a record is, and the checks it had when it was written.
struct Place {
  std::uint64_t checks = 0;
  std::uint64_t slot : 40 = 0;
  std::uint64_t length : 22 = 0;    ///< In slots.
  std::uint64_t tombstone : 1 = 0;  ///< An erase, or the mark of an empty batch: holds no value.

  friend bool operator==(const Place&, const Place&) = default;
};
static_assert(sizeof(Place) == 16);
static_assert((kValueBytesMax + kKeyBytesMax + kRecordHeadBytes) / kSlotBytesMin + 1 < (1U << 22));

/// Neighbouring slots.
struct Extent {
  std::uint64_t first = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t end() const noexcept { return first + length; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// The values are what is in the file.
enum class RecordKind : char {
  put = 'P',
  erase = 'E',
  put_meta = 'p',
  erase_meta = 'e',
  nothing = 'N',  ///< All that an empty batch holds.
};

[[nodiscard]] constexpr RecordKind record_kind(Space space, bool erase) noexcept {
  if (space == Space::meta) return erase ? RecordKind::erase_meta : RecordKind::put_meta;
  return erase ? RecordKind::erase : RecordKind::put;
}

struct RecordHead {
  std::uint64_t checks = 0;  ///< Of head and body; set by encoding and decoding.
  RecordKind kind = RecordKind::nothing;
  std::uint64_t batch = 0;  ///< At most 48 bits.
  std::uint32_t index = 0;  ///< Of the record in its batch.
  std::uint32_t count = 0;  ///< Records of the batch.
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return kRecordHeadBytes + std::uint64_t{key_bytes} + value_bytes;
  }
  [[nodiscard]] Space space() const noexcept {
    return kind == RecordKind::put_meta || kind == RecordKind::erase_meta ? Space::meta : Space::records;
  }
  [[nodiscard]] bool is_put() const noexcept { return kind == RecordKind::put || kind == RecordKind::put_meta; }
  /// Of two records of one key the one that was written later holds.
  [[nodiscard]] bool older_than(const RecordHead& other) const noexcept {
    return batch != other.batch ? batch < other.batch : index < other.index;
  }
};

/// The place of a record that was written to `slot`.
[[nodiscard]] Place place_of(const RecordHead& head, const Geometry& geometry, std::uint64_t slot) noexcept;

/// Writes the record at `to`, which has room for its slots, padded with zeros to the end of the last one, and returns
/// its place. The lengths in `head` are those of `key` and `value`.
Place encode_record(char* to, const Geometry& geometry, std::uint64_t slot, RecordHead& head, std::string_view key,
                    std::string_view value) noexcept;

/// True when the bytes begin as a head does: whatever follows then is, or was, one.
[[nodiscard]] bool looks_like_head(std::string_view bytes) noexcept;

/// The batch number in bytes that look like a head, which may be damaged.
[[nodiscard]] std::uint64_t raw_batch(std::string_view bytes) noexcept;

/// The head at the front of `bytes`, when it was written to `slot` of this file and is undamaged: its lengths can be
/// trusted then. Nothing when it is not.
[[nodiscard]] std::optional<RecordHead> decode_head(std::string_view bytes, const Geometry& geometry,
                                                    std::uint64_t slot) noexcept;

/// Whether key and value, which follow the decoded `head` in `bytes`, are what was written.
[[nodiscard]] bool body_matches(const RecordHead& head, std::string_view bytes, const Geometry& geometry,
                                std::uint64_t slot) noexcept;

[[nodiscard]] inline std::string_view key_of(const RecordHead& head, std::string_view bytes) noexcept {
  return bytes.substr(kRecordHeadBytes, head.key_bytes);
}
[[nodiscard]] inline std::string_view value_of(const RecordHead& head, std::string_view bytes) noexcept {
  return bytes.substr(kRecordHeadBytes + head.key_bytes, head.value_bytes);
}

/// Number and sum of the checks of live slots: the fingerprint by which open knows that none is missing or damaged.
struct LiveSum {
  std::uint64_t slots = 0;
  std::uint64_t checks = 0;  ///< Modulo 2^64.

  void add(const Place& place) noexcept {
    if (place.tombstone) return;
    slots += place.length;
    checks += place.checks;
  }
  void remove(const Place& place) noexcept {
    if (place.tombstone) return;
    slots -= place.length;
    checks -= place.checks;
  }
  friend LiveSum operator+(const LiveSum& a, const LiveSum& b) noexcept {
    return {a.slots + b.slots, a.checks + b.checks};
  }
  friend bool operator==(const LiveSum&, const LiveSum&) = default;
};

/// How many of a batch's records were found, and how many each of them says there are.
struct BatchTally {
  std::uint32_t found = 0;
  std::uint32_t count = 0;

  [[nodiscard]] bool whole() const noexcept { return found > 0 && found == count; }
};

/// Makes batches valid. The copy with the higher generation holds.
struct CommitHeader {
  Geometry geometry;
  std::uint64_t generation = 0;
  std::uint64_t committed = 0;  ///< The last batch that is valid.
  std::uint64_t synced = 0;     ///< The last batch known to be on disk, whole.
  LiveSum live;                 ///< As of `synced`.
};

void encode_commit_header(char* to, const CommitHeader& header) noexcept;
/// Nothing where the bytes are no commit header of this version, or a damaged one.
[[nodiscard]] std::optional<CommitHeader> decode_commit_header(std::string_view bytes) noexcept;
/// The version in bytes that begin like a commit header of any version.
[[nodiscard]] std::optional<std::uint32_t> commit_header_version(std::string_view bytes) noexcept;

}  // namespace kvingest::slots
