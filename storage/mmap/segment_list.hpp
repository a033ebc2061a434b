// segment_list.hpp -- the file SEGMENTS: which segments the log has, once compaction has dropped some. A segment is
// dropped by a list without it; its file is removed afterwards, and whoever finds it still there ignores it. Without a
// list there are all segments from the first on.
//
// A list is written when all it relies on is on disk, and says so: `synced_to` holds for recovery like that of a frame.
// Segments that are made later are not in it; they follow the last one in it without gaps.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/posix.hpp"
#include "kvingest/result.hpp"

namespace kvingest::mmap_store {

struct ListedSegment {
  std::uint64_t number = 0;
  std::uint64_t frames_before = 0;   ///< Number of the last frame in front of its first one.
  std::uint64_t batches_before = 0;  ///< Number of the last batch there.
  std::uint64_t last_frame = 0;      ///< 0: it may take more frames.
};

struct SegmentList {
  std::uint64_t store_id = 0;
  std::uint64_t synced_to = 0;          ///< All frames up to this number are on disk, those of dropped segments apart.
  std::vector<ListedSegment> segments;  ///< By rising numbers.

  [[nodiscard]] const ListedSegment* find(std::uint64_t number) const noexcept;
};

/// Nothing when `dir` has none. Fails with: corrupt, io_error.
Result<std::optional<SegmentList>> read_segment_list(const Posix& posix, const std::filesystem::path& dir);

/// Replaces the list and has it on disk. Fails with: no_space, io_error; the old one then holds, or the new one.
Result<void> write_segment_list(const Posix& posix, const std::filesystem::path& dir, const SegmentList& list);

/// "SEGMENTS"
[[nodiscard]] std::filesystem::path segment_list_path(const std::filesystem::path& dir);

}  // namespace kvingest::mmap_store
