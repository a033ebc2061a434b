// import.hpp -- kvq import: lines of a file into a store that no service has open. They count in the ledger as those of
// the source `@import`, and what becomes no record is kept as a reject of it.
//
// Threads: one.
#pragma once

#include <filesystem>

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/rows.hpp"

namespace kvingest::query {

enum class ImportForm {
  text,      ///< KEY<TAB>VALUE, escaped, as scan prints it. In a {seq} store the records get the next numbers.
  messages,  ///< As a feed sends them: the store's format and templates make the record.
};

/// Fails with: invalid_argument, listing the forms.
[[nodiscard]] Result<ImportForm> parse_import_form(std::string_view text);

struct ImportReport {
  std::uint64_t received = 0;
  std::uint64_t stored = 0;
  std::uint64_t rejected = 0;
  std::uint64_t blank = 0;
};

/// Takes every line that `fd` has; `name` is for messages. A batch for each thousand lines; on disk when this returns.
/// Fails with: invalid_argument (`text` where a number is part of the key), io_error, what Store::write() fails with;
/// what was imported before stays so.
[[nodiscard]] Result<ImportReport> import_lines(const OpenedStore& opened, int fd, std::string_view name,
                                                ImportForm form);

/// import_lines() with the result printed. False: lines were rejected.
Result<bool> print_import(const OpenedStore& opened, const std::filesystem::path& path, ImportForm form, RowForm rows,
                          Output& out);

}  // namespace kvingest::query
