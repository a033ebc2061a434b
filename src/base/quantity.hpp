// quantity.hpp -- sizes, times and counts as people write them on a command line.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest {

/// A whole number from `least` to `most`. Fails with: invalid_argument.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least = 0,
                                                std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// Bytes: a whole number, with K, M, G or T (either case) for powers of 1,024. Fails with: invalid_argument.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);

/// The shortest text that parse_size() reads as `bytes`: "8M", "1536K", "1001".
[[nodiscard]] std::string format_size(std::uint64_t bytes);

/// A time: a whole number with ms, s, min, h or d; without a unit, milliseconds. Fails with: invalid_argument.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The shortest text that parse_duration() reads as `time`: "250ms", "5s", "2min".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds time);

/// A count for people, with commas: "1,000,000".
[[nodiscard]] std::string format_grouped(std::uint64_t count);

}  // namespace kvingest
