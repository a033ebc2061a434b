#include "query/store_commands.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/json_writer.hpp"
#include "query/stored_ledger.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::pair<std::string, std::uint64_t>> numbers_of(const Store& store) {
  std::vector<std::pair<std::string, std::uint64_t>> numbers;
  store.stats([&](std::string_view name, std::uint64_t value) { numbers.emplace_back(name, value); });
  return numbers;
}

void append_aligned(std::string& to, const Pairs& pairs) {
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, name.size());
  for (const auto& [name, value] : pairs) to += fmt::format("{:<{}}  {}\n", name, width, value);
}

std::uint64_t bytes_on_disk(const std::filesystem::path& dir) {
  std::uint64_t bytes = 0;
  std::error_code ignored;  // A file that an engine removes meanwhile counts for nothing.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir, ignored)) {
    struct stat found {};
    if (::stat(entry.path().c_str(), &found) == 0 && S_ISREG(found.st_mode)) {
      bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;  // Holes take nothing.
    }
  }
  return bytes;
}

}  // namespace

Result<void> print_stats(const OpenedStore& opened, RowForm form, Output& out) {
  const auto numbers = numbers_of(*opened.store);
  const Marker& marker = opened.marker;
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("store", marker.engine).field("format_version", marker.format_version);
    json.field("created", marker.created).key("labels").begin_object();
    for (const auto& [name, value] : marker.labels) json.field(name, value);
    json.end_object().key("stats").begin_object();
    for (const auto& [name, value] : numbers) json.field(name, value);
    json.end_object().end_object();
    out.text() += json.text() + "\n";
    return out.flush();
  }
  Pairs pairs = {
      {"store", marker.engine}, {"format_version", std::to_string(marker.format_version)}, {"created", marker.created}};
  for (const auto& [name, value] : marker.labels) pairs.emplace_back("label " + name, escaped(value));
  for (const auto& [name, value] : numbers) pairs.emplace_back(name, std::to_string(value));
  append_aligned(out.text(), pairs);
  return out.flush();
}

Result<void> print_verify(const Store& store, RowForm form, Output& out) {
  const auto report = store.verify();
  KV_TRY(report);
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("sound", true).field("records", report->records);
    json.field("bytes_checked", report->bytes_checked).field("torn_tail", report->torn_tail).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() += fmt::format("sound: {} records, {} bytes checked\n", report->records, report->bytes_checked);
    if (!report->torn_tail.empty()) out.text() += fmt::format("torn tail: {}\n", report->torn_tail);
  }
  return out.flush();
}

Result<void> print_backup(const OpenedStore& opened, const std::filesystem::path& to, RowForm form, Output& out) {
  KV_TRY(opened.store->backup(to));
  // The copy itself says what it holds: the store may have grown meanwhile.
  const auto copy = open_for_reading(to, [](std::string_view) {});
  if (!copy) return fail(copy.error(), "open the backup");
  const auto records = copy->store->count();
  KV_TRY(records);
  const auto ledger = read_ledger(*copy->store);
  KV_TRY(ledger);
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("backup", to.native()).field("records", *records).field("last_seq", ledger->seq);
    out.text() += json.end_object().text() + "\n";
  } else {
    out.text() += fmt::format("{}: {} records", to.native(), *records);
    out.text() += ledger->seq > 0 ? fmt::format(", arrivals 1..{}\n", ledger->seq) : "\n";
  }
  return out.flush();
}

Result<void> print_compact(OpenedStore& opened, const std::filesystem::path& dir, RowForm form, Output& out) {
  const std::uint64_t before = bytes_on_disk(dir);
  KV_TRY(opened.store->compact());
  KV_TRY(opened.store->close());
  const std::uint64_t after = bytes_on_disk(dir);
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("bytes_before", before).field("bytes_after", after).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() += fmt::format("{} bytes on disk before, {} after\n", before, after);
  }
  return out.flush();
}

}  // namespace kvingest::query
