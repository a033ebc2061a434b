// varint_word.hpp -- a varint of up to eight bytes as one 64-bit word: its groups gathered and scattered without a
// loop.
//
// Groups are seven bits in a byte each, the lowest in byte 0. Gathering them is three steps, each of which closes the
// gaps between neighbours: of 1 bit between bytes, then of 2 between pairs, then of 4 between fours.
#pragma once

#include <bit>
#include <cstdint>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/integer_array.hpp"

namespace kvingest::codec {

inline constexpr std::size_t kWordBytes = 8;
inline constexpr std::uint64_t kGroupBits = 0x7F7F7F7F7F7F7F7F;
inline constexpr std::uint64_t kTopBits = 0x8080808080808080;
/// The largest value that a word of groups holds.
inline constexpr std::uint64_t kWordValueMax = (std::uint64_t{1} << 56) - 1;

[[nodiscard]] constexpr std::uint64_t gather_groups(std::uint64_t groups) noexcept {
  groups = (groups & 0x007F007F007F007F) | ((groups & 0x7F007F007F007F00) >> 1);
  groups = (groups & 0x00003FFF00003FFF) | ((groups & 0x3FFF00003FFF0000) >> 2);
  return (groups & 0x000000000FFFFFFF) | ((groups & 0x0FFFFFFF00000000) >> 4);
}

[[nodiscard]] constexpr std::uint64_t scatter_groups(std::uint64_t value) noexcept {
  value = (value & 0x000000000FFFFFFF) | ((value << 4) & 0x0FFFFFFF00000000);
  value = (value & 0x00003FFF00003FFF) | ((value << 2) & 0x3FFF00003FFF0000);
  return (value & 0x007F007F007F007F) | ((value << 1) & 0x7F007F007F007F00);
}

/// How many bytes the value that begins a word has: 1 to 8, or 0 when it does not end in the word.
template <Form kForm>
[[nodiscard]] inline unsigned length_in_word(std::uint64_t word) noexcept {
  const std::uint64_t ends = (kForm == Form::leb128 ? ~word : word) & kTopBits;
  return ends == 0 ? 0 : static_cast<unsigned>(std::countr_zero(ends)) / 8 + 1;
}

/// The groups of the value of `bytes` bytes that begins a word, the lowest in byte 0.
template <Form kForm>
[[nodiscard]] inline std::uint64_t groups_of(std::uint64_t word, unsigned bytes) noexcept {
  const unsigned unused = 64 - 8 * bytes;
  const std::uint64_t groups = kForm == Form::leb128 ? word << unused >> unused : byte_swapped(word) >> unused;
  return groups & kGroupBits;
}

/// Writes `bytes` bytes of scattered groups at `to`, which has room for eight, and marks where the value ends.
template <Form kForm>
inline void put_groups(char* to, std::uint64_t groups, std::size_t bytes) noexcept {
  const auto unused = static_cast<unsigned>(64 - 8 * bytes);
  if constexpr (kForm == Form::leb128)
    put_fixed(to, groups | (kTopBits >> 8 >> unused));
  else
    put_fixed(to, byte_swapped(groups | 0x80) >> unused);
}

/// Whether the value, of `bytes` bytes, is one that T may have: what is not is left to the plain functions to judge.
template <Form kForm, VarintWord T>
[[nodiscard]] inline bool is_sound(std::uint64_t word, std::uint64_t value, unsigned bytes) noexcept {
  const bool is_padded = kForm == Form::stop_bit && (word & 0xFF) == 0;
  return bytes != 0 && !is_padded && bytes <= kVarintBytesMax<T> && static_cast<T>(value) == value;
}

}  // namespace kvingest::codec
