// json.hpp -- reads what the programs print with --json.
//
// A value, free to copy. What is not there, or not of the kind asked for, is thrown: the test fails with its name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvingest::test {

class Json {
 public:
  /// Throws when `text` is not one JSON value.
  static Json parse(std::string_view text);

  [[nodiscard]] bool contains(std::string_view name) const { return members_.contains(std::string(name)); }
  [[nodiscard]] const Json& operator[](std::string_view name) const;
  [[nodiscard]] const Json& operator[](std::size_t index) const { return items_.at(index); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size() + members_.size(); }
  /// A string's text; a number's, true's or false's own text.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::uint64_t number() const;

 private:
  std::string text_;
  std::vector<Json> items_;
  std::map<std::string, Json> members_;
};

}  // namespace kvingest::test
