#include "http/load/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.hpp"
#include "http/load/cells.hpp"
#include "http/load/exact_number.hpp"
#include "http/load/values.hpp"
#include "kvingest/limits.hpp"

namespace kvingest::fetch {
namespace {

/// Collects the records of one set.
class Collector {
 public:
  Collector(const Preset& preset, const DecodeContext& context, Decoded& to)
      : preset_(preset), context_(context), to_(to) {}

  /// A row of the main set. Returns what is wrong with it.
  std::string add(const RowValues& row) {
    ++to_.rows;
    if (drops(row)) {
      ++to_.oddities.nulls_dropped;
      return {};
    }
    const auto time = row.instant();
    if (time) {
      note_time(*time);
      if (preset_.check.future_ns != 0 && *time > context_.now + preset_.check.future_ns) {
        ++to_.oddities.future;
        return {};
      }
      if (!in_window(row, *time)) {
        ++to_.oddities.outside;
        return {};
      }
    }
    Record record;
    record.time = time.value_or(0);
    record.day = day_of(record.time);
    for (const Value& value : row.values()) {
      if (value.kind == Value::Kind::date) record.day = value.ticks;
    }
    record.key = context_.source;
    for (const std::string& column : preset_.key_columns(context_.interval)) {
      const std::string part = part_of_key(row, column);
      if (part.empty()) return fmt::format("{} is empty, and the key needs it", column);
      record.key += "/" + part;
    }
    if (record.key.size() > kKeyBytesMax) return fmt::format("the key has {} bytes", record.key.size());
    record.provisional = is_provisional(row);
    if (preset_.check.ohlc && !is_ohlc(row)) ++to_.oddities.bad_ohlc;
    if (!preset_.check.unit.empty()) note_unit(row);
    record.json = json_of(row, preset_.fields, {}, record.provisional);
    to_.records.push_back(std::move(record));
    return {};
  }

  std::string add_extra(const RowValues& row, const Extra& extra, std::vector<Record>& to) const {
    const auto time = row.instant();
    if (!time) return fmt::format("{} has no time", extra.record);
    if (*time < context_.from || *time >= context_.to) return {};
    Record record;
    record.time = *time;
    record.key = fmt::format("{}/{}/{}/{}", context_.source, key_part(context_.symbol), extra.record, time_part(row));
    record.json = json_of(row, extra.fields, extra.record, false);
    to.push_back(std::move(record));
    return {};
  }

  /// The provisional last row, order, duplicates. Returns what is wrong.
  std::string finish() {
    auto& records = to_.records;
    check_order();
    mark_last_provisional();
    std::ranges::stable_sort(records, {}, &Record::key);
    std::vector<Record> unique;
    unique.reserve(records.size());
    for (Record& record : records) {
      if (unique.empty() || unique.back().key != record.key) {
        unique.push_back(std::move(record));
        continue;
      }
      if (unique.back().json != record.json) {
        if (preset_.key.duplicates == KeyForm::Duplicates::error) return fmt::format("two rows for {}", record.key);
        ++to_.oddities.duplicates;
        if (preset_.key.duplicates == KeyForm::Duplicates::last) unique.back() = std::move(record);
      }
    }
    records = std::move(unique);
    for (const Record& record : records) to_.oddities.provisional += record.provisional ? 1 : 0;
    return {};
  }

 private:
  void note_time(Instant time) {
    to_.first_time = seen_ ? std::min(to_.first_time, time) : time;
    to_.last_time = seen_ ? std::max(to_.last_time, time) : time;
    seen_ = true;
  }

  bool drops(const RowValues& row) const {
    const auto& names = preset_.check.drop_when_null;
    return !names.empty() &&
           std::ranges::all_of(names, [&](const std::string& name) { return row.named(name)->is_nothing(); });
  }

  /// Where the source is not asked for a window, what its rows are dated counts; else their instant, which it was
  /// asked for.
  bool in_window(const RowValues& row, Instant time) const {
    if (preset_.request.bounds == Bounds::none) {
      for (const Value& value : row.values()) {
        if (value.kind == Value::Kind::date) time = value.ticks * kNsPerDay;
      }
    }
    return time >= context_.from && time < context_.to;
  }

  std::string part_of_key(const RowValues& row, const std::string& column) const {
    if (column == "symbol") return key_part(context_.symbol);
    if (column == "interval") return key_part(context_.interval);
    const Value* const value = row.named(column);
    if (value != nullptr && !value->is_nothing()) return key_part(value->text);
    const auto field = std::ranges::find(preset_.fields, column, &Field::name);
    return field != preset_.fields.end() && field->optional ? "-" : "";
  }

  void note_unit(const RowValues& row) {
    const Value* const unit = row.named(preset_.check.unit);
    if (unit == nullptr || unit->is_nothing() || unit->text == to_.unit) return;
    (to_.unit.empty() ? to_.unit : to_.other_unit) = unit->text;
  }

  static std::string time_part(const RowValues& row) {
    for (const auto kind : {Value::Kind::date, Value::Kind::time}) {
      for (const Value& value : row.values()) {
        if (value.kind == kind) return value.text;
      }
    }
    return {};
  }

  bool is_provisional(const RowValues& row) const {
    const Value* const until =
        preset_.check.provisional_after.empty() ? nullptr : row.named(preset_.check.provisional_after);
    return until != nullptr && until->kind == Value::Kind::time && until->ticks > context_.now;
  }

