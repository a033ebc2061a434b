// compact_key.hpp -- an owned key in 24 bytes: short keys lie in it, longer ones on the heap.
//
// A tree of std::string takes 32 bytes a key and goes to the heap beyond 15 of them. Keys of numbers (8 bytes), of
// records of a benchmark (16) and of a prefix with 20 digits (up to 22) fit in here.
//
// Threads: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kvingest/limits.hpp"

namespace kvingest::slots {

class CompactKey {
 public:
  static constexpr std::size_t kInlineBytes = 22;

  explicit CompactKey(std::string_view key) : size_(static_cast<std::uint16_t>(key.size())) {
    char* to = bytes_;
    if (key.size() > kInlineBytes) {
      to = new char[key.size()];
      std::memcpy(bytes_, &to, sizeof to);
    }
    std::memcpy(to, key.data(), key.size());
  }
  CompactKey(CompactKey&& other) noexcept : size_(other.size_) {
    std::memcpy(bytes_, other.bytes_, sizeof bytes_);
    other.size_ = 0;
  }
  CompactKey& operator=(CompactKey&& other) noexcept {
    if (this == &other) return *this;
    release();
    size_ = other.size_;
    std::memcpy(bytes_, other.bytes_, sizeof bytes_);
    other.size_ = 0;
    return *this;
  }
  CompactKey(const CompactKey& other) : CompactKey(other.view()) {}
  CompactKey& operator=(const CompactKey& other) { return *this = CompactKey(other); }
  ~CompactKey() { release(); }

  /// What a key of so many bytes takes on the heap.
  [[nodiscard]] static constexpr std::size_t heap_bytes(std::size_t key_bytes) noexcept {
    return key_bytes > kInlineBytes ? key_bytes : 0;
  }
  [[nodiscard]] std::string_view view() const noexcept { return {size_ > kInlineBytes ? heap() : bytes_, size_}; }
  operator std::string_view() const noexcept { return view(); }  // Implicit: it is a key.

 private:
  [[nodiscard]] char* heap() const noexcept {
    char* at = nullptr;
    std::memcpy(&at, bytes_, sizeof at);
    return at;
  }
  void release() noexcept {
    if (size_ > kInlineBytes) delete[] heap();
  }

  char bytes_[kInlineBytes];  // The key, or in front the address of its bytes.
  std::uint16_t size_;
};
static_assert(sizeof(CompactKey) == 24);
static_assert(kKeyBytesMax <= UINT16_MAX);

/// Orders CompactKeys and what converts to a key by unsigned bytes.
struct CompactKeyLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const noexcept { return a < b; }
};

}  // namespace kvingest::slots
