// torn_tail.hpp -- what lies behind the end of the log after a crash: never acknowledged as on disk, and not to come
// back. It is kept for people: copied or renamed to files "torn-*" before it is cut.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kvingest/result.hpp"
#include "storage/mmap/segment.hpp"

namespace kvingest::mmap_store {

/// A segment behind the end of the log.
struct LaterSegment {
  std::filesystem::path path;
  bool has_frames = false;  ///< Then it is torn as a whole; else it was prepared, or its frames were lost, too.
};

struct TornTail {
  std::filesystem::path path;       ///< The segment in which the log ends.
  std::uint64_t begin = 0;          ///< Where in it the torn bytes begin,
  std::uint64_t end = 0;            ///< and end.
  std::vector<LaterSegment> later;  ///< Those behind it, by rising numbers.

  [[nodiscard]] bool found() const noexcept { return !path.empty(); }
  /// "torn tail: 123 bytes of 000003.log from offset 4096 on and 1 later file"
  [[nodiscard]] std::string describe() const;
  /// Copies the bytes, renames the later segments that have frames and removes the others, and has all of it on disk
  /// when it returns: none is left behind the end of the log. Returns what to say about it:
  /// " were set aside in torn-000003-4096.bin". Where the disk is full the bytes are not kept, and it says so.
  /// Fails with: io_error.
  [[nodiscard]] Result<std::string> set_aside(const SegmentHome& home) const;
};

}  // namespace kvingest::mmap_store
