#include "bench/table.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kFirstColumnMin = 8;

void append_cell(std::string& line, const std::string& cell, std::size_t width, bool right) {
  const std::string padding(width - cell.size(), ' ');
  line += right ? padding + cell : cell + padding;
}

/// As much of a name as fits, with a mark where it was cut.
std::string shortened(const std::string& name, std::size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 1) + "~";
}

/// The width of each column. Where the table would be too wide the first column, which has names, gives way: a figure
/// that is cut would be another figure.
std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), widths.size() - 1);
  if (total > kTableColumnsMax) {
    const std::size_t surplus = std::min(total - kTableColumnsMax, widths.front());
    widths.front() = std::max(widths.front() - surplus, kFirstColumnMin);
  }
  return widths;
}

}  // namespace

Table::Table(std::string title, std::vector<std::string> heads, std::size_t first_number)
    : title_(std::move(title)), first_number_(first_number), rows_{std::move(heads)} {}

void Table::add(std::vector<std::string> cells) {
  KV_ASSERT(cells.size() == rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  const std::vector<std::size_t> widths = widths_of(rows_);
  std::string text = title_ + "\n";
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += ' ';
      append_cell(line, i == 0 ? shortened(row[i], widths[i]) : row[i], widths[i], i >= first_number_);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (&row == &rows_.front()) text += std::string(line.size(), '-') + "\n";
  }
  for (const std::string& note : notes_) text += note + "\n";
  return text;
}

}  // namespace kvingest::bench
