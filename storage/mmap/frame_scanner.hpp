// frame_scanner.hpp -- reads the frames of one segment file in order and checks each. It reads through a buffer: the
// first touch of every page of a fresh mapping is a fault, and a read of megabytes is not.
//
// Threads:  one.
// Lifetime: the file outlives the scanner; payload() is valid until the next step.
// Errors:   io_error; what is wrong with the bytes is a Step.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "storage/mmap/format.hpp"

namespace kvingest::mmap_store {

class FrameScanner {
 public:
  enum class Step {
    frame,  ///< A sound frame: header() and payload() show it.
    end,    ///< No header where the next frame would begin, but zeros, or too little room.
    bad,    ///< Something else.
  };

  /// Scans `file`, whose header has been read, up to its end or to `end`, where the log is known to end.
  FrameScanner(const Posix& posix, const File& file, std::uint64_t seed, std::uint64_t end);

  /// Begins at this frame instead of the first one.
  void begin_at(std::uint64_t offset) noexcept { offset_ = offset; }
  /// Moves to the next frame. After `end` and `bad` there is no next one.
  Result<Step> next();

  [[nodiscard]] const FrameHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::string_view payload() const noexcept { return payload_; }
  /// The checksum that its commit record has.
  [[nodiscard]] std::uint64_t commit() const noexcept;
  /// Where the frame begins or, after `end` and `bad`, would begin.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// Offset behind the last byte that is not zero, at or behind offset(); offset() if there is none.
  Result<std::uint64_t> data_end();
  /// The highest synced_to of any sound frame header at or behind offset(), 0 if there is none. What a header says is
  /// true even where the rest of its frame is lost.
  Result<std::uint64_t> synced_to_behind();

 private:
  Result<const char*> read(std::uint64_t offset, std::uint64_t bytes);

  const Posix& posix_;
  const File& file_;
  std::uint64_t seed_;
  std::uint64_t end_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
  std::uint64_t frame_bytes_ = 0;  // Of the current frame.
  FrameHeader header_;
  std::string_view payload_;
  std::vector<char> buffer_;
  std::uint64_t buffer_offset_ = 0;
  std::uint64_t buffer_bytes_ = 0;
};

}  // namespace kvingest::mmap_store
