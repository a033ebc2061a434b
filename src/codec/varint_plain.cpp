// Arrays of varints, byte by byte: what every other way is compared with.
#include "codec/varint_kernels.hpp"

namespace kvingest::codec {
namespace {

template <Form kForm, VarintWord T>
Decoded decode(const char* from, const char* end, T* to, std::size_t count) noexcept {
  return decode_rest<kForm>(from, end, to, count, to);
}

template <VarintWord T>
constexpr Kernels<T> kKernels{{encode_rest<Form::leb128, T>, encode_rest<Form::stop_bit, T>},
                              {decode<Form::leb128, T>, decode<Form::stop_bit, T>},
                              zigzag_plain<T>,
                              unzigzag_plain<T>};

}  // namespace

template <VarintWord T>
const Kernels<T>* plain_kernels() noexcept {
  return &kKernels<T>;
}
template const Kernels<std::uint32_t>* plain_kernels() noexcept;
template const Kernels<std::uint64_t>* plain_kernels() noexcept;

}  // namespace kvingest::codec
