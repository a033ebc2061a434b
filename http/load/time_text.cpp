#include "http/load/time_text.hpp"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <mutex>

#include "base/quantity.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes `least` to `most` digits off `text`.
std::optional<int> take_number(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t digits = 0;
  int value = 0;
  while (digits < most && digits < text.size() && is_digit(text[digits])) value = value * 10 + (text[digits++] - '0');
  if (digits < least) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

struct Parts {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, week = 0;
  std::int64_t fraction_ns = 0;
  std::optional<std::int64_t> offset_ns;
};

bool take_fraction(std::string_view& text, Parts& parts) {
  std::int64_t unit = kNsPerSecond / 10;
  std::size_t digits = 0;
  for (; digits < text.size() && is_digit(text[digits]); ++digits, unit /= 10) {
    parts.fraction_ns += (text[digits] - '0') * unit;
  }
  text.remove_prefix(digits);
  return digits > 0;
}

bool take_offset(std::string_view& text, Parts& parts) {
  if (text.starts_with('Z')) {
    text.remove_prefix(1);
    parts.offset_ns = 0;
    return true;
  }
  if (!text.starts_with('+') && !text.starts_with('-')) return false;
  const std::int64_t sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = take_number(text, 2, 2);
  if (text.starts_with(':')) text.remove_prefix(1);
  const auto minutes = take_number(text, 2, 2);
  if (!hours || !minutes || *hours > 15 || *minutes > 59) return false;
  parts.offset_ns = sign * (*hours * 3600 + *minutes * 60) * kNsPerSecond;
  return true;
}

bool take_month_name(std::string_view& text, Parts& parts) {
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (!text.starts_with(kMonths[i])) continue;
    text.remove_prefix(3);
    parts.month = static_cast<int>(i) + 1;
    return true;
  }
  return false;
}

bool take_field(char kind, std::string_view& text, Parts& parts) {
  const auto into = [&](int& to, std::size_t least, std::size_t most) {
    const auto value = take_number(text, least, most);
    if (value) to = *value;
    return value.has_value();
  };
  switch (kind) {
    case 'Y':
      return into(parts.year, 4, 4);
    case 'm':
      return into(parts.month, 1, 2);
    case 'd':
      return into(parts.day, 1, 2);
    case 'b':
      return take_month_name(text, parts);
    case 'H':
      return into(parts.hour, 2, 2);
    case 'M':
      return into(parts.minute, 2, 2);
    case 'S':
      return into(parts.second, 2, 2);
    case 'f':
      return take_fraction(text, parts);
    case 'z':
      return take_offset(text, parts);
    case 'V':
      return into(parts.week, 2, 2) && parts.week >= 1 && parts.week <= 53;
    case 'q': {
      int quarter = 0;
      if (!into(quarter, 1, 1) || quarter < 1 || quarter > 4) return false;
      parts.month = quarter * 3 - 2;
      return true;
    }
    default:
      return false;
  }
}

std::optional<LocalTime> local_of(const Parts& parts) {
  absl::CivilSecond civil(parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second);
  // absl takes the 31st of February for the 3rd of March; here it is no date.
  if (civil.month() != parts.month || civil.day() != parts.day || civil.hour() != parts.hour ||
      civil.minute() != parts.minute || civil.second() != parts.second) {
    return std::nullopt;
  }
  if (parts.week > 0) {
    // ISO 8601: week 1 holds the 4th of January, and weeks begin on Monday.
    const absl::CivilDay fourth(parts.year, 1, 4);
    const absl::CivilDay monday = absl::PrevWeekday(fourth + 1, absl::Weekday::monday);
    civil = absl::CivilSecond(monday + 7 * (parts.week - 1));
  }
  return LocalTime{(civil - absl::CivilSecond(1970, 1, 1)) * kNsPerSecond + parts.fraction_ns, parts.offset_ns};
}

