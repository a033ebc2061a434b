// field_reader.hpp -- the fields of one message, by format. Each connection has its own reader, which holds what a
// format remembers between messages (the columns of csv) and its buffers.
//
// Threads: one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/record_plan.hpp"

namespace kvingest {

class FieldReader {
 public:
  enum class Found { fields, nothing, bad };

  FieldReader() = default;
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;
  virtual ~FieldReader() = default;

  /// Looks up plan.fields() in `message`, which is not empty. The views live as long as the message, and until the next
  /// read(). `nothing`: the message holds no record (a header); `bad`: see reason() and detail().
  virtual Found read(std::string_view message, std::span<std::string_view> fields) = 0;

  [[nodiscard]] virtual const std::vector<std::string>& columns() const { return no_columns_; }
  // By value, since the one that keeps them moves them. NOLINTBEGIN(performance-unnecessary-value-param)
  virtual void set_columns(std::vector<std::string>) {}
  virtual void expect_columns(std::vector<std::string>) {}
  // NOLINTEND(performance-unnecessary-value-param)

  [[nodiscard]] std::string_view reason() const noexcept { return reason_; }
  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

 protected:
  template <class... Args>
  Found bad(std::string_view reason, fmt::format_string<Args...> detail, Args&&... args) {
    reason_ = reason;
    detail_.clear();
    fmt::format_to(std::back_inserter(detail_), detail, std::forward<Args>(args)...);
    return Found::bad;
  }

 private:
  std::string_view reason_;
  std::string detail_;
  std::vector<std::string> no_columns_;
};

/// `plan` must outlive the reader.
[[nodiscard]] std::unique_ptr<FieldReader> make_line_reader();
[[nodiscard]] std::unique_ptr<FieldReader> make_kv_reader(const RecordPlan& plan);
[[nodiscard]] std::unique_ptr<FieldReader> make_csv_reader(const RecordPlan& plan);
[[nodiscard]] std::unique_ptr<FieldReader> make_json_reader(const RecordPlan& plan);

}  // namespace kvingest
