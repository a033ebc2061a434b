// kvingest/codec/fixed.hpp -- fixed-width integers: little-endian in files and frames, big-endian in ordered keys.
//
// Every pointer must have room for the whole integer. No alignment is asked for.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace kvingest::codec {

template <std::unsigned_integral T>
constexpr T byte_swapped(T value) noexcept {
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

template <std::unsigned_integral T>
inline void put_fixed(char* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::big) value = byte_swapped(value);
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
[[nodiscard]] inline T get_fixed(const char* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = byte_swapped(value);
  return value;
}

/// Big-endian, so that unsigned byte order equals numeric order.
template <std::unsigned_integral T>
inline void put_ordered(char* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) value = byte_swapped(value);
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
[[nodiscard]] inline T get_ordered(const char* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) value = byte_swapped(value);
  return value;
}

}  // namespace kvingest::codec
