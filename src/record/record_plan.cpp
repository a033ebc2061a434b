#include "record/record_plan.hpp"

#include <algorithm>
#include <array>

#include "record/csv_line.hpp"

namespace kvingest {
namespace {

constexpr std::array<MessageFormat, 4> kFormats = {MessageFormat::line, MessageFormat::kv, MessageFormat::csv,
                                                   MessageFormat::json};

bool has_duplicate(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

}  // namespace

std::string_view to_string(MessageFormat format) noexcept {
  switch (format) {
    case MessageFormat::line:
      return "line";
    case MessageFormat::kv:
      return "kv";
    case MessageFormat::csv:
      return "csv";
    case MessageFormat::json:
      return "json";
  }
  return "unknown";
}

Result<MessageFormat> parse_message_format(std::string_view text) {
  for (const MessageFormat format : kFormats) {
    if (to_string(format) == text) return format;
  }
  return fail(Code::invalid_argument, "no format '{}'; there are line, kv, csv and json", text);
}

Result<RecordPlan> RecordPlan::compile(const RecordOptions& options) {
  RecordPlan plan;
  KV_TRY(plan.check_options(options));
  KV_TRY(plan.compile_templates(options));
  KV_TRY(plan.check_fields());
  return plan;
}

Result<void> RecordPlan::check_options(const RecordOptions& options) {
  const bool csv = options.format == MessageFormat::csv;
  if (options.header && !csv) return fail(Code::invalid_argument, "header: only the csv format has one");
  if (!options.columns.empty() && !csv) return fail(Code::invalid_argument, "columns: only the csv format has them");
  if (has_duplicate(options.columns)) return fail(Code::invalid_argument, "columns: a name is given twice");
  if (!options.separator.empty()) {
    if (!csv && options.format != MessageFormat::kv) {
      return fail(Code::invalid_argument, "separator: format {} has none", to_string(options.format));
    }
    const bool one_byte = options.separator.size() == 1;
    if (!one_byte || options.separator == "\n" || options.separator == "\r" || (csv && options.separator == "\"")) {
      return fail(Code::invalid_argument, "separator '{}': one byte, and not a line end{}", options.separator,
                  csv ? " or quote" : "");
    }
  }
  format_ = options.format;
  header_ = options.header;
  keep_cr_ = options.keep_cr;
  columns_ = options.columns;
  separator_ = !options.separator.empty() ? options.separator[0] : csv ? ',' : '=';
  return {};
}

Result<void> RecordPlan::compile_templates(const RecordOptions& options) {
  const bool kv = format_ == MessageFormat::kv;
  const std::string key = options.key.value_or(kv ? "{key}" : "{seq}");
  if (key.empty()) return fail(Code::invalid_argument, "key template '': a key has at least one byte");
  auto compiled_key = TextTemplate::compile("key", key, fields_);
  if (!compiled_key) return tl::unexpected<Error>(std::move(compiled_key).error());
  key_ = *std::move(compiled_key);

  const bool line_itself = format_ == MessageFormat::line && options.value.value_or("{line}") == "{line}";
  whole_message_ = line_itself || (!options.value && !kv);
  if (whole_message_) return {};
  auto compiled_value = TextTemplate::compile("value", options.value.value_or("{value}"), fields_);
  if (!compiled_value) return tl::unexpected<Error>(std::move(compiled_value).error());
  value_ = *std::move(compiled_value);
  return {};
}

Result<void> RecordPlan::check_fields() const {
  if (format_ == MessageFormat::json) return {};
  static const std::vector<std::string> line_fields = {"line"};
  static const std::vector<std::string> kv_fields = {"key", "value"};
  const std::vector<std::string>& known = format_ == MessageFormat::line ? line_fields
                                          : format_ == MessageFormat::kv ? kv_fields
                                                                         : columns_;
  for (const FieldPath& field : fields_) {
    if (field.steps.size() != 1) {
      return fail(Code::invalid_argument, "field '{}': only the json format has fields within fields", field.text());
    }
    if (std::find(known.begin(), known.end(), field.steps[0]) != known.end()) continue;
    if (format_ == MessageFormat::csv && columns_.empty()) {
      if (header_) continue;  // The first line will tell.
      return fail(Code::invalid_argument, "field '{}': name the columns with --columns, or say --header", field.text());
    }
    return fail(Code::invalid_argument, "no field '{}' in format {}; there are: {}, {{seq}}, {{time}}, {{source}}",
                field.text(), to_string(format_), join_columns(known));
  }
  return {};
}

std::map<std::string, std::string, std::less<>> RecordPlan::labels() const {
  std::map<std::string, std::string, std::less<>> labels = {
      {"format", std::string(to_string(format_))},
      {"key", key_.text()},
      {"value", whole_message_ ? std::string(kWholeMessageLabel) : value_.text()},
  };
  if (format_ == MessageFormat::csv || format_ == MessageFormat::kv) labels["separator"] = separator_;
  if (format_ == MessageFormat::csv) labels["header"] = header_ ? "true" : "false";
  if (!columns_.empty()) labels["columns"] = join_columns(columns_);
  return labels;
}

std::string join_columns(std::span<const std::string> columns) {
  std::string text;
  for (const std::string& column : columns) {
    if (&column != columns.data()) text += ',';
    append_csv_field(text, column, ',');
  }
  return text;
}

Result<std::vector<std::string>> split_columns(std::string_view text) {
  CsvLine line;
  if (const auto problem = line.split(text, ','); !problem.empty()) {
    return fail(Code::invalid_argument, "columns '{}': {}", text, problem);
  }
  return std::vector<std::string>(line.fields().begin(), line.fields().end());
}

}  // namespace kvingest
