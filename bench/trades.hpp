// trades.hpp -- the same synthetic trades as csv and as json lines, in files, so that formats are compared on what they
// say and not on how fast it can be made up.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::bench {

/// A file of lines, and a number that any order of the same lines gives.
struct LineFile {
  std::filesystem::path path;
  std::uint64_t digest = 0;
};

struct Trades {
  LineFile csv;   ///< symbol,ts,price,size
  LineFile json;  ///< {"symbol":"..","ts":..,"price":..,"size":..}
};

inline constexpr std::string_view kTradeColumns = "symbol,ts,price,size";
inline constexpr std::string_view kTradeKey = "{symbol}/{ts}";

/// Fails with: io_error, no_space.
[[nodiscard]] Result<Trades> write_trades(const std::filesystem::path& dir, std::uint64_t count, std::uint64_t seed);

/// What one line adds to a digest.
[[nodiscard]] std::uint64_t line_digest(std::string_view line);
/// Of `count` lines "Benchmark Message {n}".
[[nodiscard]] std::uint64_t numbered_digest(std::uint64_t count);

/// `SYMBOL/TS` of a line of either kind; empty where it is none.
[[nodiscard]] std::string_view trade_symbol(std::string_view line);
[[nodiscard]] std::string_view trade_time(std::string_view line);

}  // namespace kvingest::bench
