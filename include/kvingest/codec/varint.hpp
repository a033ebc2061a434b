// kvingest/codec/varint.hpp -- integers that take as many bytes as they need, seven bits in each: one value at a time.
// Arrays of them are in kvingest/codec/integer_array.hpp.
//
//   LEB128    as in protobuf: low groups first, the top bit of a byte says that more follow. 300 is AC 02.
//   stop bit  as in FIX FAST: high groups first, the top bit of a byte says that it is the last. 300 is 02 AC.
//   zigzag    puts the sign into the lowest bit, so that small negative numbers stay short: 0 -1 1 -2 are 0 1 2 3.
//
// Sources: Protocol Buffers encoding, "Base 128 Varints"; DWARF 4, section 7.6; FAST 1.1, section 10.6.1.
//
// Errors: a value is malformed when its input ends within it, when it is longer than any of its width, and when its
// bits do not fit. A LEB128 value may be padded with empty high groups, as protobuf allows; a stop-bit value may not,
// as FAST has it, so that each has one form. Nothing is read outside the input.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kvingest::codec {

template <class T>
concept VarintWord = std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

inline constexpr std::size_t kVarint32BytesMax = 5;
inline constexpr std::size_t kVarint64BytesMax = 10;

/// The longest value of a width, in both forms.
template <VarintWord T>
inline constexpr std::size_t kVarintBytesMax = sizeof(T) == 4 ? kVarint32BytesMax : kVarint64BytesMax;

/// What is wrong with a value.
enum class Fault : std::uint8_t {
  none,
  unfinished,  ///< The input ends within it.
  too_long,    ///< More bytes than any value of its width has.
  overflow,    ///< It has bits that its width does not.
  padded,      ///< Stop bit only: it begins with a group of no bits.
};

/// For the end of a sentence: "is not finished".
[[nodiscard]] constexpr std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::none:
      return "is in order";
    case Fault::unfinished:
      return "is not finished";
    case Fault::too_long:
      return "is too long";
    case Fault::overflow:
      return "does not fit";
    case Fault::padded:
      return "begins with an empty group";
  }
  return "is damaged";
}

/// Where a value ended; or what is wrong with it, and then `next` is nullptr.
struct VarintEnd {
  const char* next;
  Fault fault;
};

/// The bytes of a value, in both forms.
[[nodiscard]] constexpr std::size_t varint_size(std::uint64_t value) noexcept {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

/// Writes `value` at `to`, which has room for the longest one, and returns the place behind it.
inline char* put_varint(char* to, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

/// Reads a LEB128 value from [from, end) into `value`, which stays as it was when there is a fault.
template <VarintWord T>
[[nodiscard]] inline VarintEnd read_varint(const char* from, const char* end, T& value) noexcept {
  constexpr unsigned kBits = 8 * sizeof(T);
  T result = 0;
  for (unsigned shift = 0; shift < kBits; shift += 7) {
    if (from == end) return {nullptr, Fault::unfinished};
    const auto byte = static_cast<unsigned char>(*from++);
    const bool is_longest = shift + 7 > kBits;
    if (is_longest && byte >= 0x80) return {nullptr, Fault::too_long};
    if (is_longest && byte >> (kBits - shift) != 0) return {nullptr, Fault::overflow};
    result |= static_cast<T>(static_cast<T>(byte & 0x7F) << shift);
    if (byte < 0x80) {
      value = result;
      return {from, Fault::none};
    }
  }
  return {nullptr, Fault::too_long};  // Not reached: the longest byte decides.
}

/// The same where it does not matter what is wrong: the place behind the value, or nullptr.
[[nodiscard]] inline const char* get_varint(const char* from, const char* end, std::uint64_t& value) noexcept {
  return read_varint(from, end, value).next;
}

/// put_varint() in the stop-bit form.
inline char* put_stop_bit(char* to, std::uint64_t value) noexcept {
  std::size_t left = varint_size(value);
  char* const end = to + left;
  *to = 0;
  while (left-- > 0) *to++ = static_cast<char>((value >> (7 * left)) & 0x7F);
  end[-1] = static_cast<char>(end[-1] | 0x80);
  return end;
}

/// read_varint() in the stop-bit form.
template <VarintWord T>
[[nodiscard]] inline VarintEnd read_stop_bit(const char* from, const char* end, T& value) noexcept {
  constexpr unsigned kBits = 8 * sizeof(T);
  T result = 0;
  for (std::size_t i = 0; i < kVarintBytesMax<T>; ++i) {
    if (from == end) return {nullptr, Fault::unfinished};
    const auto byte = static_cast<unsigned char>(*from++);
    if (i == 0 && byte == 0) return {nullptr, Fault::padded};
    const bool is_last = byte >= 0x80;
    const bool is_longest = i + 1 == kVarintBytesMax<T>;
    if (is_longest && !is_last) return {nullptr, Fault::too_long};
    if (is_longest && result >> (kBits - 7) != 0) return {nullptr, Fault::overflow};
    result = static_cast<T>(result << 7) | (byte & 0x7F);
    if (is_last) {
      value = result;
      return {from, Fault::none};
    }
  }
  return {nullptr, Fault::too_long};  // Not reached, as above.
}

template <std::signed_integral T>
[[nodiscard]] constexpr std::make_unsigned_t<T> zigzag(T value) noexcept {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(static_cast<U>(value) << 1) ^ static_cast<U>(value >> (8 * sizeof(T) - 1));
}

template <std::unsigned_integral T>
[[nodiscard]] constexpr std::make_signed_t<T> unzigzag(T value) noexcept {
  return static_cast<std::make_signed_t<T>>((value >> 1) ^ (T{0} - (value & 1)));
}

}  // namespace kvingest::codec
