// values.hpp -- a row's cells as values of their fields' kinds.
//
// Threads: one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "http/load/cells.hpp"
#include "http/load/preset.hpp"
#include "http/load/time_text.hpp"

namespace kvingest::fetch {

struct Value {
  enum class Kind : std::uint8_t { missing, null, text, number, boolean, time, date };
  Kind kind = Kind::missing;
  std::string text;        ///< As the record has it; a text without quotes.
  std::int64_t ticks = 0;  ///< ns of a time, days of a date.

  [[nodiscard]] bool is_nothing() const noexcept { return kind <= Kind::null; }
};

/// Appends `name` and `value` as a member of a JSON object; a missing value is none.
void append_member(std::string& to, std::string_view name, const Value& value);

class RowValues {
 public:
  /// `zone_of` gives the zone that a reference such as @/meta/zone names in this body.
  RowValues(std::span<const Field> fields, std::string zone, std::map<std::string, std::string> zones);

  /// Converts a row. Empty, or what is wrong with it.
  std::string take(std::span<const Cell> cells);

  [[nodiscard]] const std::vector<Value>& values() const noexcept { return values_; }
  [[nodiscard]] const Value* named(std::string_view name) const noexcept;
  /// The row's instant: its first time, else the midnight of its first date.
  [[nodiscard]] std::optional<Instant> instant() const noexcept;

 private:
  std::string convert(const Field& field, std::string_view text, Value& value);
  std::string convert_number(const Field& field, std::string_view text, Value& value) const;
  std::string convert_time(const Field& field, std::string_view text, Value& value);
  [[nodiscard]] const std::string& zone_of(const Field& field) const;

  std::span<const Field> fields_;
  std::string zone_;
  std::map<std::string, std::string> zones_;
  std::vector<Value> values_;
};

}  // namespace kvingest::fetch
