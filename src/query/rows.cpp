#include "query/rows.hpp"

#include "base/json_writer.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {

void Rows::begin(std::string& to) {
  if (form_ == RowForm::json) to += "{\"records\":[";
}

void Rows::add(std::string& to, std::string_view key, std::string_view value) {
  if (form_ == RowForm::text) {
    append_key_text(to, key, seq_keys_);
    to += '\t';
    append_escaped(to, value);
    to += '\n';
    return;
  }
  to += first_ ? "{\"key\":" : ",{\"key\":";
  first_ = false;
  append_json_key(to, key, seq_keys_);
  to += ",\"value\":";
  append_json_string(to, value);
  to += '}';
}

void Rows::end(std::string& to) {
  if (form_ == RowForm::json) to += "]}\n";
}

void append_json_key(std::string& to, std::string_view key, bool seq_keys) {
  if (const auto seq = seq_keys ? seq_of_key(key) : std::nullopt) {
    to += std::to_string(*seq);
  } else {
    append_json_string(to, key);
  }
}

}  // namespace kvingest::query
