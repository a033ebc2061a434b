// byte_scan.hpp -- one byte value looked for in up to 64 bytes at once.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kvingest/codec/byte_buffer.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvingest {

inline constexpr std::size_t kScanBlockBytes = 64;

/// Bit i of the result is set where block[i] == wanted; of a block of at most kScanBlockBytes. Nothing outside it is
/// read. In plain C++, for any machine.
[[nodiscard]] inline std::uint64_t equal_mask_portable(std::string_view block, char wanted) noexcept {
  constexpr std::uint64_t kLow7 = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t pattern = 0x0101010101010101 * static_cast<unsigned char>(wanted);
  std::uint64_t mask = 0;
  for (unsigned i = 0; i + 8 <= block.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, block.data() + i, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    word ^= pattern;
    // The top bit of each byte that is zero now; no carry leaves a byte, so the mask is exact.
    const std::uint64_t zero = ~(((word & kLow7) + kLow7) | word | kLow7);
    mask |= ((zero >> 7) * 0x0102040810204080 >> 56) << i;  // Gathers eight top bits into one byte.
  }
  for (std::size_t i = block.size() & ~std::size_t{7}; i < block.size(); ++i) {
    mask |= static_cast<std::uint64_t>(block[i] == wanted) << i;
  }
  return mask;
}

#if defined(__SSE2__)

[[nodiscard]] inline std::uint64_t equal_mask_16(const char* bytes, char wanted) noexcept {
  const __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)), _mm_set1_epi8(wanted));
  return static_cast<unsigned>(_mm_movemask_epi8(equal));
}

/// The same with what every machine of this architecture has.
[[nodiscard]] inline std::uint64_t equal_mask(std::string_view block, char wanted) noexcept {
  if (block.size() < 16) {
    char copy[16] = {};
    codec::copy_short(copy, block.data(), block.size());
    return equal_mask_16(copy, wanted) & ((std::uint64_t{1} << block.size()) - 1);
  }
  const std::size_t last = block.size() - 16;  // The last 16 bytes overlap those before: they say the same twice.
  std::uint64_t mask = equal_mask_16(block.data() + last, wanted) << last;
  for (std::size_t i = 0; i < last; i += 16) mask |= equal_mask_16(block.data() + i, wanted) << i;
  return mask;
}

#else

[[nodiscard]] inline std::uint64_t equal_mask(std::string_view block, char wanted) noexcept {
  return equal_mask_portable(block, wanted);
}

#endif

}  // namespace kvingest
