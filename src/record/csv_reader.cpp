#include <algorithm>

#include "record/csv_line.hpp"
#include "record/field_reader.hpp"

namespace kvingest {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Some programs begin a csv file with it.

class CsvReader final : public FieldReader {
 public:
  explicit CsvReader(const RecordPlan& plan)
      : plan_(plan), header_next_(plan.header()), expected_(plan.columns()), column_of_(plan.fields().size(), kNone) {
    if (!header_next_) bind(plan.columns());
  }

  Found read(std::string_view message, std::span<std::string_view> fields) override {
    if (refused_) return bad("header_changed", "the header of this connection was refused");
    if (header_next_ && message.starts_with(kByteOrderMark)) message.remove_prefix(kByteOrderMark.size());
    if (const std::string_view problem = line_.split(message, plan_.separator()); !problem.empty()) {
      return bad("bad_csv", "{} (field {})", problem, line_.fields().size() + 1);
    }
    if (header_next_) return read_header();
    if (!columns_.empty() && line_.fields().size() != columns_.size()) {
      return bad("bad_csv", "{} fields where there are {} columns", line_.fields().size(), columns_.size());
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      fields[i] = column_of_[i] == kNone ? std::string_view() : line_.fields()[column_of_[i]];
    }
    return Found::fields;
  }

  [[nodiscard]] const std::vector<std::string>& columns() const override { return columns_; }
  void set_columns(std::vector<std::string> columns) override {
    header_next_ = false;
    bind(std::move(columns));
  }
  void expect_columns(std::vector<std::string> columns) override { expected_ = std::move(columns); }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  Found read_header() {
    std::vector<std::string> columns(line_.fields().begin(), line_.fields().end());
    if (!expected_.empty() && columns != expected_) {
      refused_ = true;
      return bad("header_changed", "the header says '{}', the columns of the store are '{}'", join_columns(columns),
                 join_columns(expected_));
    }
    set_columns(std::move(columns));
    const auto missing = std::find(column_of_.begin(), column_of_.end(), kNone);
    if (missing == column_of_.end()) return Found::nothing;
    const auto field = static_cast<std::size_t>(missing - column_of_.begin());
    return bad("missing_field", "the header names no column '{}'", plan_.fields()[field].text());
  }

  // Of columns with the same name the first is meant.
  void bind(std::vector<std::string> columns) {
    columns_ = std::move(columns);
    for (std::size_t i = 0; i < column_of_.size(); ++i) {
      const auto found = std::find(columns_.begin(), columns_.end(), plan_.fields()[i].steps[0]);
      column_of_[i] = found == columns_.end() ? kNone : static_cast<std::size_t>(found - columns_.begin());
    }
  }

  const RecordPlan& plan_;
  CsvLine line_;
  bool header_next_;
  bool refused_ = false;
  std::vector<std::string> expected_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> column_of_;  // For each of the plan's fields.
};

}  // namespace

std::unique_ptr<FieldReader> make_csv_reader(const RecordPlan& plan) {
  return std::make_unique<CsvReader>(plan);
}

}  // namespace kvingest
