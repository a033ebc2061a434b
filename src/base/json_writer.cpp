#include "base/json_writer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"

namespace kvingest {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool continues(std::string_view text, std::size_t from, std::size_t count) {
  for (std::size_t i = from; i < from + count; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return false;
  }
  return true;
}

/// Length of the valid UTF-8 sequence of two or more bytes at the front of `text`; 0 when there is none. Overlong
/// forms, surrogates and what lies beyond U+10FFFF are not valid: the second byte's range tells.
std::size_t utf8_sequence(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  const unsigned second = byte_at(text, 1);
  if (lead >= 0xC2 && lead <= 0xDF) return continues(text, 1, 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool in_range = (lead != 0xE0 || second >= 0xA0) && (lead != 0xED || second <= 0x9F);
    return in_range && continues(text, 1, 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool in_range = (lead != 0xF0 || second >= 0x90) && (lead != 0xF4 || second <= 0x8F);
    return in_range && continues(text, 1, 3) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& to, char c) {
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const char c = text.front();
    const bool plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
    const std::size_t taken = plain ? 1 : utf8_sequence(text);
    if (taken == 0) append_escaped(to, c);
    to.append(text.substr(0, taken));
    text.remove_prefix(taken == 0 ? 1 : taken);
  }
  to += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  KV_ASSERT(!open_.empty() && open_.back() == '{' && !after_key_);
  before_value();
  append_json_string(text_, name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json_string(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  return raw(fmt::format("{}", number));
}

const std::string& JsonWriter::text() const {
  KV_ASSERT(open_.empty() && !text_.empty());
  return text_;
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  text_ += bracket;
  open_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  KV_ASSERT(!open_.empty() && open_.back() == (bracket == '}' ? '{' : '[') && !after_key_);
  text_ += bracket;
  open_.pop_back();
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view literal) {
  before_value();
  text_ += literal;
  return *this;
}

void JsonWriter::before_value() {
  if (!first_ && !after_key_) text_ += ',';
  first_ = false;
  after_key_ = false;
}

}  // namespace kvingest
