// Arrays of varints, a word at a time, with PEXT and PDEP.
#include "codec/varint_kernels.hpp"
#include "codec/varint_word.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define KV_BMI2 [[gnu::target("bmi,bmi2,lzcnt")]]

namespace kvingest::codec {
namespace {

template <Form kForm, VarintWord T>
KV_BMI2 char* encode(const T* from, std::size_t count, char* to) noexcept {
  const T* const last = from + count;
  for (; last - from >= 2; ++from) {  // As in varint_word.cpp.
    if (*from > kWordValueMax) {
      to = put_one<kForm>(to, *from);
      continue;
    }
    const std::size_t bytes = varint_size(*from);
    put_groups<kForm>(to, _pdep_u64(*from, kGroupBits), bytes);
    to += bytes;
  }
  return encode_rest<kForm>(from, static_cast<std::size_t>(last - from), to);
}

template <Form kForm, VarintWord T>
KV_BMI2 Decoded decode(const char* from, const char* end, T* to, std::size_t count) noexcept {
  const T* const start = to;
  T* const last = to + count;
  while (to != last && end - from >= static_cast<std::ptrdiff_t>(kWordBytes)) {
    const auto word = get_fixed<std::uint64_t>(from);
    const unsigned bytes = length_in_word<kForm>(word);
    const std::uint64_t value = bytes == 0 ? 0 : _pext_u64(groups_of<kForm>(word, bytes), kGroupBits);
    if (is_sound<kForm, T>(word, value, bytes)) {
      *to++ = static_cast<T>(value);
      from += bytes;
      continue;
    }
    const VarintEnd read = read_one<kForm>(from, end, *to);
    if (read.fault != Fault::none) return {from, static_cast<std::size_t>(to - start), read.fault};
    from = read.next;
    ++to;
  }
  return decode_rest<kForm>(from, end, to, static_cast<std::size_t>(last - to), start);
}

template <VarintWord T>
constexpr Kernels<T> kKernels{{encode<Form::leb128, T>, encode<Form::stop_bit, T>},
                              {decode<Form::leb128, T>, decode<Form::stop_bit, T>},
                              zigzag_plain<T>,
                              unzigzag_plain<T>};

}  // namespace

template <VarintWord T>
const Kernels<T>* bmi2_kernels() noexcept {
  return __builtin_cpu_supports("bmi2") ? &kKernels<T> : nullptr;
}

}  // namespace kvingest::codec
#else
namespace kvingest::codec {

template <VarintWord T>
const Kernels<T>* bmi2_kernels() noexcept {
  return nullptr;
}

}  // namespace kvingest::codec
#endif

namespace kvingest::codec {

template const Kernels<std::uint32_t>* bmi2_kernels() noexcept;
template const Kernels<std::uint64_t>* bmi2_kernels() noexcept;

}  // namespace kvingest::codec
