// read_commands.hpp -- count, get, scan and tail: what a store holds.
//
// Threads: one; the store may be written by others meanwhile. Errors: as Store and Output have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kvingest/store.hpp"
#include "query/output.hpp"
#include "query/pages.hpp"
#include "query/rows.hpp"

namespace kvingest::query {

/// Prints the number of records.
Result<void> print_count(const Store& store, RowForm form, Output& out);

/// Prints the value under `key` as it is, with an LF behind it on a terminal; as a JSON object where asked. False:
/// there is none.
Result<bool> print_value(const Store& store, const std::string& key, bool seq_keys, RowForm form, Output& out);

/// Prints the rows of `selection`.
Result<void> print_rows(const Store& store, const Selection& selection, bool seq_keys, RowForm form, Output& out);

/// Prints the last `count` rows in key order, of those before `end` where it is given.
Result<void> print_tail(const Store& store, std::uint64_t count, bool seq_keys, RowForm form, Output& out,
                        std::optional<std::string> end = std::nullopt);

}  // namespace kvingest::query
