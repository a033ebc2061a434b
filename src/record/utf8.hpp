// utf8.hpp -- well-formed UTF-8, as the Unicode standard's table 3-7 has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvingest {

/// The size of the well-formed sequence of two to four bytes that `bytes` begins with; 0 where there is none.
[[nodiscard]] constexpr std::size_t utf8_sequence_size(std::string_view bytes) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  if (bytes.empty()) return 0;
  const unsigned lead = byte(0);
  const std::size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size == 0 || bytes.size() < size) return 0;
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;  // Else a shorter form would do.
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;   // Surrogates; beyond U+10FFFF.
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

/// The text without the byte order mark that some programs put before UTF-8.
[[nodiscard]] constexpr std::string_view without_bom(std::string_view text) noexcept {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

/// Appends the code point, which is at most U+10FFFF and no surrogate.
inline void append_utf8(std::string& to, char32_t point) {
  const auto tail = [&](unsigned shift) { to += static_cast<char>(0x80 | (point >> shift & 0x3F)); };
  if (point < 0x80) {
    to += static_cast<char>(point);
  } else if (point < 0x800) {
    to += static_cast<char>(0xC0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    to += static_cast<char>(0xE0 | point >> 12);
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xF0 | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace kvingest
