// micro.hpp -- suites that measure pieces of code within kvbench's own process: rows of one table, interleaved.
//
// Every row is first run once with its answer checked; a row whose answer is wrong is not measured and says so. Then
// the repeats of all rows take turns in an order of their own each time, so that a mood of the machine meets all of
// them. A ratio is formed within a repeat.
//
// Threads: the calling one; a row may use others while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/suite.hpp"

namespace kvingest::bench {

/// One row: a way of doing something.
struct MicroRow {
  std::string group;  ///< The table that it belongs to; rows of a group are compared.
  std::string name;   ///< In the table and, as `variant`, in the results.
  Subject subject;
  double items = 1;  ///< What one call of `run` does, in the unit of the suite.
  double bytes = 0;  ///< And how many bytes it makes or reads, where that says something.
  std::function<void()> run;
  std::function<Result<void>()> check;  ///< Runs once and looks at the answer.
  std::function<Result<void>()> after;  ///< Looks again when all is measured; may be empty.
  std::string missing;                  ///< Why this build cannot run it; then there is no `run`.
};

/// How rows of a group are compared: each row's rate over that of the row `name`.
struct MicroRatio {
  std::string name;
  std::string metric;  ///< "ratio_to_protobuf"
};

struct MicroPlan {
  std::string suite;
  std::string item;  ///< "value": what `items` counts.
  std::vector<MicroRow> rows = {};
  std::vector<MicroRatio> ratios = {};
  std::vector<std::string> notes = {};  ///< Below the last table.
  double settle_ns = 0;                 ///< A row runs for so long before it is measured, each time.
  double cycles_per_ns = 0;             ///< Cycles are shown, too; 0: they are not.
};

/// Measures all rows and adds results and tables. A row that failed is in the results with its reason.
/// Fails with: io_error (interrupted).
Result<void> run_micro(Bench& bench, const MicroPlan& plan);

}  // namespace kvingest::bench
