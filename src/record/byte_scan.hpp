// byte_scan.hpp -- one byte value looked for in 64 bytes at once.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvingest {

inline constexpr std::size_t kScanBlockBytes = 64;

/// Bit i of the result is set where block[i] == wanted, for plain C++ on any machine.
[[nodiscard]] inline std::uint64_t equal_mask_portable(const char* block, char wanted) noexcept {
  constexpr std::uint64_t kLow7 = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t pattern = 0x0101010101010101 * static_cast<unsigned char>(wanted);
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < kScanBlockBytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, block + i, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    word ^= pattern;
    // The top bit of each byte that is zero now; no borrow crosses a byte, so the mask is exact.
    const std::uint64_t zero = ~(((word & kLow7) + kLow7) | word | kLow7);
    mask |= ((zero >> 7) * 0x0102040810204080 >> 56) << i;  // Gathers eight top bits into one byte.
  }
  return mask;
}

/// The same with what every machine of this architecture has.
[[nodiscard]] inline std::uint64_t equal_mask(const char* block, char wanted) noexcept {
#if defined(__SSE2__)
  const __m128i pattern = _mm_set1_epi8(wanted);
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < kScanBlockBytes; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const auto part = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, pattern)));
    mask |= static_cast<std::uint64_t>(part) << i;
  }
  return mask;
#else
  return equal_mask_portable(block, wanted);
#endif
}

}  // namespace kvingest
