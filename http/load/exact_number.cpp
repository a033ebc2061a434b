#include "http/load/exact_number.hpp"

#include <charconv>

namespace kvingest::fetch {
namespace {

constexpr int kPowerMax = 400;

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The power of ten that a suffix stands for; 0 for none.
int power_of(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k':
      return 3;
    case 'M':
    case 'm':
      return 6;
    case 'B':
    case 'b':
      return 9;
    case 'T':
    case 't':
      return 12;
    default:
      return 0;
  }
}

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t count = 0;
  while (at + count < text.size() && is_decimal_digit(text[at + count])) ++count;
  return count;
}

/// `text` has its point as '.', no spaces and no suffix.
std::optional<std::string> canonical(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  if (text.starts_with('-')) out += '-';
  if (text.starts_with('-') || text.starts_with('+')) ++at;
  const std::size_t whole = digits_at(text, at);
  std::string_view integer = text.substr(at, whole);
  at += whole;
  std::string_view fraction;
  if (at < text.size() && text[at] == '.') {
    fraction = text.substr(at + 1, digits_at(text, at + 1));
    at += 1 + fraction.size();
  }
  if (integer.empty() && fraction.empty()) return std::nullopt;
  while (integer.size() > 1 && integer.front() == '0') integer.remove_prefix(1);
  out += integer.empty() ? "0" : integer;
  if (!fraction.empty()) {
    out += '.';
    out += fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    const std::size_t count = digits_at(text, digits);
    if (count == 0) return std::nullopt;
    out += text.substr(at, digits + count - at);
    at = digits + count;
  }
  if (at != text.size()) return std::nullopt;
  return out;
}

}  // namespace

std::optional<std::string> exact_number(std::string_view text, const NumberForm& form) {
  const bool plain = form.strip.empty() && form.decimal == '.' && !form.suffixes;
  if (plain) return canonical(text);
  std::string cleaned;
  for (const char c : text) {
    if (form.strip.find(c) != std::string::npos) continue;
    cleaned += c == form.decimal ? '.' : c == '.' && form.decimal != '.' ? '?' : c;
  }
  int power = 0;
  if (form.suffixes && !cleaned.empty() && (power = power_of(cleaned.back())) != 0) cleaned.pop_back();
  auto number = canonical(cleaned);
  return number && power != 0 ? shifted(*number, power) : number;
}

std::optional<std::string> shifted(std::string_view number, int power) {
  if (power == 0) return std::string(number);
  if (power > kPowerMax || power < -kPowerMax || number.find_first_of("eE") != number.npos) return std::nullopt;
  std::string sign;
  if (number.starts_with('-')) {
    sign = "-";
    number.remove_prefix(1);
  }
  const std::size_t point = number.find('.');
  std::string digits(number.substr(0, point));
  std::string fraction = point == number.npos ? "" : std::string(number.substr(point + 1));
  if (power > 0) {
    const auto places = static_cast<std::size_t>(power);
    if (fraction.size() < places) fraction.append(places - fraction.size(), '0');
    digits += fraction.substr(0, places);
    fraction.erase(0, places);
  } else {
    const auto places = static_cast<std::size_t>(-power);
    if (digits.size() <= places) digits.insert(0, places - digits.size() + 1, '0');
    fraction.insert(0, digits.substr(digits.size() - places));
    digits.resize(digits.size() - places);
  }
  return canonical(sign + digits + (fraction.empty() ? "" : "." + fraction));
}

std::optional<std::string> whole_number(std::string_view number) {
  if (number.find_first_of("eE") != number.npos) return std::nullopt;
  const std::size_t point = number.find('.');
  if (point != number.npos && number.find_first_not_of('0', point + 1) != number.npos) return std::nullopt;
  return std::string(number.substr(0, point));
}

double approximate(std::string_view number) {
  double value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  return value;
}

}  // namespace kvingest::fetch
