// read_back.hpp -- proves that a store holds exactly what the feed sent: a figure whose answers were not checked is not
// shown.
#pragma once

#include <cstdint>
#include <filesystem>

#include "kvingest/result.hpp"

namespace kvingest::bench {

/// Opens the store in `dir` and compares every record, in order, with `Benchmark Message {n}` under its arrival number.
/// Fails with: corrupt (what differs first), and what opening and reading fail with.
Result<void> check_records(const std::filesystem::path& dir, std::uint64_t count);

/// How the lines of a feed were stored.
enum class KeyedBy : std::uint8_t {
  number,  ///< The arrival number: 1, 2, 3 ...
  trade,   ///< {symbol}/{ts} of the line itself (trades.hpp).
};

/// The same for lines that came in any order: as many as were sent, each key the one that belongs to its line, and the
/// values together those of `digest`.
Result<void> check_lines(const std::filesystem::path& dir, std::uint64_t count, std::uint64_t digest, KeyedBy keyed_by);

}  // namespace kvingest::bench
