// erase.hpp -- kvq delete: takes records away, and the ledger says how many.
//
// Threads: one.
#pragma once

#include "kvingest/store.hpp"
#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/pages.hpp"
#include "query/rows.hpp"
#include "record/seq_in_key.hpp"

namespace kvingest::query {

/// Erases the records of `selection`, a batch for each page with the count of it, and returns how many there were. On
/// disk when this returns. Fails with: what scan() and write() fail with; what was erased before stays so.
[[nodiscard]] Result<std::uint64_t> erase_records(Store& store, const SeqInKey& seq_in_key, const Selection& selection);

/// erase_records() with the result printed.
Result<void> print_erased(const OpenedStore& opened, const Selection& selection, RowForm form, Output& out);

}  // namespace kvingest::query
