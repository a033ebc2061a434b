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
#include <string>
#include <string_view>
#include <utility>

#include "net/long_message.hpp"
#include "record/line_splitter.hpp"

namespace kvingest::net {

class LineCutter {
 public:
  explicit LineCutter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  /// Passes each line that ends in `bytes`, without its LF, to `sink.line(view, offset)`, or a long one to
  /// `sink.long_line(line, offset)`; `offset` is its first byte's place in the stream. Each returns whether to go on.
  /// Returns how many of `bytes` are used up: all, unless the sink stopped; the rest belongs into the next call.
  template <class Sink>
  std::size_t cut(std::string_view bytes, Sink& sink) {
    std::size_t used = 0;
    if (unfinished_bytes() > 0) {
      const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
      const std::size_t end = lf != nullptr ? static_cast<std::size_t>(lf - bytes.data()) : bytes.size();
      extend(bytes.substr(0, end));
      if (lf == nullptr) return bytes.size();
      used = end + 1;
      if (!pass_unfinished(sink)) return used;
    }
    LineCursor lines(bytes.substr(used));
    for (std::string_view line; lines.next(line);) {
      const std::uint64_t line_offset = offset_;
      offset_ += line.size() + 1;
      const bool go_on = line.size() <= line_bytes_max_ ? sink.line(line, line_offset)
                                                        : sink.long_line(whole_long_message(line), line_offset);
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
  [[nodiscard]] std::uint64_t unfinished_bytes() const noexcept {
    return long_.active() ? long_.length() : carried_.size();
  }
  /// Those of them that take memory.
  [[nodiscard]] std::size_t carried_bytes() const noexcept { return carried_.size() + long_.kept_bytes(); }
  /// Treats the unfinished line as too long from here on, which gives its memory back.
  void give_up_message() {
    if (!long_.active()) long_.begin(std::exchange(carried_, {}));
  }
  /// Lines can always be found.
  [[nodiscard]] static constexpr bool broken() noexcept { return false; }

 private:
  template <class Sink>
  bool pass_unfinished(Sink& sink) {
    const std::uint64_t line_offset = offset_;
    offset_ += unfinished_bytes() + 1;
    const bool go_on = long_.active() ? sink.long_line(long_.finish(), line_offset) : sink.line(carried_, line_offset);
    forget(carried_);
    long_.forget();
    return go_on;
  }
  void extend(std::string_view bytes) {
    if (!long_.active() && carried_.size() + bytes.size() > line_bytes_max_) give_up_message();
    if (long_.active()) {
      long_.extend(bytes);
    } else {
      carried_.append(bytes);
    }
  }

  std::size_t line_bytes_max_;
  std::uint64_t offset_ = 0;  // In the stream, of the first line not yet passed.
  std::string carried_;       // The unfinished line.
  LongMessageBuilder long_;   // The unfinished line, where it is beyond the limit.
};

}  // namespace kvingest::net
