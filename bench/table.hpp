// table.hpp -- a table for the terminal, at most 100 columns wide: long names in the first column give way, figures
// never.
#pragma once

#include <string>
#include <vector>

namespace kvingest::bench {

inline constexpr std::size_t kTableColumnsMax = 100;

class Table {
 public:
  /// `heads` name the columns; those from `first_number` on are aligned to the right.
  Table(std::string title, std::vector<std::string> heads, std::size_t first_number);

  /// As many cells as there are heads.
  void add(std::vector<std::string> cells);
  /// A line below the table.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  [[nodiscard]] std::string text() const;

 private:
  std::string title_;
  std::size_t first_number_;
  std::vector<std::vector<std::string>> rows_;  ///< The first one is the heads.
  std::vector<std::string> notes_;
};

}  // namespace kvingest::bench
