#include "record/text_escape.hpp"

#include <algorithm>
#include <charconv>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/limits.hpp"
#include "record/utf8.hpp"

namespace kvingest {
namespace {

constexpr std::uint64_t kSeqEnd = std::uint64_t{1} << 56;  // So that its key begins with NUL.

// U+0080 to U+009F: control characters, some of which terminals obey.
bool is_c1_control(std::string_view bytes) {
  return bytes[0] == '\xC2' && static_cast<unsigned char>(bytes[1]) < 0xA0;
}

bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '\\';
}

void append_hex(std::string& to, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  to += "\\x";
  to += kDigits[byte >> 4];
  to += kDigits[byte & 15];
}

std::optional<char> from_hex(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

bool is_decimal(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void append_escaped(std::string& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto plain = static_cast<std::size_t>(std::find_if_not(bytes.begin(), bytes.end(), is_plain) - bytes.begin());
    to.append(bytes.substr(0, plain));
    bytes.remove_prefix(plain);
    if (bytes.empty()) return;
    const std::size_t kept = utf8_sequence_size(bytes);
    if (kept != 0 && !is_c1_control(bytes)) {
      to.append(bytes.substr(0, kept));
      bytes.remove_prefix(kept);
      continue;
    }
    switch (bytes[0]) {
      case '\\':
        to += "\\\\";
        break;
      case '\t':
        to += "\\t";
        break;
      case '\n':
        to += "\\n";
        break;
      case '\r':
        to += "\\r";
        break;
      default:
        append_hex(to, bytes[0]);
    }
    bytes.remove_prefix(1);
  }
}

std::string escaped(std::string_view bytes) {
  std::string text;
  append_escaped(text, bytes);
  return text;
}

Result<std::string> unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      bytes += text[at];
      continue;
    }
    const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
    constexpr std::string_view kKinds = "\\tnr";
    constexpr std::string_view kMeant = "\\\t\n\r";
    if (const std::size_t known = kKinds.find(kind); kind != '\0' && known != std::string_view::npos) {
      bytes += kMeant[known];
      ++at;
      continue;
    }
    const auto byte = kind == 'x' ? from_hex(text.substr(at + 2, 2)) : std::nullopt;
    if (!byte) {
      return fail(Code::invalid_argument, R"('{}': bad escape at byte {}; there are \\, \t, \n, \r and \xNN)", text,
                  at + 1);
    }
    bytes += *byte;
    at += 3;
  }
  return bytes;
}

std::optional<std::uint64_t> seq_of_key(std::string_view key) noexcept {
  if (key.size() != kSeqKeyBytes || key[0] != '\0') return std::nullopt;
  return codec::get_ordered<std::uint64_t>(key.data());
}

std::string key_of_seq(std::uint64_t seq) {
  char key[kSeqKeyBytes];
  codec::put_ordered(key, seq);
  return {key, sizeof key};
}

void append_key_text(std::string& to, std::string_view key, bool seq_keys) {
  if (!seq_keys) return append_escaped(to, key);
  if (const auto seq = seq_of_key(key)) {
    fmt::format_to(std::back_inserter(to), "{}", *seq);
    return;
  }
  if (is_decimal(key)) {
    append_hex(to, key[0]);
    key.remove_prefix(1);
  }
  append_escaped(to, key);
}

Result<std::string> key_from_text(std::string_view text, bool seq_keys) {
  if (!seq_keys || !is_decimal(text)) return unescaped(text);
  std::uint64_t seq = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), seq).ec;
  if (error != std::errc() || seq >= kSeqEnd) {
    return fail(Code::invalid_argument, "'{}': an arrival number is below 2^56", text);
  }
  return key_of_seq(seq);
}

}  // namespace kvingest
