// line_splitter.hpp -- where the lines of a buffer end.
//
//   LineCursor lines(buffer);
//   for (std::string_view line; lines.next(line);) use(line);       // without its LF
//   keep(lines.rest());                                             // the beginning of a line, not yet ended
//
// The newlines of a stretch of the buffer are found at once, with the widest instructions that this machine has, and
// then handed out one by one: for lines of some twenty bytes that is several times faster than a search for each.
//
// Threads:  any; a cursor belongs to one thread.
// Lifetime: a cursor and the lines it gives point into the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvingest {

inline constexpr std::size_t kScanBytesMax = 4096;  ///< Its places stay in the first-level cache.
/// Places are written four at a time, needed or not.
inline constexpr std::size_t kScanPlacesMax = kScanBytesMax + 4;

/// Writes the places of the LFs of `bytes`, at most kScanBytesMax of them, to `to`, which has room for kScanPlacesMax,
/// and returns how many there are.
using FindNewlines = std::size_t (*)(std::string_view bytes, std::uint16_t* to) noexcept;

struct NewlineFinder {
  std::string_view name;
  FindNewlines find;
};

/// All variants that this machine can run, the plainest first. They give the same answers; the last one is used.
[[nodiscard]] std::span<const NewlineFinder> newline_finders() noexcept;

class LineCursor {
 public:
  /// `buffer` begins with a line; its first `searched` bytes are known to hold no LF, so that a long line that comes
  /// in pieces is searched once.
  explicit LineCursor(std::string_view buffer, std::size_t searched = 0) noexcept
      : buffer_(buffer), scanned_(searched), find_(newline_finders().back().find) {}

  /// The next whole line, without its LF; false when there is none.
  bool next(std::string_view& line) noexcept {
    while (taken_ == found_) {
      if (scanned_ == buffer_.size()) return false;
      base_ = scanned_;
      const std::string_view stretch = buffer_.substr(scanned_, kScanBytesMax);
      found_ = find_(stretch, places_);
      scanned_ += stretch.size();
      taken_ = 0;
    }
    const std::size_t end = base_ + places_[taken_++];
    line = std::string_view(buffer_.data() + begin_, end - begin_);
    begin_ = end + 1;
    return true;
  }

  /// Where the next line begins.
  [[nodiscard]] std::size_t position() const noexcept { return begin_; }
  /// What lies behind the last line given: once next() returned false, the beginning of a line.
  [[nodiscard]] std::string_view rest() const noexcept { return buffer_.substr(begin_); }

 private:
  std::string_view buffer_;
  std::size_t begin_ = 0;    // Of the next line.
  std::size_t scanned_ = 0;  // The LFs before it are in places_, or were given.
  std::size_t base_ = 0;     // What places_ count from.
  std::size_t taken_ = 0;
  std::size_t found_ = 0;
  FindNewlines find_;
  std::uint16_t places_[kScanPlacesMax];  // Not initialised: find_ sets it up to found_.
};

}  // namespace kvingest
