// json_scanner.hpp -- the tokens of one JSON text (RFC 8259), each checked to its last byte.
//
// Lines of a feed are short: some seventy bytes with four members. For those a walk from token to token takes less than
// half of the time that simdjson takes, which indexes the text first (docs/decisions/0006-json.md).
//
// Threads:  one thread at a time.
// Lifetime: views handed out point into the text or, where a string had escapes, into the scanner; they die with
// either,
//           and with the next start().
// Errors:   a function that returns false has found what no JSON text may hold; problem() names it.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvingest {

class JsonScanner {
 public:
  void start(std::string_view text);

  /// Skips white space and gives the next byte without taking it; NUL at the end.
  [[nodiscard]] char peek() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
    return here();
  }
  /// Takes the next byte, behind white space, if it is `wanted`.
  [[nodiscard]] bool take(char wanted) noexcept {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  /// White space is all that is left.
  [[nodiscard]] bool at_end() noexcept { return peek() == '\0' && at_ == end_; }

  /// Takes a string, whose quote is next, and gives its decoded text.
  bool string(std::string_view& text) {
    const char* const begin = ++at_;
    skip_plain();
    if (here() != '"') return string_with_more(begin, text);
    text = std::string_view(begin, static_cast<std::size_t>(at_++ - begin));
    return true;
  }
  /// Takes a number and gives its own text.
  bool number(std::string_view& text);
  /// Takes `word`: true, false or null.
  bool word(std::string_view word);

  /// Notes a problem at the place reached; false.
  bool refuse(std::string_view problem) noexcept {
    problem_ = problem;
    return false;
  }
  [[nodiscard]] std::string_view problem() const noexcept { return problem_; }
  /// How many bytes lie before the place reached.
  [[nodiscard]] std::size_t offset() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

 private:
  static constexpr std::ptrdiff_t kWide = 16;

  [[nodiscard]] char here() const noexcept { return at_ != end_ ? *at_ : '\0'; }
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  /// Skips the bytes for which `stops` finds none to stop at, 16 at a time where the text is that long: the last of
  /// them by a load that ends where the text ends.
  template <class Stops, class StopsAt>
  void skip(Stops stops, StopsAt stops_at) noexcept {
#if defined(__SSE2__)
    for (; end_ - at_ >= kWide; at_ += kWide) {
      if (const unsigned mask = stops(at_); mask != 0) return void(at_ += std::countr_zero(mask));
    }
    if (end_ - begin_ >= kWide) {
      const unsigned mask = stops(end_ - kWide) >> (kWide - (end_ - at_));
      return void(at_ = mask != 0 ? at_ + std::countr_zero(mask) : end_);
    }
#endif
    while (at_ != end_ && !stops_at(*at_)) ++at_;
  }

  /// Skips ASCII that stands for itself in a string: all but quotes, backslashes and control characters.
  void skip_plain() noexcept {
    skip(string_stops, [](char c) { return static_cast<signed char>(c) < ' ' || c == '"' || c == '\\'; });
  }
  /// False where there is none.
  bool take_digits() noexcept {
    const char* const begin = at_;
    skip(digit_stops, [](char c) { return !is_digit(c); });
    return at_ != begin;
  }

#if defined(__SSE2__)
  static __m128i load(const char* from) noexcept { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
  static unsigned string_stops(const char* from) noexcept {
    const __m128i bytes = load(from);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    const __m128i other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(' '));  // Signed: what is not ASCII is below, too.
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), other)));
  }
  static unsigned digit_stops(const char* from) noexcept {
    const __m128i value = _mm_sub_epi8(load(from), _mm_set1_epi8('0'));
    const __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
    return ~static_cast<unsigned>(_mm_movemask_epi8(digit)) & 0xFFFF;
  }
#else
  static unsigned string_stops(const char*) noexcept { return 0; }  // Not called.
  static unsigned digit_stops(const char*) noexcept { return 0; }
#endif

  bool string_with_more(const char* begin, std::string_view& text);
  bool take_escape();
  bool take_hex4(char32_t& unit);
  bool take_surrogates(char32_t& point);

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::string decoded_;  // Strings with escapes; never grows during a text.
  std::string_view problem_;
};

inline bool JsonScanner::number(std::string_view& text) {
  const char* const begin = at_;
  if (here() == '-') ++at_;
  const char* const digits = at_;
  if (!take_digits()) return refuse(begin == digits ? "no value" : "a digit should follow");
  if (*digits == '0' && at_ - digits > 1) return refuse("a number of several digits begins with 0");
  if (here() == '.') {
    ++at_;
    if (!take_digits()) return refuse("a digit should follow the point");
  }
  if (here() == 'e' || here() == 'E') {
    ++at_;
    if (here() == '+' || here() == '-') ++at_;
    if (!take_digits()) return refuse("a digit should follow the exponent's e");
  }
  text = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
  return true;
}

}  // namespace kvingest
