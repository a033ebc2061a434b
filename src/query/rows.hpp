// rows.hpp -- rows of key and value as kvq prints them: KEY<TAB>VALUE lines, or one JSON object with all of them.
//
// Threads: one.
#pragma once

#include <string>
#include <string_view>

namespace kvingest::query {

enum class RowForm { text, json };

/// Appends rows to a text that may be written and emptied between them.
class Rows {
 public:
  Rows(RowForm form, bool seq_keys) : form_(form), seq_keys_(seq_keys) {}

  void begin(std::string& to);
  void add(std::string& to, std::string_view key, std::string_view value);
  void end(std::string& to);

 private:
  RowForm form_;
  bool seq_keys_;
  bool first_ = true;
};

/// Appends a key as JSON: an arrival number as a number, any other as a string.
void append_json_key(std::string& to, std::string_view key, bool seq_keys);

}  // namespace kvingest::query
