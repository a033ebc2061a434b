// store_commands.hpp -- stats and verify: how a store is.
//
// Threads: one. Errors: as Store and Output have them.
#pragma once

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/rows.hpp"

namespace kvingest::query {

/// Prints what the marker says, and the sizes and counters that the engine tells.
Result<void> print_stats(const OpenedStore& opened, RowForm form, Output& out);

/// Checks every checksum and the index against the data, and prints what was sound. Fails with: corrupt, naming the
/// first damaged place.
Result<void> print_verify(const Store& store, RowForm form, Output& out);

}  // namespace kvingest::query
