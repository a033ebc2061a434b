// record_plan.hpp -- how messages become records: the options of a service, checked and compiled once.
//
// Threads: a plan is immutable and shared by all connections; each has its own MessageParser on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"
#include "record/text_template.hpp"

namespace kvingest {

enum class MessageFormat : std::uint8_t {
  line,  ///< The whole message: field {line}.
  kv,    ///< Key, separator, value: fields {key} and {value}.
  csv,   ///< RFC 4180 within one line: a field for each column.
  json,  ///< One object: its members by name or pointer.
};

[[nodiscard]] std::string_view to_string(MessageFormat format) noexcept;
/// Fails with: invalid_argument, listing the formats.
[[nodiscard]] Result<MessageFormat> parse_message_format(std::string_view text);

struct RecordOptions {
  MessageFormat format = MessageFormat::line;
  bool header = false;               ///< csv: the first line that is not blank names the columns.
  std::vector<std::string> columns;  ///< csv: their names; with `header`, what the header must say.
  std::string separator;             ///< One byte; empty: ',' for csv, '=' for kv.
  bool keep_cr = false;              ///< Keep a CR before the LF. For whoever cuts the lines.
  std::optional<std::string> key;    ///< Default: "{seq}"; "{key}" for kv.
  std::optional<std::string> value;  ///< Default: the whole message; "{value}" for kv.
};

/// What the marker says of the value where the message is the value.
inline constexpr std::string_view kWholeMessageLabel = "(whole message)";

class RecordPlan {
 public:
  /// Fails with: invalid_argument (a bad template, a field that the format or the columns lack, an option that the
  /// format does not take); the text quotes the template or names the option.
  static Result<RecordPlan> compile(const RecordOptions& options);

  /// The fast path: the message is the value and its arrival number the key. Then a connection may call
  /// `batch.put_next(line)` for each line that is not blank, and needs no parser.
  [[nodiscard]] bool whole_line_by_seq() const noexcept {
    return format_ == MessageFormat::line && key_.is_seq_alone() && whole_message_;
  }

  [[nodiscard]] MessageFormat format() const noexcept { return format_; }
  [[nodiscard]] bool header() const noexcept { return header_; }
  [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
  [[nodiscard]] char separator() const noexcept { return separator_; }
  [[nodiscard]] bool keep_cr() const noexcept { return keep_cr_; }
  [[nodiscard]] const TextTemplate& key() const noexcept { return key_; }
  /// Not for use where whole_message() says that the message is the value.
  [[nodiscard]] const TextTemplate& value() const noexcept { return value_; }
  [[nodiscard]] bool whole_message() const noexcept { return whole_message_; }
  /// Whether stored values are messages whose fields have names.
  [[nodiscard]] bool has_fields() const noexcept {
    return whole_message_ && (format_ == MessageFormat::csv || format_ == MessageFormat::json);
  }
  /// What the templates name: Part::field is an index into it.
  [[nodiscard]] std::span<const FieldPath> fields() const noexcept { return fields_; }

  /// What the marker of the store keeps of the plan: key, value, format, separator, header and, where known, columns.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> labels() const;

 private:
  Result<void> check_options(const RecordOptions& options);
  Result<void> compile_templates(const RecordOptions& options);
  Result<void> check_fields() const;

  MessageFormat format_ = MessageFormat::line;
  bool header_ = false;
  bool keep_cr_ = false;
  bool whole_message_ = false;
  char separator_ = 0;
  std::vector<std::string> columns_;
  TextTemplate key_;
  TextTemplate value_;
  std::vector<FieldPath> fields_;
};

/// Column names as one csv line, quoted where needed, and back: the form in which the marker and meta keep them.
[[nodiscard]] std::string join_columns(std::span<const std::string> columns);
/// Fails with: invalid_argument (not one well-formed csv line).
[[nodiscard]] Result<std::vector<std::string>> split_columns(std::string_view text);

}  // namespace kvingest
