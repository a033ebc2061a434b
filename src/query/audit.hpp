// audit.hpp -- recounts a store and holds it against its ledger.
//
// Threads: one. Memory: a bit for each arrival number, where keys do not begin with it.
#pragma once

#include <string>
#include <vector>

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/rows.hpp"
#include "query/stored_ledger.hpp"

namespace kvingest::query {

struct Audit {
  StoredLedger ledger;
  std::uint64_t records = 0;
  std::uint64_t numbered = 0;     ///< Records with an arrival number in the key.
  std::uint64_t overwritten = 0;  ///< Stored, but the key came again. Where keys hold no number.
  std::uint64_t rejects_kept = 0;
  bool seq_in_key = false;
  bool templates_differ = false;         ///< Keys were made by several templates: no number is looked for in them.
  std::vector<std::string> differences;  ///< Sentences; empty: the ledger balances.
};

/// Fails with: corrupt, io_error, busy (the store was written to meanwhile).
[[nodiscard]] Result<Audit> audit(const OpenedStore& opened);

/// Prints the ledger, what was found, and each difference. True: it balances.
Result<bool> print_audit(const OpenedStore& opened, RowForm form, Output& out);

}  // namespace kvingest::query
