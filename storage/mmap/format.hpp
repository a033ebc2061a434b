// format.hpp -- the bytes of a segment file. storage/FORMAT.md, section "mmap", has a worked example.
//
// A segment is a header and then frames, one behind the other; zeros behind the last frame are the end of the log. A
// frame is a header, a payload (operations as WriteBatch encodes them), zeros up to a multiple of 8, and a commit
// record. All integers are little-endian.
//
//   segment header, 64 bytes                      frame header, 40 bytes
//    0  8  magic "kvsegmnt"                        0  4  magic "kvfr"
//    8  4  version                                 4  1  kind: 1 batch, 2 moved records, 3 mark
//   12  4  header bytes (64)                       5  3  zero
//   16  8  number of the segment                   8  8  frame number: 1, 2, 3 ... without gaps
//   24  8  seed: random, own to this file         16  8  number of the last batch up to and with this frame
//   32  8  id of the store: random                24  8  synced_to: every frame up to this number is on disk
//   40 16  zero                                   32  4  payload bytes
//   56  8  XXH3 of bytes 0 to 55, seed 0          36  4  low half of XXH3 of bytes 0 to 35, seeded with the segment's
//
//   commit record, 16 bytes
//    0  4  magic "kvcm"
//    4  4  bytes of the whole frame
//    8  8  XXH3 of the payload, seeded with XXH3 of the frame header, seeded with the segment's seed
//
// The seed makes bytes of another file, and bytes that a user stored, useless as frames of this one.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/limits.hpp"

namespace kvingest::mmap_store {

inline constexpr std::uint32_t kSegmentVersion = 2;
inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::size_t kCommitBytes = 16;
inline constexpr std::size_t kFrameAlignment = 8;

struct SegmentHeader {
  std::uint64_t number = 0;
  std::uint64_t seed = 0;
  std::uint64_t store_id = 0;
};

enum class FrameKind : std::uint8_t {
  batch = 1,  ///< One write().
  moved = 2,  ///< Live records that compaction copied from an older segment; no batch of its own.
  mark = 3,   ///< Nothing but a newer synced_to.
};

struct FrameHeader {
  FrameKind kind = FrameKind::batch;
  std::uint64_t number = 0;
  std::uint64_t batch = 0;
  std::uint64_t synced_to = 0;
  std::uint32_t payload_bytes = 0;
};

/// Zeros between payload and commit record.
[[nodiscard]] constexpr std::size_t padding_bytes(std::size_t payload_bytes) noexcept {
  return (kFrameAlignment - payload_bytes % kFrameAlignment) % kFrameAlignment;
}
[[nodiscard]] constexpr std::uint64_t frame_bytes(std::size_t payload_bytes) noexcept {
  return kFrameHeaderBytes + payload_bytes + padding_bytes(payload_bytes) + kCommitBytes;
}

static_assert(kSegmentHeaderBytes % kFrameAlignment == 0 && kFrameHeaderBytes % kFrameAlignment == 0);
static_assert(frame_bytes(kBatchBytesMax) < std::uint64_t{1} << 32, "the commit record holds the size in 32 bits");

/// Writes kSegmentHeaderBytes.
void encode(const SegmentHeader& header, char* to) noexcept;
/// Nothing when the bytes are no sound header of this version.
[[nodiscard]] std::optional<SegmentHeader> decode_segment_header(const char* from) noexcept;

/// Writes kFrameHeaderBytes.
void encode(const FrameHeader& header, std::uint64_t seed, char* to) noexcept;
/// Nothing when the bytes are no sound header.
[[nodiscard]] std::optional<FrameHeader> decode_frame_header(const char* from, std::uint64_t seed) noexcept;

/// Writes kCommitBytes for the frame whose encoded header is at `header`.
void encode_commit(const char* header, std::string_view payload, std::uint64_t seed, char* to) noexcept;
/// The checksum in it.
[[nodiscard]] std::uint64_t commit_checksum(const char* commit) noexcept;
/// Whether everything behind the header of the frame at `frame` is as it was written. The whole frame must be there.
[[nodiscard]] bool frame_is_sound(const char* frame, std::size_t payload_bytes, std::uint64_t seed) noexcept;

/// "000017.log"
[[nodiscard]] std::string segment_name(std::uint64_t number);
/// The number of a segment file's name, if it is one.
[[nodiscard]] std::optional<std::uint64_t> segment_number(const std::filesystem::path& name);

}  // namespace kvingest::mmap_store
