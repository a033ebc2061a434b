// rejects.hpp -- messages that could not become records: list them, get their bytes, try them again.
//
// Threads: one.
#pragma once

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/rows.hpp"
#include "record/record_plan.hpp"

namespace kvingest::query {

/// Prints a line for each reject: number, source, line, offset, peer, reason, length, detail, tab-separated; or JSON.
Result<void> list_rejects(const Store& store, RowForm form, Output& out);

/// Prints the raw bytes of each reject and an LF. Of a too long message that is its beginning.
Result<void> export_rejects(const Store& store, Output& out);

struct ReplayReport {
  std::uint64_t stored = 0;     ///< Became records; their rejects are gone.
  std::uint64_t blank = 0;      ///< Hold nothing to store, after all; gone, too.
  std::uint64_t rejected = 0;   ///< Could not become records again; they stay.
  std::uint64_t truncated = 0;  ///< Only their beginning is there: nothing can be made of them; they stay.
};

/// Tries every reject again under `plan`. What becomes a record is stored, its reject removed and the ledger moved with
/// it in one batch, on disk when this returns. `plan` expects no header: a reject has none before it.
/// Fails with: what Store::write() fails with; what was replayed before stays so.
[[nodiscard]] Result<ReplayReport> replay_rejects(Store& store, const RecordPlan& plan);

/// replay_rejects() with the result printed.
Result<void> print_replay(Store& store, const RecordPlan& plan, RowForm form, Output& out);

}  // namespace kvingest::query
