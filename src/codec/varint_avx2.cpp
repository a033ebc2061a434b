// Arrays of varints with AVX2: sixteen bytes at once where values are of one or two bytes, or all of one length; where
// they are not, a word for each value, with PEXT and PDEP, which all processors with AVX2 have.
#include "codec/varint_kernels.hpp"
#include "codec/varint_tables.hpp"
#include "codec/varint_word.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#define KV_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt")]]
#define KV_AVX2_INLINE [[gnu::target("avx2,bmi,bmi2,lzcnt"), gnu::always_inline]] inline

namespace kvingest::codec {
namespace {

constexpr unsigned kVectorBytes = 16;
/// What a step may look at: the last value that begins within a vector is read as a whole word.
constexpr std::ptrdiff_t kLookBytes = kVectorBytes + kWordBytes;
/// Values that one step may store at once.
constexpr std::ptrdiff_t kStep = 16;

KV_AVX2_INLINE __m128i load(const void* from) noexcept {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
KV_AVX2_INLINE void store(void* to, __m128i vector) noexcept {
  _mm_storeu_si128(static_cast<__m128i*>(to), vector);
}
KV_AVX2_INLINE void store(void* to, __m256i vector) noexcept {
  _mm256_storeu_si256(static_cast<__m256i*>(to), vector);
}
KV_AVX2_INLINE __m128i without_top_bits(__m128i bytes) noexcept {
  return _mm_and_si128(bytes, _mm_set1_epi8(0x7F));
}

// ---- Lanes of 8, 16 and 32 bits to values --------------------------------------------------------------------------

template <VarintWord T>
KV_AVX2_INLINE void widen_8(__m128i lanes, T* to) noexcept {
  if constexpr (sizeof(T) == 4) {
    store(to, _mm256_cvtepu8_epi32(lanes));
    store(to + 8, _mm256_cvtepu8_epi32(_mm_srli_si128(lanes, 8)));
  } else {
    store(to, _mm256_cvtepu8_epi64(lanes));
    store(to + 4, _mm256_cvtepu8_epi64(_mm_srli_si128(lanes, 4)));
    store(to + 8, _mm256_cvtepu8_epi64(_mm_srli_si128(lanes, 8)));
    store(to + 12, _mm256_cvtepu8_epi64(_mm_srli_si128(lanes, 12)));
  }
}

template <VarintWord T>
KV_AVX2_INLINE void widen_16(__m128i lanes, T* to) noexcept {
  if constexpr (sizeof(T) == 4) {
    store(to, _mm256_cvtepu16_epi32(lanes));
  } else {
    store(to, _mm256_cvtepu16_epi64(lanes));
    store(to + 4, _mm256_cvtepu16_epi64(_mm_srli_si128(lanes, 8)));
  }
}

template <VarintWord T>
KV_AVX2_INLINE void widen_32(__m128i lanes, T* to) noexcept {
  if constexpr (sizeof(T) == 4)
    store(to, lanes);
  else
    store(to, _mm256_cvtepu32_epi64(lanes));
}

/// Two groups in each lane of 16 bits become one number of 14 bits.
KV_AVX2_INLINE __m128i join_pairs(__m128i groups) noexcept {
  return _mm_maddubs_epi16(_mm_set1_epi16(0x8001 - 0x10000), groups);  // 1 * low + 128 * high
}

/// Four groups in each lane of 32 bits become one number of 28 bits.
KV_AVX2_INLINE __m128i join_fours(__m128i groups) noexcept {
  return _mm_madd_epi16(join_pairs(groups), _mm_set1_epi32(0x40000001));  // 1 * low + 2^14 * high
}

// ---- Decoding ------------------------------------------------------------------------------------------------------

/// Bit i: byte i is not the last one of its value.
template <Form kForm>
KV_AVX2_INLINE unsigned bytes_with_more(__m128i bytes) noexcept {
  const auto top = static_cast<unsigned>(_mm_movemask_epi8(bytes));
  return kForm == Form::leb128 ? top : top ^ 0xFFFFU;
}

/// Whether a value that begins at one of the bytes `starts` begins with an empty group.
template <Form kForm>
KV_AVX2_INLINE bool any_padded(__m128i bytes, unsigned starts) noexcept {
  if constexpr (kForm == Form::leb128) return false;
  return (static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()))) & starts) != 0;
}

