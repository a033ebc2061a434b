#include "http/load/preset_parts.hpp"

#include <algorithm>
#include <array>

#include "base/quantity.hpp"
#include "http/load/time_text.hpp"
#include "http/load/url_template.hpp"

namespace kvingest::fetch {

Result<Outcome> parse_outcome_word(std::string_view word) {
  const auto outcome = parse_outcome(word);
  if (!outcome) return fail(Code::invalid_argument, "'{}' is no outcome", word);
  return *outcome;
}

// ---- Verdicts -------------------------------------------------------------------------------------------------------

namespace {

Result<void> read_statuses(const std::vector<std::string>& texts, std::vector<int>& to) {
  for (const std::string& text : texts) {
    const bool family = text.size() == 3 && text.ends_with("xx");
    const auto number = parse_count(family ? text.substr(0, 1) : text, family ? 1 : 100, family ? 5 : 999);
    if (!number) return fail(Code::invalid_argument, "'{}' is no status", text);
    to.push_back(static_cast<int>(*number));
  }
  return {};
}

Result<void> read_condition(const toml::table& table, Condition& when) {
  TableReader reader(table, "verdict.when");
  std::vector<std::string> statuses;
  reader.texts("status", &statuses);
  if (const auto read = read_statuses(statuses, when.statuses); !read) reader.mistake("status", read.error().text);
  reader.text("type", &when.type);
  reader.text("header", &when.header);
  reader.text("starts", &when.starts);
  reader.text("body_has", &when.body_has);
  reader.text("body_is", &when.body_is);
  reader.text("at", &when.at);
  reader.text("equals", &when.equals);
  reader.text("has", &when.has);
  reader.text("missing", &when.missing);
  if ((when.equals || when.has) && !when.at) reader.mistake("at", "says where; it is missing");
  return reader.finish();
}

/// "header:retry-after | 60s", "300s", "next_day:America/New_York".
Result<void> read_wait(std::string_view text, Rule& rule) {
  constexpr std::string_view kHeader = "header:retry-after";
  constexpr std::string_view kNextDay = "next_day:";
  if (text.starts_with(kHeader)) {
    rule.wait_from_header = true;
    text.remove_prefix(kHeader.size());
    if (text.empty()) return {};
    if (!text.starts_with(" | ")) return fail(Code::invalid_argument, "write `header:retry-after | 60s`");
    text.remove_prefix(3);
  }
  if (text.starts_with(kNextDay)) {
    rule.wait_next_day = text.substr(kNextDay.size());
    if (!is_zone(rule.wait_next_day)) return fail(Code::invalid_argument, "'{}' is no zone", rule.wait_next_day);
    return {};
  }
  const auto wait = parse_duration(text);
  KV_TRY(wait);
  rule.wait = *wait;
  return {};
}

}  // namespace

Result<void> read_rule(const toml::table& table, Rule& rule) {
  TableReader reader(table, "verdict");
  if (const toml::table* const when = reader.table("when")) {
    reader.adopt(read_condition(*when, rule.when));
  } else {
    reader.mistake("when", "is missing");
  }
  reader.parsed("is", &rule.is, parse_outcome_word);
  if (!reader.has("is")) reader.mistake("is", "is missing");
  std::string wait;
  reader.text("wait", &wait);
  if (!wait.empty()) {
    if (const auto read = read_wait(wait, rule); !read) reader.mistake("wait", read.error().text);
  }
  reader.word("scope", &rule.scope, {{"item", Scope::item}, {"origin", Scope::origin}, {"key", Scope::origin}});
  reader.text("message", &rule.message);
  bool retry = false;
  reader.flag("retry", &retry);
  if (reader.has("retry")) rule.retry = retry;
  return reader.finish();
}

// ---- Decoding -------------------------------------------------------------------------------------------------------

Result<void> read_decode_keys(TableReader& reader, const std::string& place, DecodeForm& form) {
  using Format = DecodeForm::Format;
  using Layout = DecodeForm::Layout;
  reader.word("format", &form.format, {{"csv", Format::csv}, {"json", Format::json}, {"ndjson", Format::ndjson}});
  reader.word("layout", &form.layout,
              {{"objects", Layout::objects},
               {"rows", Layout::rows},
               {"columns", Layout::columns},
               {"map", Layout::map},
               {"map2", Layout::map2},
               {"wide", Layout::wide}});
  reader.text("root", &form.root);
  reader.texts("except", &form.except);
  reader.text("inner", &form.inner);
  reader.text("names", &form.names);
  reader.number("width", &form.width);
  std::string delimiter = ",";
  reader.text("delimiter", &delimiter);
  if (delimiter.size() != 1) reader.mistake("delimiter", "is one byte");
  form.delimiter = delimiter.empty() ? ',' : delimiter[0];
  reader.flag("header", &form.header);
  reader.word("final_newline", &form.final_newline_required, {{"required", true}, {"optional", false}});
  reader.texts("ids", &form.ids);
  if (!form.root.empty() && !form.root.starts_with('/')) reader.mistake("root", place + ": a pointer begins with /");
  if (form.layout == Layout::wide && form.format != Format::csv) reader.mistake("layout", "wide is for csv");
  return {};
}

Result<void> read_decode(const toml::table& table, DecodeForm& form) {
  TableReader reader(table, "decode");
  reader.adopt(read_decode_keys(reader, "decode", form));
  return reader.finish();
}

namespace {

Result<std::int64_t> parse_unit(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
      {{"s", kNsPerSecond}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}, {"d", kNsPerDay}}};
  for (const auto& [name, ns] : kUnits) {
    if (name == text) return ns;
  }
  return fail(Code::invalid_argument, "'{}' is none of s, ms, us, ns, d", text);
}

