#include "kvingest/codec/integer_array.hpp"

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "codec/varint_kernels.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest::codec {
namespace {

constexpr std::size_t kPaths = 4;

template <VarintWord T>
std::array<const Kernels<T>*, kPaths> all_kernels() noexcept {
  return {plain_kernels<T>(), word_kernels<T>(), bmi2_kernels<T>(), simd_kernels<T>()};
}

template <VarintWord T>
const Kernels<T>& kernels(Path path) noexcept {
  static const std::array<const Kernels<T>*, kPaths> all = all_kernels<T>();
  const Kernels<T>* const chosen = all[static_cast<std::size_t>(path)];
  KV_ASSERT(chosen != nullptr);  // Of another processor: paths() does not list it.
  return *chosen;
}

struct Choice {
  std::array<Path, kPaths> all{};
  std::size_t count = 0;
};

Choice find_paths() noexcept {
  Choice choice;
  const auto known = all_kernels<std::uint32_t>();
  for (std::size_t i = 0; i < kPaths; ++i) {
    if (known[i] != nullptr) choice.all[choice.count++] = static_cast<Path>(i);
  }
  return choice;
}

const Choice& choice() noexcept {
  static const Choice found = find_paths();
  return found;
}

/// AMD before Zen 3 has PEXT and PDEP as microcode, up to a hundred times slower than as instructions.
bool has_slow_bmi2() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam17h") || __builtin_cpu_is("amdfam15h");
#else
  return false;
#endif
}

constexpr std::size_t index_of(Form form) noexcept {
  return form == Form::leb128 ? 0 : 1;
}

template <VarintWord T>
char* encode_fixed(std::span<const T> values, char* to, Path path) noexcept {
  if (path != Path::plain && std::endian::native == std::endian::little) {
    if (!values.empty()) std::memcpy(to, values.data(), values.size_bytes());
    return to + values.size_bytes();
  }
  for (const T value : values) {
    for (std::size_t i = 0; i < sizeof value; ++i) *to++ = static_cast<char>(value >> (8 * i));
  }
  return to;
}

template <VarintWord T>
Decoded decode_fixed(std::string_view bytes, std::span<T> values, Path path) noexcept {
  const char* at = bytes.data();
  const std::size_t whole = std::min(values.size(), bytes.size() / sizeof(T));
  if (path != Path::plain && std::endian::native == std::endian::little) {
    if (whole != 0) std::memcpy(values.data(), at, whole * sizeof(T));
    at += whole * sizeof(T);
  } else {
    for (T& value : values.first(whole)) {
      value = 0;
      for (std::size_t i = 0; i < sizeof value; ++i)
        value |= static_cast<T>(static_cast<unsigned char>(*at++)) << (8 * i);
    }
  }
  return {at, whole, whole == values.size() ? Fault::none : Fault::unfinished};
}

}  // namespace

std::string_view to_string(Form form) noexcept {
  constexpr std::string_view kNames[] = {"fixed", "leb128", "stop_bit"};
  return kNames[static_cast<std::size_t>(form)];
}

std::string_view to_string(Path path) noexcept {
  constexpr std::string_view kNames[] = {"plain", "word", "bmi2", "simd"};
  return kNames[static_cast<std::size_t>(path)];
}

std::span<const Path> paths() noexcept {
  return {choice().all.data(), choice().count};
}

Path best_path() noexcept {
  static const Path best = has_slow_bmi2() ? Path::word : paths().back();
  return best;
}

template <VarintWord T>
char* encode_array(Form form, std::span<const T> values, char* to, Path path) noexcept {
  if (form == Form::fixed) return encode_fixed(values, to, path);
  return kernels<T>(path).encode[index_of(form)](values.data(), values.size(), to);
}

template <VarintWord T>
Result<std::size_t> decode_array(Form form, std::string_view bytes, std::span<T> values, Path path) {
  const char* const end = bytes.data() + bytes.size();
  const Decoded decoded =
      form == Form::fixed ? decode_fixed(bytes, values, path)
                          : kernels<T>(path).decode[index_of(form)](bytes.data(), end, values.data(), values.size());
  const auto offset = static_cast<std::size_t>(decoded.at - bytes.data());
  if (decoded.fault == Fault::none) return offset;
  return fail(Code::corrupt, "{} integers of {} bits: value {} of {}, at offset {}, {}", to_string(form), 8 * sizeof(T),
              decoded.values, values.size(), offset, to_string(decoded.fault));
}

template <VarintWord T>
void zigzag_array(std::span<const std::make_signed_t<T>> from, T* to, Path path) noexcept {
  kernels<T>(path).zigzag(from.data(), from.size(), to);
}

template <VarintWord T>
void unzigzag_array(std::span<const T> from, std::make_signed_t<T>* to, Path path) noexcept {
  kernels<T>(path).unzigzag(from.data(), from.size(), to);
}

template char* encode_array(Form, std::span<const std::uint32_t>, char*, Path) noexcept;
template Result<std::size_t> decode_array(Form, std::string_view, std::span<std::uint32_t>, Path);
template void zigzag_array(std::span<const std::int32_t>, std::uint32_t*, Path) noexcept;
template void unzigzag_array(std::span<const std::uint32_t>, std::int32_t*, Path) noexcept;
template char* encode_array(Form, std::span<const std::uint64_t>, char*, Path) noexcept;
template Result<std::size_t> decode_array(Form, std::string_view, std::span<std::uint64_t>, Path);
template void zigzag_array(std::span<const std::int64_t>, std::uint64_t*, Path) noexcept;
template void unzigzag_array(std::span<const std::uint64_t>, std::int64_t*, Path) noexcept;

}  // namespace kvingest::codec
