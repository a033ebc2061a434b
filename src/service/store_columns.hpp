// store_columns.hpp -- which columns the csv headers of a run have to name, by what the store was made with.
//
// The columns of --columns stand in the marker, those of a header in the meta space, where they were written in one
// batch with the first records under them. Where both are there the meta space has the newer ones.
//
// Threads: none; before the feeds begin.
#pragma once

#include <string>
#include <vector>

#include "kvingest/engine.hpp"
#include "record/record_plan.hpp"

namespace kvingest {

/// The columns a header must name; empty: any. A plan with other columns than the store's is refused, unless
/// `options.force_labels`. Fails with: invalid_argument, corrupt, io_error.
[[nodiscard]] Result<std::vector<std::string>> settle_columns(Store& store, const RecordPlan& plan,
                                                              const StoreOptions& options);

}  // namespace kvingest
