#include "record/json_scanner.hpp"

#include "record/utf8.hpp"

namespace kvingest {
namespace {

constexpr std::size_t kKeptTextBytes = 64 * 1024;  // What one connection may go on holding after a long text.

}  // namespace

void JsonScanner::start(std::string_view text) {
  if (decoded_.capacity() > kKeptTextBytes) decoded_ = {};
  decoded_.clear();
  begin_ = text.data();
  at_ = begin_;
  end_ = begin_ + text.size();
  problem_ = {};
}

// A string that holds more than plain ASCII, whose beginning is already skipped.
bool JsonScanner::string_with_more(const char* begin, std::string_view& text) {
  const std::size_t decoded_begin = decoded_.size();
  bool escapes = false;
  for (;; skip_plain()) {
    if (here() == '\\') {
      if (!escapes) decoded_.reserve(static_cast<std::size_t>(end_ - begin_));  // No escape is shorter than its text.
      escapes = true;
      decoded_.append(begin, at_);
      if (!take_escape()) return false;
      begin = at_;
    } else if (here() == '"') {
      if (escapes) decoded_.append(begin, at_);
      text = escapes ? std::string_view(decoded_).substr(decoded_begin)
                     : std::string_view(begin, static_cast<std::size_t>(at_ - begin));
      return ++at_, true;
    } else {
      const std::size_t bytes = utf8_sequence_size({at_, static_cast<std::size_t>(end_ - at_)});
      if (bytes == 0) return refuse(at_ == end_ ? "a string is never closed" : "a bad byte in a string");
      at_ += bytes;
    }
  }
}

bool JsonScanner::take_escape() {
  constexpr std::string_view kKinds = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  const char kind = end_ - at_ > 1 ? at_[1] : '\0';
  if (const std::size_t known = kKinds.find(kind); kind != '\0' && known != std::string_view::npos) {
    decoded_ += kMeant[known];
    at_ += 2;
    return true;
  }
  char32_t point = 0;
  if (kind != 'u') return refuse("an unknown escape");
  if (!take_hex4(point)) return refuse("four hexadecimal digits should follow \\u");
  if (point >= 0xD800 && point < 0xE000 && !take_surrogates(point)) return refuse("half of a surrogate pair");
  append_utf8(decoded_, point);
  return true;
}

// `\uNNNN`, of which the first two bytes are known.
bool JsonScanner::take_hex4(char32_t& unit) {
  if (end_ - at_ < 6) return false;
  unit = 0;
  for (const char* digit = at_ + 2; digit != at_ + 6; ++digit) {
    const char lower = static_cast<char>(*digit | 0x20);
    if (!is_digit(*digit) && (lower < 'a' || lower > 'f')) return false;
    unit = unit << 4 | static_cast<char32_t>(is_digit(*digit) ? *digit - '0' : lower - 'a' + 10);
  }
  at_ += 6;
  return true;
}

bool JsonScanner::take_surrogates(char32_t& point) {
  char32_t low = 0;
  if (point >= 0xDC00 || end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u' || !take_hex4(low)) return false;
  if (low < 0xDC00 || low >= 0xE000) return false;
  point = 0x10000 + ((point - 0xD800) << 10 | (low - 0xDC00));
  return true;
}

bool JsonScanner::word(std::string_view word) {
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return refuse("no value");
  at_ += word.size();
  return true;
}

}  // namespace kvingest
