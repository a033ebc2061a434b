// pages.hpp -- a walk over many entries in pages: at most 1,000 entries or 1 MiB a scan, each page one view of the
// store, and nothing held between two of them.
//
// Threads: any; nothing is shared.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "kvingest/function_ref.hpp"
#include "kvingest/store.hpp"

namespace kvingest::query {

/// Which entries, in which order. Like Range, but it owns its bounds.
struct Selection {
  std::optional<std::string> first;
  std::optional<std::string> last;  ///< The first key beyond.
  bool reverse = false;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
};

/// The keys that begin with `prefix`, taken out of `from` (up to but without `to`).
[[nodiscard]] Selection select(std::optional<std::string> prefix, std::optional<std::string> from,
                               std::optional<std::string> to);

/// Passes the entries of `selection` to `visit` and, after each page, calls `between`, which may block, and ends the
/// walk with false or an error. Returns how many entries were passed. Fails as Store::scan() and `between` do.
Result<std::uint64_t> walk_pages(const Store& store, Space space, const Selection& selection,
                                 FunctionRef<void(std::string_view key, std::string_view value)> visit,
                                 FunctionRef<Result<bool>()> between);

}  // namespace kvingest::query
