// kvingest/codec/varint.hpp -- LEB128 varints as in protobuf: seven bits a byte, low groups first, the top bit says
// that more follows. 300 = 0x12C is written AC 02.
//
// Source: Protocol Buffers encoding, "Base 128 Varints"; DWARF 4, section 7.6 (unsigned LEB128).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvingest::codec {

inline constexpr std::size_t kVarint32BytesMax = 5;
inline constexpr std::size_t kVarint64BytesMax = 10;

[[nodiscard]] constexpr std::size_t varint_size(std::uint64_t value) noexcept {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// Writes `value` at `to`, which has room for kVarint64BytesMax, and returns the place behind it.
inline char* put_varint(char* to, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

/// Reads a value from [from, end) into `value` and returns the place behind it; nullptr when the input ends early, is
/// longer than ten bytes or does not fit 64 bits.
[[nodiscard]] inline const char* get_varint(const char* from, const char* end, std::uint64_t& value) noexcept {
  std::uint64_t result = 0;
  for (unsigned shift = 0; from != end && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(*from++);
    if (shift == 63 && byte > 1) return nullptr;
    result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      value = result;
      return from;
    }
  }
  return nullptr;
}

}  // namespace kvingest::codec
