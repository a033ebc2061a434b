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

struct TornTail {
  std::filesystem::path path;                      ///< The segment in which the log ends.
  std::uint64_t begin = 0;                         ///< Where in it the torn bytes begin,
  std::uint64_t end = 0;                           ///< and end.
  std::vector<std::filesystem::path> later_files;  ///< Segments behind it, torn as a whole.

  [[nodiscard]] bool found() const noexcept { return !path.empty(); }
  /// "torn tail: 123 bytes of 000003.log from offset 4096 on and 1 later file"
  [[nodiscard]] std::string describe() const;
  /// Copies the bytes and renames the later files, and has both on disk when it returns. Returns what to say about it:
  /// " were set aside in torn-000003-4096.bin". Where the disk is full the bytes are not kept, and it says so.
  /// Fails with: io_error.
  [[nodiscard]] Result<std::string> set_aside(const SegmentHome& home) const;
};

}  // namespace kvingest::mmap_store