/// A run of values of one length at the front of sixteen bytes.
template <unsigned kLength, unsigned kValues>
struct Run {
  static constexpr unsigned kStarts = [] {
    unsigned starts = 0;
    for (unsigned i = 0; i < kValues; ++i) starts |= 1U << (i * kLength);
    return starts;
  }();
  static constexpr unsigned kAll = 0xFFFFU >> (kVectorBytes - kLength * kValues);
  static constexpr unsigned kMore = kAll & ~(kStarts << (kLength - 1));
};

template <Form kForm, unsigned kLength, VarintWord T>
KV_AVX2_INLINE bool take_fours(__m128i bytes, unsigned more, T* to) noexcept {
  using Fours = Run<kLength, 4>;
  static constexpr auto kSpread = make_even_spread<kForm>(kLength, 4);
  if ((more & Fours::kAll) != Fours::kMore || any_padded<kForm>(bytes, Fours::kStarts)) return false;
  widen_32(join_fours(_mm_shuffle_epi8(without_top_bits(bytes), load(kSpread.data()))), to);
  return true;
}

/// Three values of five bytes, of 32 bits; false also when one does not fit.
template <Form kForm>
KV_AVX2_INLINE bool take_fives(__m128i bytes, unsigned more, std::uint32_t* to) noexcept {
  using Fives = Run<5, 3>;
  static constexpr auto kLow = make_even_spread<kForm>(5, 3);
  static constexpr auto kHigh = make_fifth_spread<kForm>();
  if ((more & Fives::kAll) != Fives::kMore || any_padded<kForm>(bytes, Fives::kStarts)) return false;
  const __m128i high = _mm_shuffle_epi8(bytes, load(kHigh.data()));
  if (_mm_testz_si128(high, _mm_set1_epi32(0xF0)) == 0) return false;
  const __m128i low = _mm_shuffle_epi8(without_top_bits(bytes), load(kLow.data()));
  store(to, _mm_or_si128(join_fours(low), _mm_slli_epi32(high, 28)));
  return true;
}

struct Taken {
  unsigned bytes;  ///< 0: nothing here can be taken in this way.
  unsigned values;
};

/// What can be taken with vectors from the front of sixteen bytes; room for kStep values.
template <Form kForm, VarintWord T>
KV_AVX2_INLINE Taken take_vector(__m128i bytes, unsigned more, T* to) noexcept {
  static constexpr const auto& kSpread = kSpreads<kForm>;
  if (more == 0) {
    widen_8(without_top_bits(bytes), to);
    return {16, 16};
  }
  if (more == Run<2, 8>::kMore && !any_padded<kForm>(bytes, Run<2, 8>::kStarts)) {
    const __m128i groups = without_top_bits(bytes);
    const __m128i swapped = _mm_or_si128(_mm_slli_epi16(groups, 8), _mm_srli_epi16(groups, 8));
    widen_16(join_pairs(kForm == Form::leb128 ? groups : swapped), to);
    return {16, 8};
  }
  if (take_fours<kForm, 3>(bytes, more, to)) return {12, 4};
  if (take_fours<kForm, 4>(bytes, more, to)) return {16, 4};
  if constexpr (sizeof(T) == 4) {
    if (take_fives<kForm>(bytes, more, to)) return {15, 3};
  }
  const Spread& spread = kSpread[more & 0xFF];
  if (spread.values < 3 || any_padded<kForm>(bytes, (1U << spread.used) - 1)) return {0, 0};
  widen_16(join_pairs(_mm_shuffle_epi8(without_top_bits(bytes), load(spread.bytes.data()))), to);
  return {spread.used, spread.values};
}

