// Arrays of varints, a word at a time, in plain C++.
#include "codec/varint_word.hpp"
#include "codec/varint_kernels.hpp"

namespace kvingest::codec {
namespace {

template <Form kForm, VarintWord T>
char* encode(const T* from, std::size_t count, char* to) noexcept {
  const T* const last = from + count;
  // A word is written where a value may be as short as one byte: so two values must be left, of at least eight bytes.
  for (; last - from >= 2; ++from) {
    if (*from > kWordValueMax) {
      to = put_one<kForm>(to, *from);
      continue;
    }
    const std::size_t bytes = varint_size(*from);
    put_groups<kForm>(to, scatter_groups(*from), bytes);
    to += bytes;
  }
  return encode_rest<kForm>(from, static_cast<std::size_t>(last - from), to);
}

template <Form kForm, VarintWord T>
Decoded decode(const char* from, const char* end, T* to, std::size_t count) noexcept {
  const T* const start = to;
  T* const last = to + count;
  while (to != last && end - from >= static_cast<std::ptrdiff_t>(kWordBytes)) {
    const auto word = get_fixed<std::uint64_t>(from);
    const unsigned bytes = length_in_word<kForm>(word);
    const std::uint64_t value = bytes == 0 ? 0 : gather_groups(groups_of<kForm>(word, bytes));
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
const Kernels<T>* word_kernels() noexcept {
  return &kKernels<T>;
}
template const Kernels<std::uint32_t>* word_kernels() noexcept;
template const Kernels<std::uint64_t>* word_kernels() noexcept;

}  // namespace kvingest::codec
