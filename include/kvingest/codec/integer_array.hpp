// kvingest/codec/integer_array.hpp -- arrays of integers: fixed width, or one varint behind the other.
//
// Each form can be written and read in several ways, which give the same bytes, the same values and the same errors;
// the fastest that this processor has is taken unless another is asked for. A program built for any x86-64 processor
// has them all.
//
//   plain  byte by byte, as varint.hpp does it
//   word   eight bytes at once and no loop over a value's groups, in plain C++
//   bmi2   the same with the instructions that gather and scatter bits (PEXT, PDEP)
//   simd   AVX2: sixteen bytes at once where values are short or of one length, else as `bmi2`
//
// Worked example, {1, 300} of 32 bits: fixed 01 00 00 00 2C 01 00 00; LEB128 01 AC 02; stop bit 81 02 AC.
//
// Threads:  functions of their arguments only.
// Lifetime: nothing is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "kvingest/codec/varint.hpp"
#include "kvingest/result.hpp"

namespace kvingest::codec {

enum class Form : std::uint8_t {
  fixed,     ///< All bytes of the width, little-endian.
  leb128,    ///< Varints as in protobuf.
  stop_bit,  ///< Varints as in FIX FAST.
};

enum class Path : std::uint8_t { plain, word, bmi2, simd };

[[nodiscard]] std::string_view to_string(Form form) noexcept;
[[nodiscard]] std::string_view to_string(Path path) noexcept;

/// Those that this processor can go, `plain` first.
[[nodiscard]] std::span<const Path> paths() noexcept;
/// The one that is taken by itself.
[[nodiscard]] Path best_path() noexcept;

/// What `count` values take at most, and so the room that encode_array() needs for them.
template <VarintWord T>
[[nodiscard]] constexpr std::size_t encoded_bytes_max(std::size_t count) noexcept {
  return count * kVarintBytesMax<T>;
}

/// Writes `values` to `to` and returns the place behind them. All of the room of encoded_bytes_max() may be written to.
template <VarintWord T>
[[nodiscard]] char* encode_array(Form form, std::span<const T> values, char* to, Path path = best_path()) noexcept;

/// Fills `values` from the beginning of `bytes` and returns how many bytes they took. When it fails, those before the
/// fault are filled; the others may hold anything.
/// Fails with: corrupt (the text has the offset of the value that is malformed, its index, and what is wrong).
template <VarintWord T>
[[nodiscard]] Result<std::size_t> decode_array(Form form, std::string_view bytes, std::span<T> values,
                                               Path path = best_path());

/// zigzag() and unzigzag() of each value; `to` has as many as `from`, and may be the same memory.
template <VarintWord T>
void zigzag_array(std::span<const std::make_signed_t<T>> from, T* to, Path path = best_path()) noexcept;
template <VarintWord T>
void unzigzag_array(std::span<const T> from, std::make_signed_t<T>* to, Path path = best_path()) noexcept;

}  // namespace kvingest::codec
