#include "base/quantity.hpp"

#include <array>
#include <charconv>
#include <optional>

namespace kvingest {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first: formatting takes the first that divides the value.
constexpr std::array<Unit, 4> kSizeUnits = {{
    {"T", std::uint64_t{1} << 40},
    {"G", std::uint64_t{1} << 30},
    {"M", std::uint64_t{1} << 20},
    {"K", std::uint64_t{1} << 10},
}};
constexpr std::array<Unit, 5> kTimeUnits = {{
    {"d", 86'400'000},
    {"h", 3'600'000},
    {"min", 60'000},
    {"s", 1'000},
    {"ms", 1},
}};
constexpr std::uint64_t kDurationMsMax = std::numeric_limits<std::int64_t>::max() / 1'000'000;  // Fits nanoseconds.

/// The digits in front of `text`, which is left behind them. Nothing when there are none or they overflow.
std::optional<std::uint64_t> take_digits(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::optional<std::uint64_t> times(std::uint64_t value, std::uint64_t factor, std::uint64_t most) {
  if (value > most / factor) return std::nullopt;
  return value * factor;
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::string_view rest = text;
  const auto value = take_digits(rest);
  const bool whole = value && rest.empty();
  if (whole && *value >= least && *value <= most) return *value;
  if (most == std::numeric_limits<std::uint64_t>::max() && least == 0)
    return fail(Code::invalid_argument, "'{}' is not a whole number", text);
  if (most == std::numeric_limits<std::uint64_t>::max())
    return fail(Code::invalid_argument, "'{}' is not a whole number of at least {}", text, least);
  return fail(Code::invalid_argument, "'{}' is not a whole number from {} to {}", text, least, most);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  const auto value = take_digits(rest);
  if (value && rest.empty()) return *value;
  for (const Unit& unit : kSizeUnits) {
    if (!value || upper(rest) != unit.name) continue;
    if (const auto bytes = times(*value, unit.factor, std::numeric_limits<std::uint64_t>::max())) return *bytes;
  }
  return fail(Code::invalid_argument, "'{}' is not a size: a whole number of bytes, or with K, M, G or T, as in 8M",
              text);
}

std::string format_size(std::uint64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    if (bytes >= unit.factor && bytes % unit.factor == 0) return fmt::format("{}{}", bytes / unit.factor, unit.name);
  }
  return std::to_string(bytes);
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  const auto value = take_digits(rest);
  if (value && rest.empty()) rest = "ms";
  for (const Unit& unit : kTimeUnits) {
    if (!value || rest != unit.name) continue;
    if (const auto ms = times(*value, unit.factor, kDurationMsMax)) return std::chrono::milliseconds(*ms);
  }
  return fail(Code::invalid_argument,
              "'{}' is not a time: a whole number with ms, s, min, h or d, as in 250ms (without a unit: ms)", text);
}

std::string format_duration(std::chrono::milliseconds time) {
  const auto ms = static_cast<std::uint64_t>(time.count());
  for (const Unit& unit : kTimeUnits) {
    if (ms >= unit.factor && ms % unit.factor == 0) return fmt::format("{}{}", ms / unit.factor, unit.name);
  }
  return fmt::format("{}ms", ms);
}

std::string format_grouped(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace kvingest