const absl::TimeZone* zone_named(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::optional<absl::TimeZone>, std::less<>> zones;
  const std::lock_guard lock(mutex);
  auto found = zones.find(name);
  if (found == zones.end()) {
    absl::TimeZone zone;
    const bool known = absl::LoadTimeZone(std::string(name), &zone);
    found = zones.emplace(name, known ? std::optional(zone) : std::nullopt).first;
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace

std::optional<LocalTime> parse_time(std::string_view text, std::string_view format) {
  Parts parts;
  while (!format.empty()) {
    if (format.front() == '%' && format.size() > 1) {
      if (!take_field(format[1], text, parts)) return std::nullopt;
      format.remove_prefix(2);
    } else {
      if (text.empty() || text.front() != format.front()) return std::nullopt;
      text.remove_prefix(1);
      format.remove_prefix(1);
    }
  }
  return text.empty() ? local_of(parts) : std::nullopt;
}

std::optional<LocalTime> parse_time(std::string_view text, std::span<const std::string> formats) {
  for (const std::string& format : formats) {
    if (auto time = parse_time(text, format)) return time;
  }
  return std::nullopt;
}

Result<Day> parse_day(std::string_view text) {
  const auto time = parse_time(text, "%Y-%m-%d");
  if (!time) return fail(Code::invalid_argument, "'{}' is no date; write it as 2024-01-31", text);
  return day_of(time->ns);
}

std::string format_day(Day day) {
  const absl::CivilDay civil = absl::CivilDay(1970, 1, 1) + day;
  return fmt::format("{:04}-{:02}-{:02}", civil.year(), civil.month(), civil.day());
}

std::string format_instant(Instant instant) {
  const Day day = day_of(instant);
  const std::int64_t in_day = instant - day * kNsPerDay;
  const std::int64_t seconds = in_day / kNsPerSecond;
  std::string text =
      fmt::format("{}T{:02}:{:02}:{:02}", format_day(day), seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (const std::int64_t ns = in_day % kNsPerSecond; ns != 0) {
    std::string fraction = fmt::format(".{:09}", ns);
    while (fraction.back() == '0') fraction.pop_back();
    text += fraction;
  }
  return text + "Z";
}

bool is_zone(std::string_view zone) {
  return zone_named(zone) != nullptr;
}

std::optional<Instant> instant_of(const LocalTime& local, std::string_view zone) {
  if (local.offset_ns) return local.ns - *local.offset_ns;
  const absl::TimeZone* const known = zone_named(zone);
  if (known == nullptr) return std::nullopt;
  const Day day = day_of(local.ns);
  const std::int64_t in_day = local.ns - day * kNsPerDay;
  const absl::CivilSecond civil = absl::CivilSecond(absl::CivilDay(1970, 1, 1) + day) + in_day / kNsPerSecond;
  return absl::ToUnixSeconds(known->At(civil).pre) * kNsPerSecond + in_day % kNsPerSecond;
}

std::optional<Day> day_in_zone(Instant instant, std::string_view zone) {
  const absl::TimeZone* const known = zone_named(zone);
  if (known == nullptr) return std::nullopt;
  const absl::CivilDay day(known->At(absl::FromUnixNanos(instant)).cs);
  return day - absl::CivilDay(1970, 1, 1);
}

std::optional<std::int64_t> interval_ns(std::string_view interval) {
  const auto count = take_number(interval, 0, 6);
  const std::int64_t many = !count || *count == 0 ? 1 : *count;
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      if (interval == word) return true;
    }
    return false;
  };
  if (is_one_of({"s", "sec"})) return many * kNsPerSecond;
  if (is_one_of({"m", "min", "minute"})) return many * 60 * kNsPerSecond;
  if (is_one_of({"h", "hour"})) return many * 3600 * kNsPerSecond;
  if (is_one_of({"d", "day"})) return many * kNsPerDay;
  if (is_one_of({"w", "wk", "week"})) return many * 7 * kNsPerDay;
  if (is_one_of({"M", "mo", "month"})) return many * 31 * kNsPerDay;
  if (is_one_of({"q", "quarter"})) return many * 92 * kNsPerDay;
  if (is_one_of({"y", "year"})) return many * 366 * kNsPerDay;
  return std::nullopt;
}

Result<std::int64_t> parse_span(std::string_view text) {
  const auto time = parse_duration(text);
  KV_TRY(time);
  return time->count() * 1'000'000;
}

}  // namespace kvingest::fetch