/// As many values of any length as are sure to end within sixteen bytes, a word for each. Where the next one begins is
/// known from `more`, so that none waits for the one before to be read.
template <Form kForm, VarintWord T>
KV_AVX2_INLINE Taken take_words(const char* from, unsigned more, T* to) noexcept {
  constexpr unsigned kLongest = std::min<unsigned>(kVarintBytesMax<T>, kWordBytes);
  constexpr unsigned kValues = kVectorBytes / kLongest;
  unsigned used = 0;
  bool all_sound = true;
  for (unsigned i = 0; i < kValues; ++i) {
    const auto bytes = static_cast<unsigned>(std::countr_one(more)) + 1;
    if (bytes > kLongest) return {0, 0};
    const auto word = get_fixed<std::uint64_t>(from + used);
    const std::uint64_t value = _pext_u64(groups_of<kForm>(word, bytes), kGroupBits);
    all_sound &= is_sound<kForm, T>(word, value, bytes);
    to[i] = static_cast<T>(value);
    more >>= bytes;
    used += bytes;
  }
  return all_sound ? Taken{used, kValues} : Taken{0, 0};
}

template <Form kForm, VarintWord T>
KV_AVX2 Decoded decode(const char* from, const char* end, T* to, std::size_t count) noexcept {
  const T* const start = to;
  T* const last = to + count;
  while (last - to >= kStep && end - from >= kLookBytes) {
    const __m128i bytes = load(from);
    const unsigned more = bytes_with_more<kForm>(bytes);
    Taken taken = take_vector<kForm>(bytes, more, to);
    if (taken.bytes == 0) taken = take_words<kForm>(from, more, to);
    if (taken.bytes != 0) {
      from += taken.bytes;
      to += taken.values;
      continue;
    }
    const VarintEnd read = read_one<kForm>(from, end, *to);
    if (read.fault != Fault::none) return {from, static_cast<std::size_t>(to - start), read.fault};
    from = read.next;
    ++to;
  }
  return decode_rest<kForm>(from, end, to, static_cast<std::size_t>(last - to), start);
}

// ---- Encoding ------------------------------------------------------------------------------------------------------

/// Four values as lanes of 32 bits; what those lanes lose is in `bits` all the same.
template <VarintWord T>
KV_AVX2_INLINE __m128i load_four(const T* from, __m128i& bits) noexcept {
  if constexpr (sizeof(T) == 4) {
    const __m128i values = load(from);
    bits = _mm_or_si128(bits, values);
    return values;
  } else {
    const __m128i first = load(from);
    const __m128i second = load(from + 2);
    bits = _mm_or_si128(bits, _mm_or_si128(first, second));
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(first), _mm_castsi128_ps(second), 0x88));
  }
}

/// Whether no value that `bits` was made of has a bit beyond `mask`.
template <VarintWord T>
KV_AVX2_INLINE bool all_within(__m128i bits, std::uint32_t mask) noexcept {
  if constexpr (sizeof(T) == 4)
    return _mm_testz_si128(bits, _mm_set1_epi32(static_cast<int>(~mask))) != 0;
  else
    return _mm_testz_si128(bits, _mm_set1_epi64x(~static_cast<long long>(mask))) != 0;
}

/// Eight values of up to 14 bits.
template <Form kForm>
KV_AVX2_INLINE char* put_eight(__m128i lanes, char* to) noexcept {
  static constexpr const auto& kPacking = kPackings<kForm>;
  const __m128i is_long = _mm_cmpgt_epi16(lanes, _mm_set1_epi16(0x7F));
  const __m128i low = _mm_and_si128(lanes, _mm_set1_epi16(0x7F));
  const __m128i high = _mm_and_si128(_mm_slli_epi16(lanes, 1), _mm_set1_epi16(0x7F00));
  const __m128i marks = kForm == Form::leb128 ? _mm_and_si128(is_long, _mm_set1_epi16(0x80)) : _mm_set1_epi16(0x80);
  const auto pattern = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(is_long, _mm_setzero_si128())));
  const Packing& packing = kPacking[pattern];
  store(to, _mm_shuffle_epi8(_mm_or_si128(_mm_or_si128(low, high), marks), load(packing.bytes.data())));
  return to + packing.used;
}

