#include "net/feed_protocol.hpp"

namespace kvingest::net {
namespace {

constexpr std::string_view kPrefix = "!kv ";

constexpr bool is_printable(char c) noexcept {
  return c >= 0x20 && c < 0x7F;
}

/// Takes a quoted value from `rest`, which begins with its opening quote.
Result<std::string> take_quoted(std::string_view& rest) {
  std::string value;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      if (!rest.empty() && rest.front() != ' ') return fail(Code::invalid_argument, "text behind a closing quote");
      return value;
    }
    if (rest[i] == '\\') {
      if (++i == rest.size() || (rest[i] != '"' && rest[i] != '\\')) {
        return fail(Code::invalid_argument, "a backslash that escapes neither a quote nor a backslash");
      }
    }
    value += rest[i];
  }
  return fail(Code::invalid_argument, "a quote that is not closed");
}

}  // namespace

LineKind classify_line(std::string_view line) noexcept {
  const std::size_t marks = line.find_first_not_of('!');
  if (marks == 0 || marks == std::string_view::npos || line.substr(marks, 3) != "kv ") return LineKind::data;
  return marks == 1 ? LineKind::control : LineKind::escaped;
}

std::optional<std::string_view> ControlLine::value_of(std::string_view name) const {
  for (const Word& word : words) {
    if (word.name == name) return word.value;
  }
  return std::nullopt;
}

Result<ControlLine> parse_control(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > kControlLineBytesMax) {
    return fail(Code::invalid_argument, "a control line of {} bytes; at most {}", line.size(), kControlLineBytesMax);
  }
  for (const char c : line) {
    if (!is_printable(c)) return fail(Code::invalid_argument, "a byte that is not printable ASCII");
  }
  ControlLine parsed;
  std::string_view rest = line.substr(kPrefix.size());
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.empty()) break;
    ControlLine::Word word;
    const std::size_t end = std::min(rest.find_first_of(" =\""), rest.size());
    if (end < rest.size() && rest[end] == '=') {
      word.name = rest.substr(0, end);
      if (word.name.empty()) return fail(Code::invalid_argument, "a value without a name");
      rest.remove_prefix(end + 1);
    }
    if (rest.starts_with('"')) {
      auto value = take_quoted(rest);
      KV_TRY(value);
      word.value = std::move(*value);
    } else {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      word.value = rest.substr(0, space);
      if (word.value.find('"') != std::string::npos) return fail(Code::invalid_argument, "a quote inside a word");
      rest.remove_prefix(space);
    }
    if (parsed.verb.empty()) {
      if (!word.name.empty() || word.value.empty()) return fail(Code::invalid_argument, "no control word");
      parsed.verb = std::move(word.value);
    } else {
      parsed.words.push_back(std::move(word));
    }
  }
  if (parsed.verb.empty()) return fail(Code::invalid_argument, "no control word");
  return parsed;
}

ControlAnswer& ControlAnswer::add(std::string_view name, std::string_view value) {
  text_.append(" ").append(name).append("=");
  const bool quote = value.empty() || value.find_first_of(" \"\\=") != std::string_view::npos;
  if (quote) text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += is_printable(c) ? c : '?';
  }
  if (quote) text_ += '"';
  return *this;
}

ControlAnswer& ControlAnswer::add(std::string_view token) {
  text_.append(" ").append(token);
  return *this;
}

}  // namespace kvingest::net
