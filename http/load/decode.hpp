// decode.hpp -- from a body to records: cells become values, values become JSON objects under keys, and what is odd is
// counted.
//
// Decimals keep every digit that they came with. Times become UTC instants and session dates by IANA zones; an offset
// that a source gives for "today" is never used.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/load/outcome.hpp"
#include "http/load/preset.hpp"
#include "http/load/time_text.hpp"

namespace kvingest::fetch {

struct Record {
  std::string key;   ///< "source/symbol/interval/2024-01-31".
  std::string json;  ///< One object, without a line end.
  Instant time = 0;  ///< Its instant; midnight of its date where it has only that.
  Day day = 0;       ///< Its date, else that of its instant in UTC.
  bool provisional = false;
};

/// What was seen and not stored as it was, or stored though it is odd.
struct Oddities {
  std::uint64_t nulls_dropped = 0;  ///< Rows without any of the values that make one.
  std::uint64_t outside = 0;        ///< Rows outside of the window.
  std::uint64_t duplicates = 0;
  std::uint64_t future = 0;  ///< Rows too far ahead: not stored.
  std::uint64_t out_of_order = 0;
  std::uint64_t bad_ohlc = 0;     ///< High below low, and the like: stored.
  std::uint64_t provisional = 0;  ///< Stored, and fetched again by the next run.

  Oddities& operator+=(const Oddities& other) noexcept;
};

struct DecodeContext {
  std::string source;
  std::string symbol;
  std::string interval;
  Instant from = INT64_MIN;
  Instant to = INT64_MAX;
  Instant now = 0;
  bool whole = true;  ///< The transfer has shown that the body is complete.
};

struct Decoded {
  Outcome outcome = Outcome::ok;  ///< ok, empty, bad_body or truncated.
  std::string problem;
  std::vector<Record> records;                                      ///< In key order.
  std::vector<std::pair<std::string, std::vector<Record>>> extras;  ///< By the name of their record.
  Oddities oddities;
  std::uint64_t rows = 0;  ///< As they came.
  Instant first_time = 0;  ///< Of all rows, also those outside.
  Instant last_time = 0;
  std::string unit;        ///< What the field that the preset names as unit says; of several, the first.
  std::string other_unit;  ///< Another one in the same body; empty where all are the same.
  std::string next;        ///< The next page's URL or cursor; empty where there is none.
};

[[nodiscard]] Decoded decode(const Preset& preset, std::string_view body, const DecodeContext& context);

/// A part of a key: '/', '%' and bytes that do not print as %XX.
[[nodiscard]] std::string key_part(std::string_view text);

}  // namespace kvingest::fetch
