#include "query/export.hpp"

#include "base/json_writer.hpp"
#include "query/rows.hpp"
#include "record/csv_line.hpp"
#include "record/field_reader.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {
namespace {

class Exporter {
 public:
  Exporter(const RecordLabels& labels, ExportForm form)
      : labels_(labels),
        form_(form),
        rows_(RowForm::text, labels.seq_keys),
        csv_messages_(labels.format == "csv" && labels.whole_message && !labels.columns.empty()),
        json_messages_(labels.format == "json" && labels.whole_message),
        json_plan_(*RecordPlan::compile({.format = MessageFormat::json})),
        json_reader_(make_json_reader(json_plan_)) {}

  void begin(std::string& to) {
    if (form_ != ExportForm::csv) return;
    if (!csv_messages_) {
      to += "key,value\n";
      return;
    }
    for (const std::string& column : labels_.columns) {
      if (&column != labels_.columns.data()) to += labels_.separator;
      append_csv_field(to, column, labels_.separator);
    }
    to += '\n';
  }

  void add(std::string& to, std::string_view key, std::string_view value) {
    switch (form_) {
      case ExportForm::text:
        return rows_.add(to, key, value);
      case ExportForm::csv:
        return add_csv(to, key, value);
      case ExportForm::json:
        to += "{\"key\":";
        append_json_key(to, key, labels_.seq_keys);
        to += ",\"value\":";
        append_json_value(to, value);
        to += "}\n";
    }
  }

 private:
  void add_csv(std::string& to, std::string_view key, std::string_view value) const {
    if (csv_messages_) {
      to += value;
    } else {
      const auto seq = labels_.seq_keys ? seq_of_key(key) : std::nullopt;
      append_csv_field(to, seq ? std::to_string(*seq) : std::string(key), ',');
      to += ',';
      append_csv_field(to, value, ',');
    }
    to += '\n';
  }

  void append_json_value(std::string& to, std::string_view value) {
    // Others than the feed may have written a value, so what it is has to be looked at.
    if (json_messages_ && json_reader_->read(value, {}) == FieldReader::Found::fields) {
      to += value;
    } else if (csv_messages_ && line_.split(value, labels_.separator).empty() &&
               line_.fields().size() == labels_.columns.size()) {
      append_columns(to);
    } else {
      append_json_string(to, value);
    }
  }

  void append_columns(std::string& to) {
    for (std::size_t i = 0; i < labels_.columns.size(); ++i) {
      to += i == 0 ? '{' : ',';
      append_json_string(to, labels_.columns[i]);
      to += ':';
      append_json_string(to, line_.fields()[i]);
    }
    to += '}';
  }

  const RecordLabels& labels_;
  ExportForm form_;
  Rows rows_;
  bool csv_messages_;
  bool json_messages_;
  RecordPlan json_plan_;
  std::unique_ptr<FieldReader> json_reader_;
  CsvLine line_;
};

}  // namespace

Result<ExportForm> parse_export_form(std::string_view text) {
  if (text == "text") return ExportForm::text;
  if (text == "csv") return ExportForm::csv;
  if (text == "json") return ExportForm::json;
  return fail(Code::invalid_argument, "no export format '{}'; there are csv, json and text", text);
}

Result<void> export_records(const OpenedStore& opened, const Selection& selection, ExportForm form, Output& out) {
  Exporter exporter(opened.labels, form);
  exporter.begin(out.text());
  const auto walked = walk_pages(
      *opened.store, Space::records, selection,
      [&](std::string_view key, std::string_view value) { exporter.add(out.text(), key, value); },
      [&]() -> Result<bool> {
        KV_TRY(out.flush_some());
        return out.is_wanted();
      });
  KV_TRY(walked);
  return out.flush();
}

}  // namespace kvingest::query
