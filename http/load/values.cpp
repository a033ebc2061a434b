#include "http/load/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_writer.hpp"

namespace kvingest::fetch {
namespace {

constexpr Instant kNumericTimeMax = 4'102'444'800 * kNsPerSecond;  // 2100: seconds taken for ms are far below it.
constexpr Instant kNumericTimeMin = 0;

std::string shown(std::string_view text) {
  return std::string(text.substr(0, 60));
}

}  // namespace

void append_member(std::string& to, std::string_view name, const Value& value) {
  if (value.kind == Value::Kind::missing) return;
  if (!to.ends_with('{')) to += ',';
  append_json_string(to, name);
  to += ':';
  switch (value.kind) {
    case Value::Kind::missing:
    case Value::Kind::null:
      to += "null";
      break;
    case Value::Kind::number:
    case Value::Kind::boolean:
      to += value.text;
      break;
    case Value::Kind::text:
    case Value::Kind::time:
    case Value::Kind::date:
      append_json_string(to, value.text);
  }
}

RowValues::RowValues(std::span<const Field> fields, std::string zone, std::map<std::string, std::string> zones)
    : fields_(fields), zone_(std::move(zone)), zones_(std::move(zones)), values_(fields.size()) {}

const Value* RowValues::named(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return &values_[i];
  }
  return nullptr;
}

std::optional<Instant> RowValues::instant() const noexcept {
  for (const Value& value : values_) {
    if (value.kind == Value::Kind::time) return value.ticks;
  }
  for (const Value& value : values_) {
    if (value.kind == Value::Kind::date) return value.ticks * kNsPerDay;
  }
  return std::nullopt;
}

const std::string& RowValues::zone_of(const Field& field) const {
  const std::string& wanted = field.zone.empty() ? zone_ : field.zone;
  const auto found = zones_.find(wanted);
  return found == zones_.end() ? wanted : found->second;
}

std::string RowValues::take(std::span<const Cell> cells) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    Value& value = values_[i];
    value.kind = Value::Kind::missing;
    value.text.clear();
    if (!field.of.empty()) {
      const Value& time = *named(field.of);
      if (time.kind != Value::Kind::time) continue;
      const auto day = day_in_zone(time.ticks, zone_of(field));
      if (!day) return fmt::format("{}: zone '{}' is not known here", field.name, zone_of(field));
      value = {Value::Kind::date, format_day(*day), *day};
      continue;
    }
    const Cell& cell = cells[i];
    const bool null = cell.kind == Cell::Kind::null ||
                      (cell.kind == Cell::Kind::value &&
                       (cell.text.empty() || std::ranges::find(field.nulls, cell.text) != field.nulls.end()));
    if (cell.kind == Cell::Kind::missing || null) {
      if (field.required) return fmt::format("{} is missing", field.name);
      if (null) value.kind = Value::Kind::null;
      continue;
    }
    if (std::string wrong = convert(field, cell.text, value); !wrong.empty()) return wrong;
  }
  return {};
}

std::string RowValues::convert(const Field& field, std::string_view text, Value& value) {
  switch (field.as) {
    case Field::As::text:
      value.kind = Value::Kind::text;
      value.text = text;
      return {};
    case Field::As::boolean:
      if (text != "true" && text != "false")
        return fmt::format("{}: '{}' is neither true nor false", field.name, shown(text));
      value.kind = Value::Kind::boolean;
      value.text = text;
      return {};
    case Field::As::decimal:
    case Field::As::integer:
      return convert_number(field, text, value);
    case Field::As::time:
    case Field::As::date:
      return convert_time(field, text, value);
  }
  return {};
}

std::string RowValues::convert_number(const Field& field, std::string_view text, Value& value) const {
  auto number = exact_number(text, field.number);
  if (number && !field.scale.empty()) {
    const Value& power = *named(field.scale);
    int places = 0;
    std::from_chars(power.text.data(), power.text.data() + power.text.size(), places);
    number = shifted(*number, places);
  }
  if (number && field.as == Field::As::integer) number = whole_number(*number);
  if (!number) {
    return fmt::format("{}: '{}' is no {}", field.name, shown(text),
                       field.as == Field::As::integer ? "whole number" : "number");
  }
  value.kind = Value::Kind::number;
  value.text = *std::move(number);
  return {};
}

std::string RowValues::convert_time(const Field& field, std::string_view text, Value& value) {
  Instant instant = 0;
  if (field.unit_ns != 0) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    if (!whole || count < kNumericTimeMin || count > kNumericTimeMax / field.unit_ns) {
      return fmt::format("{}: '{}' is no time in the unit of this source (1970 to 2100)", field.name, shown(text));
    }
    instant = count * field.unit_ns;
  } else {
    const auto local = parse_time(text, field.formats);
    if (!local)
      return fmt::format("{}: '{}' is not written as {}", field.name, shown(text), fmt::join(field.formats, " or "));
    if (field.as == Field::As::date) {
      const Day day = day_of(local->ns);
      value = {Value::Kind::date, format_day(day), day};
      return {};
    }
    const auto found = instant_of(*local, zone_of(field));
    if (!found) return fmt::format("{}: zone '{}' is not known here", field.name, zone_of(field));
    instant = *found;
  }
  if (field.as == Field::As::date) {
    const auto day = day_in_zone(instant, zone_of(field));
    if (!day) return fmt::format("{}: zone '{}' is not known here", field.name, zone_of(field));
    value = {Value::Kind::date, format_day(*day), *day};
  } else {
    value = {Value::Kind::time, format_instant(instant), instant};
  }
  return {};
}

}  // namespace kvingest::fetch
