#include "net/resp_parser.hpp"

#include <algorithm>
#include <charconv>

namespace kvingest::net {
namespace {

constexpr std::size_t kLengthBytesMax = 32;   // Of a line that holds one number: Redis waits for 64 KiB of it.
constexpr std::size_t kWordsKeptMax = 1'024;  // A request of more gives its memory back.

bool is_blank(char byte) noexcept {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

int hex_digit(char byte) noexcept {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

char unescape(char byte) noexcept {
  switch (byte) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return byte;
  }
}

/// Takes a quoted part, whose quote is at the front of `line`, up to the closing one; false if there is none.
bool take_quoted(std::string_view& line, std::string& word) {
  const char quote = line.front();
  line.remove_prefix(1);
  while (!line.empty() && line.front() != quote) {
    const char byte = line.front();
    const char next = line.size() > 1 ? line[1] : '\0';
    if (byte != '\\' || line.size() < 2 || (quote == '\'' && next != '\'')) {
      word += byte;
      line.remove_prefix(1);
    } else if (quote == '"' && next == 'x' && line.size() > 3 && hex_digit(line[2]) >= 0 && hex_digit(line[3]) >= 0) {
      word += static_cast<char>(hex_digit(line[2]) * 16 + hex_digit(line[3]));
      line.remove_prefix(4);
    } else {
      word += quote == '"' ? unescape(next) : next;
      line.remove_prefix(2);
    }
  }
  if (line.empty()) return false;
  line.remove_prefix(1);
  return line.empty() || is_blank(line.front());
}

}  // namespace

bool split_quoted(std::string_view line, std::vector<std::string>& words) {
  words.clear();
  while (true) {
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    if (line.empty()) return true;
    std::string& word = words.emplace_back();
    while (!line.empty() && !is_blank(line.front())) {
      if (line.front() == '"' || line.front() == '\'') {
        if (!take_quoted(line, word)) return false;
        break;
      }
      word += line.front();
      line.remove_prefix(1);
    }
  }
}

RespParser::Step RespParser::next(std::string_view input) {
  if (!problem_.empty()) return Step::broken;
  if (input.empty()) return Step::more;
  if (input.front() != '*') return next_inline(input);
  const Step step = complete_ ? Step::command : next_array(input);
  if (step != Step::command) return step;
  complete_ = true;
  words_.clear();
  for (const Piece& piece : pieces_) words_.push_back(input.substr(piece.offset, piece.bytes));
  return step;
}

std::size_t RespParser::done() noexcept {
  const std::size_t used = at_;
  at_ = searched_ = words_left_ = word_bytes_ = request_bytes_ = 0;
  in_array_ = has_word_bytes_ = complete_ = false;
  if (pieces_.capacity() > kWordsKeptMax) {
    pieces_ = {};
    words_ = {};
  }
  pieces_.clear();
  words_.clear();
  inline_words_.clear();
  return used;
}

RespParser::Step RespParser::fail(std::string_view problem) {
  problem_ = "ERR Protocol error: ";
  problem_ += problem;
  return Step::broken;
}

RespParser::Step RespParser::next_inline(std::string_view input) {
  if (complete_) return Step::command;
  const std::size_t end = input.find('\n', searched_);
  if (std::min(end, input.size()) > kInlineBytesMax) return fail("too big inline request");
  searched_ = input.size();
  if (end == std::string_view::npos) return Step::more;
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!split_quoted(line, inline_words_)) return fail("unbalanced quotes in request");
  at_ = end + 1;
  complete_ = true;
  words_.assign(inline_words_.begin(), inline_words_.end());
  return Step::command;
}

/// Reads the number of a line that begins behind its first byte at at_; moves behind the line when it is there.
RespParser::Line RespParser::read_length(std::string_view input, std::string_view what, std::int64_t& value) {
  const std::string_view line = input.substr(at_ + 1, kLengthBytesMax);
  const std::size_t end = line.find('\r');
  if (end == std::string_view::npos) {
    if (line.size() < kLengthBytesMax) return Line::more;
    fail("too big " + std::string(what) + " count string");
    return Line::broken;
  }
  if (input.size() < at_ + 1 + end + 2) return Line::more;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + end, value);
  const bool is_number = error == std::errc() && stop == line.data() + end;
  if (!is_number || line[end] != '\r' || input[at_ + 1 + end + 1] != '\n') {
    fail(what == "mbulk" ? "invalid multibulk length" : "invalid bulk length");
    return Line::broken;
  }
  at_ += 1 + end + 2;
  return Line::found;
}

RespParser::Step RespParser::next_array(std::string_view input) {
  if (!in_array_) {
    std::int64_t words = 0;
    const Line line = read_length(input, "mbulk", words);
    if (line != Line::found) return line == Line::more ? Step::more : Step::broken;
    if (words > 0 && static_cast<std::uint64_t>(words) > limits_.words_max) {
      return fail(limits_.authenticated ? "invalid multibulk length" : "unauthenticated multibulk length");
    }
    in_array_ = true;
    words_left_ = static_cast<std::size_t>(std::max<std::int64_t>(words, 0));
  }
  while (words_left_ > 0) {
    if (const Step step = read_word(input); step != Step::command) return step;
    --words_left_;
  }
  return Step::command;
}

/// Step::command: the word is there.
RespParser::Step RespParser::read_word(std::string_view input) {
  if (!has_word_bytes_) {
    if (at_ == input.size()) return Step::more;
    if (input[at_] != '$') {
      const char got = input[at_] < ' ' || input[at_] > '~' ? '?' : input[at_];
      return fail(std::string("expected '$', got '") + got + "'");
    }
    std::int64_t bytes = 0;
    const Line line = read_length(input, "bulk", bytes);
    if (line != Line::found) return line == Line::more ? Step::more : Step::broken;
    if (bytes < 0) return fail("invalid bulk length");
    if (static_cast<std::uint64_t>(bytes) > limits_.word_bytes_max) {
      return fail(limits_.authenticated ? "invalid bulk length" : "unauthenticated bulk length");
    }
    word_bytes_ = static_cast<std::size_t>(bytes);
    request_bytes_ += word_bytes_;
    if (request_bytes_ > limits_.request_bytes_max) return fail("too big request");
    has_word_bytes_ = true;
  }
  if (input.size() < at_ + word_bytes_ + 2) return Step::more;
  if (input.substr(at_ + word_bytes_, 2) != "\r\n") return fail("expected CRLF behind a bulk string");
  pieces_.push_back({at_, word_bytes_});
  at_ += word_bytes_ + 2;
  has_word_bytes_ = false;
  return Step::command;
}

}  // namespace kvingest::net
