// stored_ledger.hpp -- what the meta space of a store says about the feeds that filled it (kvingest/ledger.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "kvingest/function_ref.hpp"
#include "kvingest/ledger.hpp"
#include "kvingest/store.hpp"

namespace kvingest::query {

struct StoredLedger {
  std::uint64_t seq = 0;  ///< The last arrival number given.
  std::map<std::string, SourceRecord, std::less<>> sources;
  RejectTotals rejects;
  RemovedTotals removed;

  [[nodiscard]] Tally total() const;
};

/// Fails with: corrupt, io_error.
[[nodiscard]] Result<StoredLedger> read_ledger(const Store& store);

/// Passes every reject that is kept, in the order of rejection, to `visit`, and calls `between` after each page of
/// them, which may block, and ends the walk with false. Fails with: corrupt, io_error, what `between` fails with.
Result<void> walk_rejects(const Store& store, FunctionRef<void(std::uint64_t number, const RejectRecord& reject)> visit,
                          FunctionRef<Result<bool>()> between);

}  // namespace kvingest::query
