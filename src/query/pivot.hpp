// pivot.hpp -- a long table as a wide one: `date` down, `symbol` across, `close` in the cells.
//
// Two walks over the store. The first finds the columns and the runs of records whose row values rise: all records
// under one symbol where keys begin with the symbol, the whole store where they begin with the date. The second merges
// the runs row by row, holding a few records of each and one row, however large the store is.
//
// Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/pages.hpp"

namespace kvingest::query {

enum class Aggregate { last, first, sum, mean, min, max, count };
enum class WideForm { csv, json, table };

struct PivotPlan {
  std::string rows;  ///< A field of the records, or a JSON pointer.
  std::string columns;
  std::string values;
  Aggregate aggregate = Aggregate::last;  ///< Of several records in one cell, in key order.
  WideForm form = WideForm::csv;
};

/// Fails with: invalid_argument, listing what there is.
[[nodiscard]] Result<Aggregate> parse_aggregate(std::string_view text);
[[nodiscard]] Result<WideForm> parse_wide_form(std::string_view text);

/// Prints the wide table. Records that lack one of the three fields are passed over. Cells without a record are empty.
/// Fails with: invalid_argument (no such field in any record; a value that is no number, for sum and mean), too_large
/// (more columns or runs than are held), what the store and `out` fail with.
Result<void> pivot(const OpenedStore& opened, const Selection& selection, const PivotPlan& plan, Output& out);

}  // namespace kvingest::query
