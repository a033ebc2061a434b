// export.hpp -- records as a file that other programs read.
//
//   text   KEY<TAB>VALUE lines, escaped as scan does
//   csv    of a csv store with known columns: a header and the messages as they came; else the columns key,value
//   json   an object a line: {"key":...,"value":...}; the value of a json store is its object, of a csv store with
//   known
//          columns an object of them, else text
//
// Threads: one.
#pragma once

#include <string_view>

#include "query/opened_store.hpp"
#include "query/output.hpp"
#include "query/pages.hpp"

namespace kvingest::query {

enum class ExportForm { text, csv, json };

/// Fails with: invalid_argument, listing the forms.
[[nodiscard]] Result<ExportForm> parse_export_form(std::string_view text);

Result<void> export_records(const OpenedStore& opened, const Selection& selection, ExportForm form, Output& out);

}  // namespace kvingest::query
