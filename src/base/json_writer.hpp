// json_writer.hpp -- writes JSON text, for results and status: one line, no spaces.
//
//   JsonWriter json;
//   json.begin_object().field("stored", 7u).field("store", "lmdb").end_object();
//   json.text()   // {"stored":7,"store":"lmdb"}
//
// Text is expected to be UTF-8. A byte that is no part of a valid sequence is written as \u00XX, so that the result is
// always valid JSON and the byte can still be seen.
//
// Threads: one object, one thread.
// Errors:  misuse (a key outside an object, an unfinished object) is a bug and asserts.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvingest {

/// Appends `text` to `to` as a JSON string, with its quotes.
void append_json_string(std::string& to, std::string_view text);

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  /// The name of the next value.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  /// The shortest digits that read back as `number`; null where JSON has none (infinite, not a number).
  JsonWriter& value(double number);
  template <std::integral T>
  JsonWriter& value(T number) {
    return raw(std::to_string(number));
  }
  JsonWriter& null() { return raw("null"); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  /// The finished text. Everything opened has been closed.
  [[nodiscard]] const std::string& text() const;

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view literal);
  void before_value();

  std::string text_;
  std::string open_;  ///< The brackets not yet closed, outermost first.
  bool after_key_ = false;
  bool first_ = true;  ///< Nothing stands in the innermost object or array yet.
};

}  // namespace kvingest
