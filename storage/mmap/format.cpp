#include "storage/mmap/format.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::mmap_store {
namespace {

using codec::get_fixed;
using codec::put_fixed;

constexpr std::string_view kSegmentMagic = "kvsegmnt";
constexpr std::string_view kFrameMagic = "kvfr";
constexpr std::string_view kCommitMagic = "kvcm";
constexpr std::string_view kSegmentSuffix = ".log";
constexpr std::size_t kSegmentChecksumAt = 56;
constexpr std::size_t kFrameChecksumAt = 36;

std::uint64_t payload_checksum(const char* header, std::string_view payload, std::uint64_t seed) noexcept {
  const std::uint64_t of_header = XXH3_64bits_withSeed(header, kFrameHeaderBytes, seed);
  return XXH3_64bits_withSeed(payload.data(), payload.size(), of_header);
}

bool has_magic(const char* at, std::string_view magic) noexcept {
  return std::memcmp(at, magic.data(), magic.size()) == 0;
}

}  // namespace

void encode(const SegmentHeader& header, char* to) noexcept {
  std::memset(to, 0, kSegmentHeaderBytes);
  kSegmentMagic.copy(to, kSegmentMagic.size());
  put_fixed(to + 8, kSegmentVersion);
  put_fixed(to + 12, static_cast<std::uint32_t>(kSegmentHeaderBytes));
  put_fixed(to + 16, header.number);
  put_fixed(to + 24, header.seed);
  put_fixed(to + 32, header.store_id);
  put_fixed(to + kSegmentChecksumAt, static_cast<std::uint64_t>(XXH3_64bits(to, kSegmentChecksumAt)));
}

std::optional<SegmentHeader> decode_segment_header(const char* from) noexcept {
  if (!has_magic(from, kSegmentMagic) || get_fixed<std::uint32_t>(from + 8) != kSegmentVersion ||
      get_fixed<std::uint32_t>(from + 12) != kSegmentHeaderBytes ||
      get_fixed<std::uint64_t>(from + kSegmentChecksumAt) != XXH3_64bits(from, kSegmentChecksumAt)) {
    return std::nullopt;
  }
  return SegmentHeader{.number = get_fixed<std::uint64_t>(from + 16),
                       .seed = get_fixed<std::uint64_t>(from + 24),
                       .store_id = get_fixed<std::uint64_t>(from + 32)};
}

void encode(const FrameHeader& header, std::uint64_t seed, char* to) noexcept {
  kFrameMagic.copy(to, kFrameMagic.size());
  put_fixed(to + 4, static_cast<std::uint32_t>(header.kind));
  put_fixed(to + 8, header.number);
  put_fixed(to + 16, header.batch);
  put_fixed(to + 24, header.synced_to);
  put_fixed(to + 32, header.payload_bytes);
  put_fixed(to + kFrameChecksumAt, static_cast<std::uint32_t>(XXH3_64bits_withSeed(to, kFrameChecksumAt, seed)));
}

std::optional<FrameHeader> decode_frame_header(const char* from, std::uint64_t seed) noexcept {
  const auto kind = get_fixed<std::uint32_t>(from + 4);
  if (!has_magic(from, kFrameMagic) || kind < 1 || kind > 3 ||
      get_fixed<std::uint32_t>(from + kFrameChecksumAt) !=
          static_cast<std::uint32_t>(XXH3_64bits_withSeed(from, kFrameChecksumAt, seed))) {
    return std::nullopt;
  }
  return FrameHeader{.kind = static_cast<FrameKind>(kind),
                     .number = get_fixed<std::uint64_t>(from + 8),
                     .batch = get_fixed<std::uint64_t>(from + 16),
                     .synced_to = get_fixed<std::uint64_t>(from + 24),
                     .payload_bytes = get_fixed<std::uint32_t>(from + 32)};
}

void encode_commit(const char* header, std::string_view payload, std::uint64_t seed, char* to) noexcept {
  kCommitMagic.copy(to, kCommitMagic.size());
  put_fixed(to + 4, static_cast<std::uint32_t>(frame_bytes(payload.size())));
  put_fixed(to + 8, payload_checksum(header, payload, seed));
}

std::uint64_t commit_checksum(const char* commit) noexcept {
  return get_fixed<std::uint64_t>(commit + 8);
}

bool frame_is_sound(const char* frame, std::size_t payload_bytes, std::uint64_t seed) noexcept {
  const char* const payload = frame + kFrameHeaderBytes;
  const char* const padding = payload + payload_bytes;
  const char* const commit = padding + padding_bytes(payload_bytes);
  return has_magic(commit, kCommitMagic) && get_fixed<std::uint32_t>(commit + 4) == frame_bytes(payload_bytes) &&
         std::all_of(padding, commit, [](char c) { return c == 0; }) &&
         commit_checksum(commit) == payload_checksum(frame, {payload, payload_bytes}, seed);
}

std::string segment_name(std::uint64_t number) {
  return fmt::format("{:06}{}", number, kSegmentSuffix);
}

std::optional<std::uint64_t> segment_number(const std::filesystem::path& name) {
  if (name.extension() != kSegmentSuffix) return std::nullopt;
  const std::string digits = name.stem().string();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number == 0) return std::nullopt;
  return segment_name(number) == name.filename() ? std::optional(number) : std::nullopt;
}

}  // namespace kvingest::mmap_store
