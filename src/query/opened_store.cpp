#include "query/opened_store.hpp"

#include "record/record_plan.hpp"

namespace kvingest::query {

RecordLabels RecordLabels::of(const Marker& marker) {
  const auto label = [&](std::string_view name) {
    const auto found = marker.labels.find(name);
    return found == marker.labels.end() ? std::string() : found->second;
  };
  RecordLabels labels;
  labels.format = label("format");
  labels.seq_keys = label("key") == "{seq}";
  labels.whole_message = label("value") == kWholeMessageLabel;
  if (const std::string separator = label("separator"); separator.size() == 1) labels.separator = separator[0];
  if (auto columns = split_columns(label("columns")); columns && !label("columns").empty()) {
    labels.columns = *std::move(columns);
  }
  return labels;
}

Result<OpenedStore> open_for_reading(const std::filesystem::path& dir, std::function<void(std::string_view)> notice) {
  auto marker = read_marker(dir);
  KV_TRY(marker);
  auto store = open_store({.dir = dir, .read_only = true, .create = false, .notice = std::move(notice)});
  KV_TRY(store);
  RecordLabels labels = RecordLabels::of(*marker);
  return OpenedStore{*std::move(marker), std::move(labels), *std::move(store)};
}

}  // namespace kvingest::query
