#include "query/read_commands.hpp"

#include "base/json_writer.hpp"

namespace kvingest::query {

Result<void> print_count(const Store& store, RowForm form, Output& out) {
  const auto count = store.count();
  KV_TRY(count);
  out.text() += form == RowForm::json ? fmt::format("{{\"count\":{}}}\n", *count) : fmt::format("{}\n", *count);
  return out.flush();
}

Result<bool> print_value(const Store& store, const std::string& key, bool seq_keys, RowForm form, Output& out) {
  auto found = store.get(key, [&](std::string_view value) {
    if (form == RowForm::json) {
      out.text() += "{\"key\":";
      append_json_key(out.text(), key, seq_keys);
      out.text() += ",\"value\":";
      append_json_string(out.text(), value);
      out.text() += "}\n";
    } else {
      out.text() += value;
      if (out.is_terminal()) out.text() += '\n';
    }
  });
  KV_TRY(found);
  KV_TRY(out.flush());
  return found;
}

Result<void> print_rows(const Store& store, const Selection& selection, bool seq_keys, RowForm form, Output& out) {
  Rows rows(form, seq_keys);
  rows.begin(out.text());
  const auto walked = walk_pages(
      store, Space::records, selection,
      [&](std::string_view key, std::string_view value) { rows.add(out.text(), key, value); },
      [&]() -> Result<bool> {
        KV_TRY(out.flush_some());
        return out.is_wanted();
      });
  KV_TRY(walked);
  rows.end(out.text());
  return out.flush();
}

// The place is found first and the rows are printed then, so that no more than a page of them is held.
Result<void> print_tail(const Store& store, std::uint64_t count, bool seq_keys, RowForm form, Output& out,
                        std::optional<std::string> end) {
  std::string first;
  const auto found = walk_pages(
      store, Space::records, {.last = end, .reverse = true, .limit = count},
      [&](std::string_view key, std::string_view) { first = key; }, [] { return Result<bool>(true); });
  KV_TRY(found);
  Selection selection{.last = std::move(end), .limit = *found};
  if (*found > 0) selection.first = std::move(first);
  return print_rows(store, selection, seq_keys, form, out);
}

}  // namespace kvingest::query
