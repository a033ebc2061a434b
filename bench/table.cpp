#include "bench/table.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace kvingest::bench {
namespace {

void append_cell(std::string& line, const std::string& cell, std::size_t width, bool right) {
  const std::string padding(width - cell.size(), ' ');
  line += right ? padding + cell : cell + padding;
}

}  // namespace

Table::Table(std::string title, std::vector<std::string> heads, std::size_t first_number)
    : title_(std::move(title)), first_number_(first_number), rows_{std::move(heads)} {}

void Table::add(std::vector<std::string> cells) {
  KV_ASSERT(cells.size() == rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = title_ + "\n";
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += ' ';
      append_cell(line, row[i], widths[i], i >= first_number_);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line.substr(0, kTableColumnsMax) + "\n";
    if (&row == &rows_.front()) text += std::string(std::min(line.size(), kTableColumnsMax), '-') + "\n";
  }
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

}  // namespace kvingest::bench