Result<void> read_field(const toml::table& table, const std::string& name, Field& field) {
  using As = Field::As;
  TableReader reader(table, "fields." + name);
  field.name = name;
  reader.texts("from", &field.from);
  reader.text("of", &field.of);
  reader.word("as", &field.as,
              {{"text", As::text},
               {"decimal", As::decimal},
               {"int", As::integer},
               {"bool", As::boolean},
               {"time", As::time},
               {"date", As::date}});
  reader.parsed("unit", &field.unit_ns, parse_unit);
  reader.texts("format", &field.formats);
  reader.texts("null", &field.nulls);
  reader.text("strip", &field.number.strip);
  std::string decimal = ".";
  reader.text("decimal", &decimal);
  if (decimal.size() != 1) reader.mistake("decimal", "is one byte");
  field.number.decimal = decimal.empty() ? '.' : decimal[0];
  reader.flag("suffix", &field.number.suffixes);
  reader.text("scale", &field.scale);
  reader.text("zone", &field.zone);
  reader.flag("required", &field.required);
  reader.flag("optional", &field.optional);
  reader.flag("store", &field.store);
  const bool timed = field.as == As::time || field.as == As::date;
  if (field.of.empty() && field.from.empty()) reader.mistake("from", "is missing");
  if (!field.of.empty() && field.as != As::date) reader.mistake("of", "is for dates");
  if (timed && field.of.empty() && field.unit_ns == 0 && field.formats.empty()) {
    reader.mistake("format", "a time needs its format or unit");
  }
  const bool from_body = field.zone.starts_with('@') || field.zone.starts_with('$');
  if (!field.zone.empty() && !from_body && !is_zone(field.zone)) {
    reader.mistake("zone", "is no IANA zone known here");
  }
  return reader.finish();
}

}  // namespace

Result<void> read_fields(const toml::table& table, std::vector<Field>& fields) {
  for (const std::string& name : keys_in_order(table)) {
    const toml::table* const one = table.get(name)->as_table();
    if (one == nullptr) return fail(Code::invalid_argument, "fields.{}: a table is wanted", name);
    KV_TRY(read_field(*one, name, fields.emplace_back()));
  }
  return {};
}

// ---- What no section can see alone
// ------------------------------------------------------------------------------------

namespace {

const Field* field_named(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

Result<void> check_fields(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (!field.of.empty()) {
      const Field* const time = field_named(fields, field.of);
      if (time == nullptr || time->as != Field::As::time || time >= &field) {
        return fail(Code::invalid_argument, "fields.{}: of: '{}' is no time field before it", field.name, field.of);
      }
    }
    const Field* const scale = field.scale.empty() ? nullptr : field_named(fields, field.scale);
    if (!field.scale.empty() && (scale == nullptr || scale >= &field)) {
      return fail(Code::invalid_argument, "fields.{}: scale: '{}' is no field before it", field.name, field.scale);
    }
  }
  return {};
}

Result<void> check_names(const Preset& preset, const std::vector<std::string>& names, std::string_view place) {
  for (const std::string& name : names) {
    if (name != "symbol" && name != "interval" && field_named(preset.fields, name) == nullptr) {
      return fail(Code::invalid_argument, "{}: '{}' is no field", place, name);
    }
  }
  return {};
}

}  // namespace

Result<void> check_preset(const Preset& preset) {
  if (preset.fields.empty()) return fail(Code::invalid_argument, "[fields] is missing");
  KV_TRY(check_fields(preset.fields));
  for (const Extra& extra : preset.extras) KV_TRY(check_fields(extra.fields));
  for (const auto& [interval, columns] : preset.key.columns) KV_TRY(check_names(preset, columns, "key.columns"));
  KV_TRY(check_names(preset, preset.check.drop_when_null, "check.drop_when_null"));
  if (!preset.check.unit.empty()) KV_TRY(check_names(preset, {preset.check.unit}, "check.unit"));
  if (!preset.check.restated.empty()) KV_TRY(check_names(preset, {preset.check.restated}, "check.restated"));
  if (!preset.check.provisional_after.empty()) {
    KV_TRY(check_names(preset, {preset.check.provisional_after}, "check.provisional"));
  }
  KV_TRY(check_template(preset, preset.request.url));
  for (const auto& [name, value] : preset.request.query) KV_TRY(check_template(preset, value));
  for (const auto& [name, value] : preset.request.headers) KV_TRY(check_template(preset, value));
  const bool every = preset.key.columns.contains("*");
  const Variable* const interval = preset.variable("interval");
  if (every || interval == nullptr) {
    return every ? Result<void>() : fail(Code::invalid_argument, "key.columns: \"*\" is missing");
  }
  for (const std::string& one : interval->allowed) {
    if (!preset.key.columns.contains(one)) return fail(Code::invalid_argument, "key.columns: '{}' is missing", one);
  }
  return {};
}

}  // namespace kvingest::fetch
