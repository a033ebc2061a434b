// csv_line.hpp -- one line of csv (RFC 4180) and its fields.
//
// A field in double quotes may hold separators; a quote in it is doubled. A quote within an unquoted field, text behind
// a closing quote and a quote that is never closed are mistakes, as the RFC has it. Records do not span lines.
//
// Threads:  a value; one thread at a time.
// Lifetime: fields point into the line that was split, or, where a doubled quote was undone, into the CsvLine; they die
//           with either, and with the next split().
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvingest {

/// Bounds what a line of nothing but separators can make us hold (16 bytes each).
inline constexpr std::size_t kCsvFieldsMax = 16'384;

class CsvLine {
 public:
  /// Splits `line`; an empty line is one empty field. Returns what is wrong with it, empty when nothing is; then
  /// fields() ends before the bad field.
  std::string_view split(std::string_view line, char separator);

  [[nodiscard]] std::span<const std::string_view> fields() const noexcept { return {fields_.data(), count_}; }

 private:
  bool split_unquoted(std::string_view line, char separator);
  std::string_view split_quoted(std::string_view line, char separator);
  /// The field whose opening quote is at `at`; moves `at` behind its closing quote. False: it has none.
  bool quoted_field(std::string_view line, std::size_t& at);

  void make_room(std::size_t more) {
    if (fields_.size() < count_ + more) fields_.resize(count_ + more);
  }
  void add(std::string_view field) {
    make_room(1);
    fields_[count_++] = field;
  }

  std::vector<std::string_view> fields_;  // The first count_ are of the last line; it never shrinks.
  std::size_t count_ = 0;
  std::string unquoted_;  // Fields with doubled quotes undone; never grows during a split.
};

/// Appends `field`, in quotes where its bytes need them.
void append_csv_field(std::string& to, std::string_view field, char separator);

}  // namespace kvingest
