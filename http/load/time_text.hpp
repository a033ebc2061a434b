// time_text.hpp -- dates and times as sources write them, and as records hold them.
//
// A format is exact: what does not match to its last byte is no date. Guessing swaps days and months in silence.
//
//   %Y 2024   %m 01..12   %d 01..31 (or 1..31)   %b Jan   %H %M %S   %f fraction of a second   %z Z, +0200 or +02:00
//   %q quarter 1..4   %V ISO week; any other byte stands for itself
//
// Threads: any. Time zones are looked up once and kept by absl.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::fetch {

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kNsPerDay = 86'400 * kNsPerSecond;

/// Days since 1970-01-01.
using Day = std::int64_t;
/// Nanoseconds since 1970-01-01 UTC.
using Instant = std::int64_t;

/// A time without or with its offset from UTC.
struct LocalTime {
  std::int64_t ns = 0;  ///< Since 1970-01-01 on the clock that was read.
  std::optional<std::int64_t> offset_ns;
};

[[nodiscard]] std::optional<LocalTime> parse_time(std::string_view text, std::string_view format);
/// The first of `formats` that matches.
[[nodiscard]] std::optional<LocalTime> parse_time(std::string_view text, std::span<const std::string> formats);

/// "2024-01-31". Fails with: invalid_argument.
[[nodiscard]] Result<Day> parse_day(std::string_view text);
[[nodiscard]] std::string format_day(Day day);
/// "2024-01-31T14:30:00Z", with a fraction only where there is one.
[[nodiscard]] std::string format_instant(Instant instant);

/// Whether the system knows this IANA zone.
[[nodiscard]] bool is_zone(std::string_view zone);
/// The instant that a clock in `zone` shows as `local`. An hour that is skipped or repeated is taken with the offset
/// from before the change.
[[nodiscard]] std::optional<Instant> instant_of(const LocalTime& local, std::string_view zone);
/// The date in `zone` at that instant.
[[nodiscard]] std::optional<Day> day_in_zone(Instant instant, std::string_view zone);

/// The length of an interval such as 1m, 5min, 1h, 1d, 1w, 1wk, 1mo, 1M (a month, of 31 days); nothing where it is
/// none.
[[nodiscard]] std::optional<std::int64_t> interval_ns(std::string_view interval);
/// "8d", "59d", "10h": a span of a preset. Fails with: invalid_argument.
[[nodiscard]] Result<std::int64_t> parse_span(std::string_view text);

[[nodiscard]] constexpr Day day_of(Instant instant) noexcept {
  const Day day = instant / kNsPerDay;
  return instant % kNsPerDay < 0 ? day - 1 : day;
}

}  // namespace kvingest::fetch
