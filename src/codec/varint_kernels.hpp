// varint_kernels.hpp -- the ways of writing and reading arrays of varints: a table of functions for each.
//
// A kernel does what is in order at its own speed and leaves the rest of a value, or of the input, to the plain
// functions below: so all of them find the same faults at the same places.
//
// Threads: functions of their arguments only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kvingest/codec/integer_array.hpp"

namespace kvingest::codec {

/// How far a decoder came.
struct Decoded {
  const char* at;      ///< Behind the last good value: where the malformed one begins, if any.
  std::size_t values;  ///< Good values.
  Fault fault;
};

/// Both forms of varint, in the order of Form.
inline constexpr std::size_t kVarintForms = 2;

template <VarintWord T>
struct Kernels {
  /// Writes `count` values; the room behind `to` is encoded_bytes_max().
  using Encode = char* (*)(const T* from, std::size_t count, char* to) noexcept;
  using Decode = Decoded (*)(const char* from, const char* end, T* to, std::size_t count) noexcept;
  using Signed = std::make_signed_t<T>;

  std::array<Encode, kVarintForms> encode;
  std::array<Decode, kVarintForms> decode;
  void (*zigzag)(const Signed* from, std::size_t count, T* to) noexcept;
  void (*unzigzag)(const T* from, std::size_t count, Signed* to) noexcept;
};

/// nullptr: not for this processor.
template <VarintWord T>
[[nodiscard]] const Kernels<T>* plain_kernels() noexcept;
template <VarintWord T>
[[nodiscard]] const Kernels<T>* word_kernels() noexcept;
template <VarintWord T>
[[nodiscard]] const Kernels<T>* bmi2_kernels() noexcept;
template <VarintWord T>
[[nodiscard]] const Kernels<T>* simd_kernels() noexcept;

// One value, in the form that a template names.

template <Form kForm>
[[nodiscard]] inline char* put_one(char* to, std::uint64_t value) noexcept {
  if constexpr (kForm == Form::leb128)
    return put_varint(to, value);
  else
    return put_stop_bit(to, value);
}

template <Form kForm, VarintWord T>
[[nodiscard]] inline VarintEnd read_one(const char* from, const char* end, T& value) noexcept {
  if constexpr (kForm == Form::leb128)
    return read_varint(from, end, value);
  else
    return read_stop_bit(from, end, value);
}

/// Reads from `from`, until `count` values are there, what a kernel could not; `start` is where it began.
template <Form kForm, VarintWord T>
[[nodiscard]] inline Decoded decode_rest(const char* from, const char* end, T* to, std::size_t count,
                                         const T* start) noexcept {
  for (T* const last = to + count; to != last; ++to) {
    const VarintEnd read = read_one<kForm>(from, end, *to);
    if (read.fault != Fault::none) return {from, static_cast<std::size_t>(to - start), read.fault};
    from = read.next;
  }
  return {from, static_cast<std::size_t>(to - start), Fault::none};
}

template <Form kForm, VarintWord T>
[[nodiscard]] inline char* encode_rest(const T* from, std::size_t count, char* to) noexcept {
  for (const T* const last = from + count; from != last; ++from) to = put_one<kForm>(to, *from);
  return to;
}

template <VarintWord T>
void zigzag_plain(const std::make_signed_t<T>* from, std::size_t count, T* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) to[i] = zigzag(from[i]);
}

template <VarintWord T>
void unzigzag_plain(const T* from, std::size_t count, std::make_signed_t<T>* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) to[i] = unzigzag(from[i]);
}

}  // namespace kvingest::codec
