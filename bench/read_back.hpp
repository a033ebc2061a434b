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

}  // namespace kvingest::bench