  /// The last bar of a body is provisional while its interval is not over.
  void mark_last_provisional() {
    if (preset_.check.provisional != CheckForm::Provisional::last || to_.records.empty()) return;
    Record& last = *std::ranges::max_element(to_.records, {}, &Record::time);
    const std::int64_t length = interval_ns(context_.interval).value_or(kNsPerDay);
    if (last.time + length <= context_.now) return;
    last.provisional = true;
    last.json.insert(last.json.size() - 1, ",\"provisional\":true");
  }

  void check_order() {
    const auto order = preset_.check.order;
    if (order == CheckForm::Order::any) return;
    const auto& records = to_.records;
    for (std::size_t i = 1; i < records.size(); ++i) {
      const bool rises = records[i].time > records[i - 1].time;
      const bool falls = records[i].time < records[i - 1].time;
      if (order == CheckForm::Order::ascending ? falls : rises) ++to_.oddities.out_of_order;
    }
  }

  static bool is_ohlc(const RowValues& row) {
    const auto number = [&](std::string_view name) {
      const Value* const value = row.named(name);
      return value == nullptr || value->kind != Value::Kind::number ? std::nan("") : approximate(value->text);
    };
    const double high = number("high");
    const double low = number("low");
    // A comparison with a value that is not there is false.
    return !(high < low) && !(number("open") > high) && !(number("close") > high) && !(number("open") < low) &&
           !(number("close") < low);
  }

  std::string json_of(const RowValues& row, std::span<const Field> fields, const std::string& record,
                      bool provisional) const {
    std::string json = "{";
    const auto text = [&](std::string_view name, const std::string& value) {
      if (!value.empty()) append_member(json, name, {Value::Kind::text, value, 0});
    };
    text("source", context_.source);
    text("symbol", context_.symbol);
    text("interval", record.empty() ? context_.interval : record);  // As their keys tell them apart.
    text("record", record);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].store) append_member(json, fields[i].name, row.values()[i]);
    }
    if (provisional) json += ",\"provisional\":true";
    return json + "}";
  }

  const Preset& preset_;
  const DecodeContext& context_;
  Decoded& to_;
  bool seen_ = false;
};

/// The zones that fields or the preset take from the body, by their reference.
std::map<std::string, std::string> zones_in(BodyReader& body, const DecodeForm& form, const Preset& preset,
                                            std::span<const Field> fields) {
  std::map<std::string, std::string> zones;
  const auto add = [&](const std::string& reference) {
    if (reference.starts_with('@') || reference.starts_with('$')) zones[reference] = body.constant(form, reference);
  };
  add(preset.zone);
  for (const Field& field : fields) add(field.zone);
  return zones;
}

BodyProblem read_set(BodyReader& body, const DecodeForm& form, const Preset& preset, std::span<const Field> fields,
                     bool optional, FunctionRef<std::string(const RowValues& row)> add) {
  RowValues values(fields, preset.zone, zones_in(body, form, preset, fields));
  return body.read(form, fields, optional, [&](std::span<const Cell> cells, std::size_t row) -> BodyProblem {
    std::string wrong = values.take(cells);
    if (wrong.empty()) wrong = add(values);
    if (wrong.empty()) return {};
    return {Outcome::bad_body,
            fmt::format("{} {}: {}", form.format == DecodeForm::Format::json ? "row" : "line", row, wrong)};
  });
}

}  // namespace

Oddities& Oddities::operator+=(const Oddities& other) noexcept {
  nulls_dropped += other.nulls_dropped;
  outside += other.outside;
  duplicates += other.duplicates;
  future += other.future;
  out_of_order += other.out_of_order;
  bad_ohlc += other.bad_ohlc;
  provisional += other.provisional;
  return *this;
}

std::string key_part(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string part;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '%' || byte < 0x20 || byte == 0x7F) {
      part += '%';
      part += kDigits[byte >> 4];
      part += kDigits[byte & 15];
    } else {
      part += c;
    }
  }
  return part;
}

Decoded decode(const Preset& preset, std::string_view body, const DecodeContext& context) {
  Decoded decoded;
  BodyReader reader(body, context.whole);
  Collector collector(preset, context, decoded);
  BodyProblem problem = read_set(reader, preset.decode, preset, preset.fields, false,
                                 [&](const RowValues& row) { return collector.add(row); });
  if (problem.outcome == Outcome::ok) {
    if (std::string wrong = collector.finish(); !wrong.empty()) problem = {Outcome::bad_body, std::move(wrong)};
  }
  for (const Extra& extra : preset.extras) {
    if (problem.outcome != Outcome::ok) break;
    auto& records = decoded.extras.emplace_back(extra.record, std::vector<Record>()).second;
    problem = read_set(reader, extra.decode, preset, extra.fields, true,
                       [&](const RowValues& row) { return collector.add_extra(row, extra, records); });
  }
  if (problem.outcome != Outcome::ok) {
    Decoded failed;
    failed.outcome = problem.outcome;
    failed.problem = std::move(problem.text);
    return failed;
  }
  if (!preset.page.at.empty()) decoded.next = reader.constant(preset.decode, "$" + preset.page.at);
  if (decoded.records.empty()) decoded.outcome = Outcome::empty;
  return decoded;
}

}  // namespace kvingest::fetch
