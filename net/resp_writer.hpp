// resp_writer.hpp -- answers of the Redis protocol, version 2 or 3, appended to a text.
//
// Threads: one. Lifetime: the text outlives the writer.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvingest::net {

class RespWriter {
 public:
  RespWriter(std::string& to, int version) noexcept : to_(to), version_(version) {}

  void simple(std::string_view text) { line('+', text); }
  void ok() { to_ += "+OK\r\n"; }
  /// `text` begins with its code: "ERR syntax error". What would end the line early becomes a blank.
  void error(std::string_view text) { line('-', text); }
  void integer(std::int64_t value) { number(':', value); }
  void count(std::uint64_t value) { integer(static_cast<std::int64_t>(value)); }
  void bulk(std::string_view bytes) {
    number('$', static_cast<std::int64_t>(bytes.size()));
    to_ += bytes;
    to_ += "\r\n";
  }
  void null() { to_ += version_ >= 3 ? "_\r\n" : "$-1\r\n"; }
  void null_array() { to_ += version_ >= 3 ? "_\r\n" : "*-1\r\n"; }
  /// So many answers follow.
  void array(std::size_t size) { number('*', static_cast<std::int64_t>(size)); }
  /// So many pairs of answers follow; in version 2 they are an array.
  void map(std::size_t pairs) {
    version_ >= 3 ? number('%', static_cast<std::int64_t>(pairs)) : number('*', static_cast<std::int64_t>(2 * pairs));
  }
  void set(std::size_t size) { number(version_ >= 3 ? '~' : '*', static_cast<std::int64_t>(size)); }
  /// Text for people.
  void verbatim(std::string_view text) {
    if (version_ < 3) return bulk(text);
    number('=', static_cast<std::int64_t>(text.size() + 4));
    to_ += "txt:";
    to_ += text;
    to_ += "\r\n";
  }

  [[nodiscard]] int version() const noexcept { return version_; }
  [[nodiscard]] std::string& text() noexcept { return to_; }

 private:
  void line(char kind, std::string_view text) {
    to_ += kind;
    for (const char byte : text) to_ += byte == '\r' || byte == '\n' ? ' ' : byte;
    to_ += "\r\n";
  }
  void number(char kind, std::int64_t value) {
    char digits[24];
    digits[0] = kind;
    char* end = std::to_chars(digits + 1, digits + sizeof digits - 2, value).ptr;
    *end++ = '\r';
    *end++ = '\n';
    to_.append(digits, static_cast<std::size_t>(end - digits));
  }

  std::string& to_;
  int version_;
};

}  // namespace kvingest::net
