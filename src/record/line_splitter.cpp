#include "record/line_splitter.hpp"

#include <array>
#include <bit>

#include "record/byte_scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvingest {
namespace {

using MaskOf = std::uint64_t (*)(std::string_view block, char wanted) noexcept;

template <MaskOf mask_of>
std::size_t find_with(std::string_view bytes, std::uint16_t* to) noexcept {
  std::uint16_t* end = to;
  for (std::size_t base = 0; base < bytes.size(); base += kScanBlockBytes) {
    for (std::uint64_t mask = mask_of(bytes.substr(base, kScanBlockBytes), '\n'); mask != 0; mask &= mask - 1) {
      *end++ = static_cast<std::uint16_t>(base + static_cast<std::size_t>(std::countr_zero(mask)));
    }
  }
  return static_cast<std::size_t>(end - to);
}

#if defined(__x86_64__)

// Writes a place for each bit of `mask`. Lines are so short that the end of a loop over the bits would be mispredicted
// in nearly every block; four places at a time, needed or not, are cheaper. The surplus is overwritten by the next.
[[gnu::always_inline]] inline std::uint16_t* write_places(std::uint64_t mask, std::size_t base, std::uint16_t* to) {
  const int count = std::popcount(mask);
  for (int written = 0; written < count; written += 4) {
    for (int i = 0; i < 4; ++i, mask &= mask - 1) {
      to[written + i] = static_cast<std::uint16_t>(base + static_cast<std::size_t>(std::countr_zero(mask)));
    }
  }
  return to + count;
}

// Not a template over the mask, as above: a function inlines only into one that allows at least its instructions.
[[gnu::target("avx2,bmi,popcnt")]] std::size_t find_avx2(std::string_view bytes, std::uint16_t* to) noexcept {
  const __m256i newline = _mm256_set1_epi8('\n');
  std::uint16_t* end = to;
  std::size_t base = 0;
  for (; base + kScanBlockBytes <= bytes.size(); base += kScanBlockBytes) {
    const auto* const block = reinterpret_cast<const __m256i*>(bytes.data() + base);
    const __m256i low = _mm256_cmpeq_epi8(_mm256_loadu_si256(block), newline);
    const __m256i high = _mm256_cmpeq_epi8(_mm256_loadu_si256(block + 1), newline);
    const auto low_mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(low));
    const auto high_mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(high));
    end = write_places(static_cast<std::uint64_t>(high_mask) << 32 | low_mask, base, end);
  }
  if (base < bytes.size()) end = write_places(equal_mask(bytes.substr(base), '\n'), base, end);
  return static_cast<std::size_t>(end - to);
}

bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
}

constexpr std::array kFinders = {NewlineFinder{"portable", find_with<equal_mask_portable>},
                                 NewlineFinder{"sse2", find_with<equal_mask>}, NewlineFinder{"avx2", find_avx2}};

#else

bool has_avx2() noexcept {
  return true;  // The only variant needs nothing.
}
constexpr std::array kFinders = {NewlineFinder{"portable", find_with<equal_mask_portable>}};

#endif

}  // namespace

std::span<const NewlineFinder> newline_finders() noexcept {
  static const std::size_t count = has_avx2() ? kFinders.size() : kFinders.size() - 1;
  return std::span(kFinders).first(count);
}

}  // namespace kvingest
