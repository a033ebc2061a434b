// kvingest/codec/byte_buffer.hpp -- growing bytes that are written once: room is not zeroed before it is filled.
//
// A record of a feed is some twenty bytes. Beside a std::string, whose resize() clears what is about to be overwritten
// and whose append() checks and calls for each part, this halves the price of encoding one.
//
// Threads: a value; one thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace kvingest::codec {

/// memcpy for what is most often short: two overlapping moves instead of a call.
[[gnu::always_inline]] inline char* copy_short(char* to, const char* from, std::size_t bytes) noexcept {
  if (bytes > 32) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 16) {
    char head[16], tail[16];
    std::memcpy(head, from, 16);
    std::memcpy(tail, from + bytes - 16, 16);
    std::memcpy(to, head, 16);
    std::memcpy(to + bytes - 16, tail, 16);
  } else if (bytes >= 8) {
    char head[8], tail[8];
    std::memcpy(head, from, 8);
    std::memcpy(tail, from + bytes - 8, 8);
    std::memcpy(to, head, 8);
    std::memcpy(to + bytes - 8, tail, 8);
  } else if (bytes >= 4) {
    char head[4], tail[4];
    std::memcpy(head, from, 4);
    std::memcpy(tail, from + bytes - 4, 4);
    std::memcpy(to, head, 4);
    std::memcpy(to + bytes - 4, tail, 4);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
  return to + bytes;
}

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(const ByteBuffer& other) { append(other.view()); }
  ByteBuffer(ByteBuffer&& other) noexcept { swap(other); }
  ByteBuffer& operator=(ByteBuffer other) noexcept { return swap(other), *this; }
  ~ByteBuffer() = default;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] char* data() noexcept { return bytes_.get(); }
  [[nodiscard]] const char* data() const noexcept { return bytes_.get(); }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }

  void clear() noexcept { size_ = 0; }
  void reserve(std::size_t bytes) {
    if (bytes > capacity_) move_to(bytes);
  }
  /// Adds `bytes` bytes, whose value is not set yet, and returns where they begin.
  [[nodiscard]] char* extend(std::size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      move_to(size_ + bytes > 2 * capacity_ ? size_ + bytes : 2 * capacity_);
    char* const at = bytes_.get() + size_;
    size_ += bytes;
    return at;
  }
  void append(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
  }

 private:
  void swap(ByteBuffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  [[gnu::noinline]] void move_to(std::size_t capacity) {
    std::unique_ptr<char[]> larger(new char[capacity]);  // Not make_unique: that clears.
    if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace kvingest::codec
