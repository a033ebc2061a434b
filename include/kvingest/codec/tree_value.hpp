// kvingest/codec/tree_value.hpp -- what may be the value of a node of a serialized tree: anything with this trait.
//
// Numbers and std::string have it. For a type of your own specialise TreeValue in one of two ways:
//
//   fixed size     static constexpr std::uint8_t kKind = 128...255;     // told apart in the header of a file
//                  static constexpr std::size_t kBytes = ...;           // at least 1
//                  static void put(char* to, const V& value);
//                  static V get(const char* from);
//   variable size  the same with kBytes = 0, and
//                  static std::string_view bytes(const V& value);       // valid as long as `value`
//                  static V from(std::string_view bytes);
//
// Values are equal when their bytes are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::codec {

template <class V>
struct TreeValue;

/// Integers and floating-point numbers of 4 or 8 bytes: their bits, little-endian.
template <class V>
  requires(std::is_arithmetic_v<V> && (sizeof(V) == 4 || sizeof(V) == 8))
struct TreeValue<V> {
  using Bits = std::conditional_t<sizeof(V) == 4, std::uint32_t, std::uint64_t>;
  /// 1 to 6: u32 u64 i32 i64 f32 f64.
  static constexpr std::uint8_t kKind = (std::is_floating_point_v<V> ? 5
                                         : std::is_signed_v<V>       ? 3
                                                                     : 1) +
                                        (sizeof(V) == 8 ? 1 : 0);
  static constexpr std::size_t kBytes = sizeof(V);

  static void put(char* to, V value) noexcept { put_fixed(to, std::bit_cast<Bits>(value)); }
  static V get(const char* from) noexcept { return std::bit_cast<V>(get_fixed<Bits>(from)); }
};

template <>
struct TreeValue<std::string> {
  static constexpr std::uint8_t kKind = 16;
  static constexpr std::size_t kBytes = 0;

  static std::string_view bytes(const std::string& value) noexcept { return value; }
  static std::string from(std::string_view bytes) { return std::string(bytes); }
};

}  // namespace kvingest::codec
