#include "query/erase.hpp"

#include "base/json_writer.hpp"
#include "query/stored_ledger.hpp"

namespace kvingest::query {

Result<std::uint64_t> erase_records(Store& store, const SeqInKey& seq_in_key, const Selection& selection) {
  const auto ledger = read_ledger(store);
  KV_TRY(ledger);
  RemovedTotals removed = ledger->removed;
  WriteBatch batch;
  auto erased = walk_pages(
      store, Space::records, selection,
      [&](std::string_view key, std::string_view) {
        batch.erase(key);
        ++removed.erased;
        if (seq_in_key.is_known() && !seq_in_key.find(key)) ++removed.unnumbered;
      },
      [&]() -> Result<bool> {
        if (batch.empty()) return true;
        batch.put_meta(kMetaRemoved, removed.encode());
        batch.erase_meta(kMetaHeld);  // The next run with a limit counts again.
        KV_TRY(store.write(batch, Durability::kernel));
        batch.clear();
        return true;
      });
  KV_TRY(erased);
  KV_TRY(store.sync());
  return erased;
}

Result<void> print_erased(const OpenedStore& opened, const Selection& selection, RowForm form, Output& out) {
  const auto label = opened.marker.labels.find("key");
  const auto seq_in_key = SeqInKey::of(label == opened.marker.labels.end() ? std::string_view() : label->second);
  KV_TRY(seq_in_key);
  const auto erased = erase_records(*opened.store, *seq_in_key, selection);
  KV_TRY(erased);
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("erased", *erased).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() += fmt::format("erased {}\n", *erased);
  }
  return out.flush();
}

}  // namespace kvingest::query
