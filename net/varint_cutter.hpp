// varint_cutter.hpp -- cuts a stream into messages that each have their length in front, as a LEB128 varint (protobuf's
// delimited form: `writeDelimitedTo`).
//
// The counterpart of LineCutter, with the same sink. A message beyond the limit is passed once as a long one: its
// length is never trusted with memory. A length that is no varint leaves no way to find the next message: the stream is
// broken.
//
// Threads:  one thread at a time.
// Lifetime: a view is valid until the sink returns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kvingest/codec/varint.hpp"
#include "net/long_message.hpp"

namespace kvingest::net {

class VarintCutter {
 public:
  explicit VarintCutter(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  /// Passes each message that ends in `bytes` to the sink, as LineCutter::cut() does.
  template <class Sink>
  std::size_t cut(std::string_view bytes, Sink& sink) {
    std::size_t used = 0;
    while (used < bytes.size() && !broken_) {
      const std::string_view rest = bytes.substr(used);
      if (!in_message_) {
        used += take_length(rest);
        if (!in_message_ || left_ > 0) continue;
      } else if (carried_.empty() && !long_.active() && rest.size() >= left_ && left_ <= message_bytes_max_) {
        const std::string_view message = rest.substr(0, left_);
        used += message.size();
        if (!pass(sink, message)) return used;
        continue;
      } else {
        const std::string_view part = rest.substr(0, left_);
        used += part.size();
        extend(part);
        if (left_ > 0) continue;
      }
      if (!pass_carried(sink)) return used;
    }
    return used;
  }

  /// Passes the beginning of a message that was cut off.
  template <class Sink>
  void finish(Sink& sink) {
    if (unfinished_bytes() > 0) pass_carried(sink);
  }

  /// Bytes received of a message that is not complete, its length included.
  [[nodiscard]] std::uint64_t unfinished_bytes() const noexcept {
    return length_bytes_ + (long_.active() ? long_.length() : carried_.size());
  }
  [[nodiscard]] std::size_t carried_bytes() const noexcept { return carried_.size() + long_.kept_bytes(); }
  void give_up_message() {
    if (!long_.active()) long_.begin(std::exchange(carried_, {}));
  }
  /// The length of a message was no varint; nothing more is passed.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

 private:
  /// Takes bytes of a length; returns how many.
  std::size_t take_length(std::string_view bytes) {
    // Nearly always all of it is here. One that comes in pieces is put together first.
    const std::size_t before = length_bytes_;
    const std::size_t part = std::min(bytes.size(), codec::kVarint64BytesMax - before);
    const char* const from = before == 0 ? bytes.data() : length_;
    if (before != 0) std::copy_n(bytes.data(), part, length_ + before);
    const codec::VarintEnd read = codec::read_varint(from, from + before + part, left_);
    in_message_ = read.fault == codec::Fault::none;
    broken_ = !in_message_ && read.fault != codec::Fault::unfinished;
    length_bytes_ = in_message_ ? static_cast<std::size_t>(read.next - from) : before + part;
    if (!in_message_ && before == 0) std::copy_n(bytes.data(), part, length_);
    return length_bytes_ - before;
  }
  void extend(std::string_view part) {
    left_ -= part.size();
    if (!long_.active() && carried_.size() + part.size() + left_ > message_bytes_max_) give_up_message();
    if (long_.active()) {
      long_.extend(part);
    } else {
      carried_.append(part);
    }
  }
  template <class Sink>
  bool pass(Sink& sink, std::string_view message) {
    const std::uint64_t offset = offset_;
    offset_ += length_bytes_ + message.size();
    length_bytes_ = 0;
    in_message_ = false;
    return sink.line(message, offset);
  }
  template <class Sink>
  bool pass_carried(Sink& sink) {
    const std::uint64_t offset = offset_;
    offset_ += unfinished_bytes();
    length_bytes_ = 0;
    in_message_ = false;
    const bool go_on = long_.active() ? sink.long_line(long_.finish(), offset) : sink.line(carried_, offset);
    forget(carried_);
    long_.forget();
    return go_on;
  }

  std::size_t message_bytes_max_;
  std::uint64_t offset_ = 0;  // In the stream, of the first message not yet passed.
  char length_[codec::kVarint64BytesMax] = {};
  std::size_t length_bytes_ = 0;
  bool in_message_ = false;
  bool broken_ = false;
  std::uint64_t left_ = 0;  // Bytes of the message that have not come.
  std::string carried_;
  LongMessageBuilder long_;
};

}  // namespace kvingest::net