/// Four values of any length.
template <Form kForm, VarintWord T>
KV_AVX2_INLINE char* put_four(const T* from, char* to) noexcept {
  if constexpr (sizeof(T) == 8) {
    if ((from[0] | from[1] | from[2] | from[3]) > kWordValueMax) return encode_rest<kForm>(from, 4, to);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t bytes = varint_size(from[i]);
    put_groups<kForm>(to, _pdep_u64(from[i], kGroupBits), bytes);
    to += bytes;
  }
  return to;
}

template <Form kForm, VarintWord T>
KV_AVX2 char* encode(const T* from, std::size_t count, char* to) noexcept {
  const T* const last = from + count;
  while (last - from >= kStep) {
    __m128i bits = _mm_setzero_si128();
    const __m128i a = load_four(from, bits);
    const __m128i b = load_four(from + 4, bits);
    if (!all_within<T>(bits, 0x3FFF)) {
      to = put_four<kForm>(from + 4, put_four<kForm>(from, to));
      from += 8;
      continue;
    }
    const __m128i c = load_four(from + 8, bits);
    const __m128i d = load_four(from + 12, bits);
    if (all_within<T>(bits, 0x7F)) {
      const __m128i bytes = _mm_packus_epi16(_mm_packus_epi32(a, b), _mm_packus_epi32(c, d));
      const __m128i marks = _mm_set1_epi8(kForm == Form::leb128 ? 0 : static_cast<char>(0x80));
      store(to, _mm_or_si128(bytes, marks));
      to += 16;
      from += 16;
      continue;
    }
    to = put_eight<kForm>(_mm_packus_epi32(a, b), to);
    from += 8;
  }
  return encode_rest<kForm>(from, static_cast<std::size_t>(last - from), to);
}

// ---- Zigzag --------------------------------------------------------------------------------------------------------

template <VarintWord T>
KV_AVX2 void zigzag_vectors(const std::make_signed_t<T>* from, std::size_t count, T* to) noexcept {
  std::size_t i = 0;
  for (constexpr std::size_t kLanes = 32 / sizeof(T); i + kLanes <= count; i += kLanes) {
    const __m256i values = _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(from + i)));
    if constexpr (sizeof(T) == 4)
      store(to + i, _mm256_xor_si256(_mm256_slli_epi32(values, 1), _mm256_srai_epi32(values, 31)));
    else
      store(to + i, _mm256_xor_si256(_mm256_slli_epi64(values, 1), _mm256_cmpgt_epi64(_mm256_setzero_si256(), values)));
  }
  zigzag_plain(from + i, count - i, to + i);
}

template <VarintWord T>
KV_AVX2 void unzigzag_vectors(const T* from, std::size_t count, std::make_signed_t<T>* to) noexcept {
  std::size_t i = 0;
  for (constexpr std::size_t kLanes = 32 / sizeof(T); i + kLanes <= count; i += kLanes) {
    const __m256i values = _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(from + i)));
    if constexpr (sizeof(T) == 4) {
      const __m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(values, _mm256_set1_epi32(1)));
      store(to + i, _mm256_xor_si256(_mm256_srli_epi32(values, 1), sign));
    } else {
      const __m256i sign = _mm256_sub_epi64(_mm256_setzero_si256(), _mm256_and_si256(values, _mm256_set1_epi64x(1)));
      store(to + i, _mm256_xor_si256(_mm256_srli_epi64(values, 1), sign));
    }
  }
  unzigzag_plain(from + i, count - i, to + i);
}

template <VarintWord T>
constexpr Kernels<T> kKernels{{encode<Form::leb128, T>, encode<Form::stop_bit, T>},
                              {decode<Form::leb128, T>, decode<Form::stop_bit, T>},
                              zigzag_vectors<T>,
                              unzigzag_vectors<T>};

}  // namespace

template <VarintWord T>
const Kernels<T>* simd_kernels() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &kKernels<T> : nullptr;
}

}  // namespace kvingest::codec
#else
namespace kvingest::codec {

template <VarintWord T>
const Kernels<T>* simd_kernels() noexcept {
  return nullptr;
}

}  // namespace kvingest::codec
#endif

namespace kvingest::codec {

template const Kernels<std::uint32_t>* simd_kernels() noexcept;
template const Kernels<std::uint64_t>* simd_kernels() noexcept;

}  // namespace kvingest::codec
