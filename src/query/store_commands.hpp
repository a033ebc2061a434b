// store_commands.hpp -- stats, verify, backup and compact: how a store is, and its housekeeping.
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

/// Copies the store, as of one moment, into the new directory `to`, and prints what the copy holds: so many records, of
/// the arrival numbers up to so much.
Result<void> print_backup(const OpenedStore& opened, const std::filesystem::path& to, RowForm form, Output& out);

/// Gives back the space of what was overwritten and erased, and prints the files' bytes before and after. The store is
/// closed then.
Result<void> print_compact(OpenedStore& opened, const std::filesystem::path& dir, RowForm form, Output& out);

}  // namespace kvingest::query
