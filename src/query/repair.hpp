// repair.hpp -- a new store of what can still be read of a damaged one. The damaged one stays as it is.
//
// Nothing is dropped in silence: each place that cannot be read is a line of what is printed, and its bytes, as they
// are, are copied to a directory beside the new store, with those lines in its file LOSSES.
//
// Threads: one.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "kvingest/result.hpp"
#include "query/output.hpp"
#include "query/rows.hpp"

namespace kvingest::query {

struct RepairPlan {
  std::filesystem::path dir;     ///< The damaged store.
  std::filesystem::path target;  ///< The new one; nothing may be there.
};

/// Where bytes that belong to nothing are put: "TARGET.lost".
[[nodiscard]] std::filesystem::path lost_dir(const std::filesystem::path& target);

/// Makes the new store and verifies it, or says that the old one is sound and makes none. `notice` takes sentences from
/// opening it.
/// Fails with: invalid_argument (no store in `dir`; something is at the target), locked, unsupported, corrupt (nothing
/// can be read), io_error, no_space.
Result<void> print_repair(const RepairPlan& plan, const std::function<void(std::string_view)>& notice, RowForm form,
                          Output& out);

}  // namespace kvingest::query
