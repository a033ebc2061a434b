#include "bench/codec_rivals.hpp"

#include <array>
#include <cstring>

#if defined(KVINGEST_WITH_PROTOBUF)
#include <google/protobuf/io/coded_stream.h>
#endif
#if defined(KVINGEST_WITH_STREAMVBYTE)
#include <streamvbyte.h>
#endif

namespace kvingest::bench {
namespace {

std::size_t encode_memcpy(std::span<const std::uint32_t> values, char* to) {
  std::memcpy(to, values.data(), values.size_bytes());
  return values.size_bytes();
}
bool decode_memcpy(std::string_view bytes, std::span<std::uint32_t> values) {
  std::memcpy(values.data(), bytes.data(), values.size_bytes());
  return true;
}

/// LEB128 with the size counted as each byte is written.
std::size_t encode_together(std::span<const std::uint32_t> values, char* to) {
  std::size_t bytes = 0;
  for (std::uint32_t value : values) {
    do {
      const std::uint32_t group = value & 0x7F;
      value >>= 7;
      to[bytes++] = static_cast<char>(group | (value != 0 ? 0x80U : 0U));
    } while (value != 0);
  }
  return bytes;
}

/// LEB128 with an `if` for each length.
std::size_t encode_ifs(std::span<const std::uint32_t> values, char* to) {
  const char* const start = to;
  for (const std::uint32_t value : values) {
    if (value >= 1U << 7) to[0] = static_cast<char>(value | 0x80);
    if (value >= 1U << 14) to[1] = static_cast<char>(value >> 7 | 0x80);
    if (value >= 1U << 21) to[2] = static_cast<char>(value >> 14 | 0x80);
    if (value >= 1U << 28) to[3] = static_cast<char>(value >> 21 | 0x80);
    const std::size_t more =
        std::size_t{value >= 1U << 7} + (value >= 1U << 14) + (value >= 1U << 21) + (value >= 1U << 28);
    to[more] = static_cast<char>(value >> (7 * more));
    to += more + 1;
  }
  return static_cast<std::size_t>(to - start);
}

#if defined(KVINGEST_WITH_PROTOBUF)
constexpr std::string_view kNoProtobuf;
std::size_t encode_protobuf(std::span<const std::uint32_t> values, char* to) {
  auto* const start = reinterpret_cast<std::uint8_t*>(to);
  std::uint8_t* at = start;
  for (const std::uint32_t value : values)
    at = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(value, at);
  return static_cast<std::size_t>(at - start);
}
bool decode_protobuf(std::string_view bytes, std::span<std::uint32_t> values) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  for (std::uint32_t& value : values) {
    if (!input.ReadVarint32(&value)) return false;
  }
  return true;
}
#else
constexpr std::string_view kNoProtobuf = "not in this build: install libprotobuf-dev and configure again";
constexpr auto encode_protobuf = encode_memcpy;
constexpr auto decode_protobuf = decode_memcpy;
#endif

#if defined(KVINGEST_WITH_STREAMVBYTE)
constexpr std::string_view kNoStreamvbyte;
std::size_t encode_streamvbyte(std::span<const std::uint32_t> values, char* to) {
  return streamvbyte_encode(values.data(), static_cast<std::uint32_t>(values.size()),
                            reinterpret_cast<std::uint8_t*>(to));
}
bool decode_streamvbyte(std::string_view bytes, std::span<std::uint32_t> values) {
  return streamvbyte_decode(reinterpret_cast<const std::uint8_t*>(bytes.data()), values.data(),
                            static_cast<std::uint32_t>(values.size())) == bytes.size();
}
#else
constexpr std::string_view kNoStreamvbyte = "not in this build: install libstreamvbyte-dev and configure again";
constexpr auto encode_streamvbyte = encode_memcpy;
constexpr auto decode_streamvbyte = decode_memcpy;
#endif

constexpr std::array kRivals = {
    CodecRival{"protobuf", kNoProtobuf, encode_protobuf, decode_protobuf},
    CodecRival{"streamvbyte", kNoStreamvbyte, encode_streamvbyte, decode_streamvbyte},
    CodecRival{"memcpy", {}, encode_memcpy, decode_memcpy},
    CodecRival{"leb128 size with update", {}, encode_together, nullptr},
    CodecRival{"leb128 separate ifs", {}, encode_ifs, nullptr},
};

}  // namespace

std::span<const CodecRival> codec_rivals() noexcept {
  return kRivals;
}

}  // namespace kvingest::bench
