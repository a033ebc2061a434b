// line_cutter.hpp -- cuts a stream into lines, wherever the network cut it into pieces.
//
// Whole lines inside a piece are passed as views into it; what stands behind the last LF is kept until the next piece.
// A line beyond the limit is passed once, with its first 64 KiB, its length and its checksum: time is linear in the
// bytes received and memory bounded by the limit, also for a line that never ends.
//
// Threads:  one thread at a time.
// Lifetime: a view is valid until the sink returns.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "record/line_splitter.hpp"

namespace kvingest::net {

/// A line longer than the limit.
struct LongLine {
  std::string_view kept;       ///< Its first bytes, at most kLongLineKeptBytes.
  std::uint64_t length = 0;    ///< Of the whole line, without its LF.
  std::uint64_t checksum = 0;  ///< XXH3 (64 bits) of the whole line.
};

inline constexpr std::size_t kLongLineKeptBytes = 64 << 10;

class LineCutter {
 public:
  explicit LineCutter(std::size_t line_bytes_max);
  LineCutter(const LineCutter&) = delete;
  LineCutter& operator=(const LineCutter&) = delete;
  ~LineCutter();

  /// Passes each line that ends in `bytes`, without its LF, to `sink.line(view, offset)`, or a long one to
  /// `sink.long_line(line, offset)`; `offset` is its first byte's place in the stream. Each returns whether to go on.
  /// Returns how many of `bytes` are used up: all, unless the sink stopped; the rest belongs into the next call.
  template <class Sink>
  std::size_t cut(std::string_view bytes, Sink& sink) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    if (unfinished_bytes() > 0) {
      const auto* lf = static_cast<const char*>(std::memchr(at, '\n', bytes.size()));
      extend(std::string_view(at, static_cast<std::size_t>((lf != nullptr ? lf : end) - at)));
      if (lf == nullptr) return bytes.size();
      at = lf + 1;
      if (!pass_unfinished(sink)) return static_cast<std::size_t>(at - bytes.data());
    }
    LineCursor lines(std::string_view(at, static_cast<std::size_t>(end - at)));
    for (std::string_view line; lines.next(line);) {
      const std::uint64_t line_offset = offset_;
      offset_ += line.size() + 1;
      const bool go_on = line.size() <= line_bytes_max_ ? sink.line(line, line_offset)
                                                        : sink.long_line(whole_long_line(line), line_offset);
      if (!go_on) return bytes.size() - lines.rest().size();
    }
    extend(lines.rest());
    return bytes.size();
  }

  /// Passes what stands behind the last LF as if one followed, and forgets it.
  template <class Sink>
  void finish(Sink& sink) {
    if (unfinished_bytes() > 0) pass_unfinished(sink);
  }

  /// Bytes received of a line whose LF has not come.
  [[nodiscard]] std::uint64_t unfinished_bytes() const noexcept { return long_ ? long_length_ : carried_.size(); }
  /// Those of them that take memory.
  [[nodiscard]] std::size_t carried_bytes() const noexcept { return carried_.size(); }
  /// Treats the unfinished line as too long from here on, which gives its memory back.
  void give_up_line();

 private:
  struct Checksum;

  template <class Sink>
  bool pass_unfinished(Sink& sink) {
    const std::uint64_t line_offset = offset_;
    offset_ += unfinished_bytes() + 1;
    const bool go_on = long_ ? sink.long_line(finish_long_line(), line_offset) : sink.line(carried_, line_offset);
    forget_unfinished();
    return go_on;
  }
  void extend(std::string_view bytes);
  [[nodiscard]] LongLine whole_long_line(std::string_view line) const;
  [[nodiscard]] LongLine finish_long_line() const;
  void forget_unfinished();

  std::size_t line_bytes_max_;
  std::string carried_;       // The unfinished line; of a long one its first bytes.
  std::uint64_t offset_ = 0;  // In the stream, of the first line not yet passed.
  bool long_ = false;         // The unfinished line is beyond the limit.
  std::uint64_t long_length_ = 0;
  std::unique_ptr<Checksum> checksum_;
};

}  // namespace kvingest::net
