#include "query/wide_output.hpp"

#include <algorithm>
#include <charconv>

#include "base/json_writer.hpp"
#include "record/csv_line.hpp"

namespace kvingest::query {
namespace {

/// A number in JSON's own form is written as one, digit by digit; all else as a text.
void append_json_value(std::string& to, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool numeric = error == std::errc{} && end == text.data() + text.size();
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool leading_zero = digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
  const bool plain =
      text.find_first_not_of("0123456789+-.eE") == text.npos && !digits.starts_with('.') && !text.ends_with('.');
  if (numeric && plain && !leading_zero) {
    to += text;
  } else {
    append_json_string(to, text);
  }
}

void append_padded(std::string& to, std::string_view text, std::size_t width, bool right) {
  const std::size_t blanks = width > text.size() ? width - text.size() : 0;
  if (right) to.append(blanks, ' ');
  to += text;
  if (!right) to.append(blanks, ' ');
}

}  // namespace

void WideOutput::begin(std::string& to) const {
  if (form_ == WideForm::json) {
    to += "{\"rows\":[";
    return;
  }
  const bool table = form_ == WideForm::table;
  table ? append_padded(to, rows_, row_width_, false) : append_csv_field(to, rows_, ',');
  for (const Column& column : columns_) {
    to += table ? "  " : ",";
    table ? append_padded(to, column.name, column.width, true) : append_csv_field(to, column.name, ',');
  }
  to += '\n';
}

void WideOutput::row(std::string& to, std::string_view name, std::span<const std::string> cells) {
  if (form_ == WideForm::json) {
    to += first_ ? "{" : ",{";
    first_ = false;
    append_json_string(to, rows_);
    to += ':';
    append_json_string(to, name);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].empty()) continue;
      to += ',';
      append_json_string(to, columns_[i].name);
      to += ':';
      append_json_value(to, cells[i]);
    }
    to += '}';
    return;
  }
  const bool table = form_ == WideForm::table;
  table ? append_padded(to, name, row_width_, false) : append_csv_field(to, name, ',');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    to += table ? "  " : ",";
    table ? append_padded(to, cells[i], columns_[i].width, true) : append_csv_field(to, cells[i], ',');
  }
  to += '\n';
}

void WideOutput::end(std::string& to) const {
  if (form_ == WideForm::json) to += "]}\n";
}

}  // namespace kvingest::query
