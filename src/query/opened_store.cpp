#include "query/opened_store.hpp"

#include "kvingest/ledger.hpp"

namespace kvingest::query {

namespace {

std::string label(const Marker& marker, std::string_view name) {
  const auto found = marker.labels.find(name);
  return found == marker.labels.end() ? std::string() : found->second;
}

/// What a header named while the store was fed is newer than what the marker says.
Result<void> add_header_columns(const Store& store, Marker& marker) {
  Result<std::string> columns;
  KV_TRY(store.get(Space::meta, kMetaColumns, [&](std::string_view value) { columns = decode_columns(value); }));
  KV_TRY(columns);
  if (!columns->empty()) marker.labels["columns"] = *std::move(columns);
  return {};
}

Result<OpenedStore> open(const StoreOptions& options) {
  auto marker = read_marker(options.dir);
  KV_TRY(marker);
  auto store = open_store(options);
  KV_TRY(store);
  const auto unfinished = (*store)->get(Space::meta, kMetaConversion, [](std::string_view) {});
  KV_TRY(unfinished);
  constexpr std::string_view kUnfinished = "an unfinished conversion: run kvq convert again to complete it";
  if (*unfinished && !options.read_only) {
    return fail(Code::invalid_argument, "{} is {}", options.dir.native(), kUnfinished);
  }
  if (*unfinished && options.notice) options.notice(fmt::format("this store is {}", kUnfinished));
  return opened_store(*std::move(marker), *std::move(store));
}

}  // namespace

RecordLabels RecordLabels::of(const Marker& marker) {
  RecordLabels labels;
  labels.format = label(marker, "format");
  labels.seq_keys = label(marker, "key") == "{seq}";
  labels.whole_message = label(marker, "value") == kWholeMessageLabel;
  if (const std::string separator = label(marker, "separator"); separator.size() == 1) labels.separator = separator[0];
  if (const std::string columns = label(marker, "columns"); !columns.empty()) {
    if (auto names = split_columns(columns)) labels.columns = *std::move(names);
  }
  return labels;
}

Result<RecordOptions> record_options_of(const Marker& marker) {
  const RecordLabels labels = RecordLabels::of(marker);
  const auto format = parse_message_format(labels.format);
  KV_TRY(format);
  RecordOptions options;
  options.format = *format;
  options.columns = labels.columns;
  options.separator = label(marker, "separator");
  options.key = label(marker, "key");
  if (!labels.whole_message) options.value = label(marker, "value");
  return options;
}

Result<OpenedStore> opened_store(Marker marker, std::unique_ptr<Store> store) {
  KV_TRY(add_header_columns(*store, marker));
  RecordLabels labels = RecordLabels::of(marker);
  return OpenedStore{std::move(marker), std::move(labels), std::move(store)};
}

Result<OpenedStore> open_for_reading(const std::filesystem::path& dir, std::function<void(std::string_view)> notice) {
  return open({.dir = dir, .read_only = true, .create = false, .notice = std::move(notice)});
}

Result<OpenedStore> open_for_writing(const std::filesystem::path& dir, std::function<void(std::string_view)> notice) {
  return open({.dir = dir, .create = false, .notice = std::move(notice)});
}

}  // namespace kvingest::query
