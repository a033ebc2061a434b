#include "storage/mmap/segment_list.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::mmap_store {
namespace {

using codec::get_fixed;
using codec::put_fixed;

constexpr std::string_view kListMagic = "kvsegset";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kEntryBytes = 32;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;  // Two million segments.

std::string encoded(const SegmentList& list) {
  std::string bytes(kHeaderBytes + list.segments.size() * kEntryBytes + kChecksumBytes, '\0');
  char* at = bytes.data();
  kListMagic.copy(at, kListMagic.size());
  put_fixed(at + 8, kVersion);
  put_fixed(at + 12, static_cast<std::uint32_t>(list.segments.size()));
  put_fixed(at + 16, list.store_id);
  put_fixed(at + 24, list.synced_to);
  at += kHeaderBytes;
  for (const ListedSegment& segment : list.segments) {
    put_fixed(at, segment.number);
    put_fixed(at + 8, segment.frames_before);
    put_fixed(at + 16, segment.batches_before);
    put_fixed(at + 24, segment.last_frame);
    at += kEntryBytes;
  }
  put_fixed(at, static_cast<std::uint64_t>(XXH3_64bits(bytes.data(), bytes.size() - kChecksumBytes)));
  return bytes;
}

std::optional<SegmentList> decoded(const std::string& bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes) return std::nullopt;
  const char* at = bytes.data();
  const std::size_t count = get_fixed<std::uint32_t>(at + 12);
  const std::size_t body = bytes.size() - kChecksumBytes;
  if (std::memcmp(at, kListMagic.data(), kListMagic.size()) != 0 || get_fixed<std::uint32_t>(at + 8) != kVersion ||
      body != kHeaderBytes + count * kEntryBytes || get_fixed<std::uint64_t>(at + body) != XXH3_64bits(at, body)) {
    return std::nullopt;
  }
  SegmentList list{
      .store_id = get_fixed<std::uint64_t>(at + 16), .synced_to = get_fixed<std::uint64_t>(at + 24), .segments = {}};
  for (at += kHeaderBytes; list.segments.size() < count; at += kEntryBytes) {
    list.segments.push_back({.number = get_fixed<std::uint64_t>(at),
                             .frames_before = get_fixed<std::uint64_t>(at + 8),
                             .batches_before = get_fixed<std::uint64_t>(at + 16),
                             .last_frame = get_fixed<std::uint64_t>(at + 24)});
  }
  return list;
}

}  // namespace

const ListedSegment* SegmentList::find(std::uint64_t number) const noexcept {
  const auto at = std::lower_bound(segments.begin(), segments.end(), number,
                                   [](const ListedSegment& one, std::uint64_t wanted) { return one.number < wanted; });
  return at != segments.end() && at->number == number ? &*at : nullptr;
}

std::filesystem::path segment_list_path(const std::filesystem::path& dir) {
  return dir / "SEGMENTS";
}

Result<std::optional<SegmentList>> read_segment_list(const Posix& posix, const std::filesystem::path& dir) {
  const std::filesystem::path path = segment_list_path(dir);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::optional<SegmentList>();
  auto bytes = read_file(posix, path, kFileBytesMax);
  KV_TRY(bytes);
  auto list = decoded(*bytes);
  if (!list) return fail(Code::corrupt, "{}: no sound list of segments", path.native());
  return list;
}

Result<void> write_segment_list(const Posix& posix, const std::filesystem::path& dir, const SegmentList& list) {
  return replace_file(posix, segment_list_path(dir), encoded(list));
}

}  // namespace kvingest::mmap_store
