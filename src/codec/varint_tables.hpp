// varint_tables.hpp -- how eight bytes of varints of one or two bytes are moved into eight lanes of 16 bits, and back.
//
// A lane has the low group in its low byte. A byte index with the top bit set means "zero" to the shuffle instruction.
#pragma once

#include <array>
#include <cstdint>

#include "kvingest/codec/integer_array.hpp"

namespace kvingest::codec {

inline constexpr std::uint8_t kZeroByte = 0x80;

struct Spread {
  std::array<std::uint8_t, 16> bytes;  ///< Which byte of the input each byte of the lanes takes.
  std::uint8_t values;                 ///< Lanes that are filled: up to the first longer value.
  std::uint8_t used;                   ///< Bytes of the input that they are made of.
};

/// For each pattern of bytes that are not the last of their value (bit i: byte i).
template <Form kForm>
constexpr std::array<Spread, 256> make_spreads() {
  std::array<Spread, 256> table{};
  for (unsigned more = 0; more < table.size(); ++more) {
    Spread& spread = table[more];
    spread.bytes.fill(kZeroByte);
    unsigned at = 0;
    for (unsigned lane = 0; at < 8; ++lane) {
      const bool is_long = (more >> at & 1) != 0;
      if (is_long && (at == 7 || (more >> (at + 1) & 1) != 0)) break;
      const bool is_low_first = kForm == Form::leb128 || !is_long;
      spread.bytes[2 * lane] = static_cast<std::uint8_t>(is_low_first ? at : at + 1);
      if (is_long) spread.bytes[2 * lane + 1] = static_cast<std::uint8_t>(is_low_first ? at + 1 : at);
      at += is_long ? 2 : 1;
      spread.values = static_cast<std::uint8_t>(lane + 1);
    }
    spread.used = static_cast<std::uint8_t>(at);
  }
  return table;
}

struct Packing {
  std::array<std::uint8_t, 16> bytes;  ///< Which byte of the lanes each byte of the output takes.
  std::uint8_t used;                   ///< Bytes of output.
};

/// For each pattern of lanes that need two bytes (bit i: lane i).
template <Form kForm>
constexpr std::array<Packing, 256> make_packings() {
  std::array<Packing, 256> table{};
  for (unsigned is_long = 0; is_long < table.size(); ++is_long) {
    Packing& packing = table[is_long];
    packing.bytes.fill(kZeroByte);
    unsigned at = 0;
    for (unsigned lane = 0; lane < 8; ++lane) {
      const unsigned low = 2 * lane;
      if ((is_long >> lane & 1) == 0) {
        packing.bytes[at++] = static_cast<std::uint8_t>(low);
        continue;
      }
      packing.bytes[at++] = static_cast<std::uint8_t>(kForm == Form::leb128 ? low : low + 1);
      packing.bytes[at++] = static_cast<std::uint8_t>(kForm == Form::leb128 ? low + 1 : low);
    }
    packing.used = static_cast<std::uint8_t>(at);
  }
  return table;
}

template <Form kForm>
inline constexpr auto kSpreads = make_spreads<kForm>();
template <Form kForm>
inline constexpr auto kPackings = make_packings<kForm>();

/// Groups of one length: four values of three or four bytes, or three of five, each into a lane of 32 bits, low group
/// in the low byte. Of five-byte values the highest group is left out here.
template <Form kForm>
constexpr std::array<std::uint8_t, 16> make_even_spread(unsigned length, unsigned values) {
  std::array<std::uint8_t, 16> bytes{};
  bytes.fill(kZeroByte);
  for (unsigned value = 0; value < values; ++value) {
    for (unsigned group = 0; group < 4 && group < length; ++group) {
      const unsigned place = kForm == Form::leb128 ? group : length - 1 - group;
      bytes[4 * value + group] = static_cast<std::uint8_t>(length * value + place);
    }
  }
  return bytes;
}

/// The highest group of three values of five bytes, each in the low byte of its lane of 32 bits.
template <Form kForm>
constexpr std::array<std::uint8_t, 16> make_fifth_spread() {
  std::array<std::uint8_t, 16> bytes{};
  bytes.fill(kZeroByte);
  for (unsigned value = 0; value < 3; ++value)
    bytes[4 * value] = static_cast<std::uint8_t>(5 * value + (kForm == Form::leb128 ? 4 : 0));
  return bytes;
}

}  // namespace kvingest::codec
