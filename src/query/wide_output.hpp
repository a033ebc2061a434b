// wide_output.hpp -- a wide table as csv, as JSON or aligned for a terminal, a row at a time.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "query/pivot.hpp"

namespace kvingest::query {

class WideOutput {
 public:
  struct Column {
    std::string name;
    std::size_t width;  ///< Bytes of its widest text, for the aligned form.
  };

  WideOutput(WideForm form, std::string rows, std::size_t row_width, std::vector<Column> columns)
      : form_(form), rows_(std::move(rows)), row_width_(row_width), columns_(std::move(columns)) {}

  void begin(std::string& to) const;
  /// `cells` are in the order of the columns; an empty one is missing.
  void row(std::string& to, std::string_view name, std::span<const std::string> cells);
  void end(std::string& to) const;

 private:
  WideForm form_;
  std::string rows_;
  std::size_t row_width_;
  std::vector<Column> columns_;
  bool first_ = true;
};

}  // namespace kvingest::query
