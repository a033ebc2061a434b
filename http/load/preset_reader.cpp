// The preset format, section by section. What the sections mean is in http/SOURCES.md.
#include <algorithm>

#include "base/posix.hpp"
#include "base/quantity.hpp"
#include "http/load/preset.hpp"
#include "http/load/preset_parts.hpp"
#include "http/load/time_text.hpp"
#include "http/load/toml_reader.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::size_t kExampleBytesMax = std::size_t{16} << 20;

Result<void> read_variable(const toml::table& table, const std::string& name, Variable& variable) {
  TableReader reader(table, "vars." + name);
  NamedValues spelled;
  variable.name = name;
  reader.text("default", &variable.fallback);
  reader.texts("allowed", &variable.allowed);
  reader.pairs("spelled", &spelled);
  variable.spelled = {spelled.begin(), spelled.end()};
  const auto is_allowed = [&](const std::string& value) {
    return variable.allowed.empty() || std::ranges::find(variable.allowed, value) != variable.allowed.end();
  };
  if (variable.fallback && !is_allowed(*variable.fallback)) reader.mistake("default", "is not among those allowed");
  for (const auto& [value, text] : spelled) {
    if (!is_allowed(value)) reader.mistake("spelled", fmt::format("'{}' is not among those allowed", value));
  }
  return reader.finish();
}

Result<void> read_request(const toml::table& table, RequestForm& form) {
  TableReader reader(table, "request");
  reader.text("url", &form.url);
  reader.pairs("query", &form.query);
  reader.pairs("headers", &form.headers);
  reader.word("bounds", &form.bounds, {{"[)", Bounds::half_open}, {"[]", Bounds::closed}, {"none", Bounds::none}});
  if (form.url.empty()) reader.mistake("url", "is missing");
  return reader.finish();
}

Result<void> read_auth(const toml::table& table, AuthForm& form) {
  using Kind = http::Auth::Kind;
  TableReader reader(table, "auth");
  reader.word("kind", &form.kind,
              {{"none", Kind::none}, {"query", Kind::query}, {"header", Kind::header}, {"bearer", Kind::bearer}});
  reader.text("name", &form.name);
  reader.text("prefix", &form.prefix);
  reader.text("secret", &form.secret);
  reader.flag("optional", &form.optional);
  const bool named = form.kind == Kind::query || form.kind == Kind::header;
  if (named && form.name.empty()) reader.mistake("name", "is missing");
  if (form.kind != Kind::none && !form.secret.starts_with("env:") && !form.secret.starts_with("file:")) {
    reader.mistake("secret", "say where it is: env:NAME or file:PATH; never the secret itself");
  }
  return reader.finish();
}

Result<void> read_limits(const toml::table& table, LimitForm& form) {
  TableReader reader(table, "limits");
  std::vector<std::string> rates;
  std::vector<std::string> quotas;
  reader.texts("rate", &rates);
  reader.texts("quota", &quotas);
  for (const std::string& text : rates) {
    auto rate = http::parse_rate(text);
    if (!rate) {
      reader.mistake("rate", rate.error().text);
    } else {
      form.limits.rates.push_back(*rate);
    }
  }
  for (const std::string& text : quotas) {
    auto rate = http::parse_rate(text);
    if (!rate) {
      reader.mistake("quota", rate.error().text);
    } else {
      form.limits.quotas.push_back({.rate = *rate});
    }
  }
  reader.number("cost", &form.cost);
  reader.number("in_flight", &form.limits.in_flight);
  form.limits.connections = std::max(1U, form.limits.in_flight);
  reader.number("connections", &form.limits.connections);
  reader.parsed("spacing", &form.limits.spacing, parse_duration);
  std::string counts = "ip";  // What the source counts by; for people, since a session has one address and one key.
  reader.word("counts", &counts, {{"ip", std::string("ip")}, {"key", std::string("key")}});
  if (const toml::table* const used = reader.table("used_header")) {
    TableReader inner(*used, "limits.used_header");
    http::UsedHeader header;
    inner.text("name", &header.name);
    inner.number("budget", &header.budget);
    inner.real("slow_at", &header.slow_at);
    inner.real("stop_at", &header.stop_at);
    if (header.name.empty() || header.budget == 0) inner.mistake("name", "name and budget are needed");
    reader.adopt(inner.finish());
    form.limits.used_header = header;
  }
  return reader.finish();
}

void read_spans(TableReader& reader, std::string_view key, std::map<std::string, std::int64_t>& to) {
  NamedValues spans;
  reader.pairs(key, &spans);
  for (const auto& [interval, text] : spans) {
    const auto span = parse_span(text);
    if (!span || *span == 0) return reader.mistake(key, fmt::format("'{}' is no span", text));
    to[interval] = *span;
  }
}

Result<void> read_window(const toml::table& table, WindowForm& form) {
  TableReader reader(table, "window");
  read_spans(reader, "span", form.span_ns);
  read_spans(reader, "lookback", form.lookback_ns);
  reader.number("max_buckets", &form.buckets_max);
  reader.number("last_n_only", &form.last_n_only);
  reader.flag("by_year", &form.by_year);
  return reader.finish();
}

Result<void> read_page(const toml::table& table, PageForm& form) {
  using Kind = PageForm::Kind;
  TableReader reader(table, "page");
  reader.word("kind", &form.kind,
              {{"none", Kind::none},
               {"time", Kind::time},
               {"url", Kind::url},
               {"cursor", Kind::cursor},
               {"offset", Kind::offset}});
  reader.number("size", &form.size);
  reader.text("at", &form.at);
  reader.text("param", &form.param);
  reader.word("stop", &form.stop, {{"short_page", PageForm::Stop::short_page}, {"empty", PageForm::Stop::empty}});
  reader.number("max_pages", &form.pages_max);
  const bool sized = form.kind == Kind::time || form.kind == Kind::offset;
  if (sized && form.size == 0) reader.mistake("size", "is missing");
  if ((form.kind == Kind::url || form.kind == Kind::cursor) && form.at.empty()) reader.mistake("at", "is missing");
  if ((form.kind == Kind::cursor || form.kind == Kind::offset) && form.param.empty()) {
    reader.mistake("param", "is missing");
  }
  return reader.finish();
}

Result<void> read_expect(const toml::table& table, ExpectForm& form) {
  TableReader reader(table, "expect");
  reader.texts("type", &form.types);
  reader.texts("first_line", &form.first_lines);
  reader.word("html", &form.html, {{"reject", false}, {"accept", true}});
  return reader.finish();
}

Result<void> read_key(const toml::table& table, KeyForm& form) {
  using Duplicates = KeyForm::Duplicates;
  TableReader reader(table, "key");
  if (const toml::table* const columns = reader.table("columns")) {
    TableReader inner(*columns, "key.columns");
    for (const std::string& interval : keys_in_order(*columns)) inner.texts(interval, &form.columns[interval]);
    reader.adopt(inner.finish());
  }
  reader.word("duplicates", &form.duplicates,
              {{"last", Duplicates::last}, {"first", Duplicates::first}, {"error", Duplicates::error}});
  if (form.columns.empty()) reader.mistake("columns", "is missing");
  return reader.finish();
}

Result<void> read_check(const toml::table& table, CheckForm& form) {
  using Order = CheckForm::Order;
  TableReader reader(table, "check");
  reader.word("order", &form.order, {{"any", Order::any}, {"asc", Order::ascending}, {"desc", Order::descending}});
  reader.texts("drop_when_null", &form.drop_when_null);
  std::string provisional = "none";
  reader.text("provisional", &provisional);
  if (provisional == "last") {
    form.provisional = CheckForm::Provisional::last;
  } else if (provisional.ends_with(" > now")) {
    form.provisional_after = provisional.substr(0, provisional.size() - 6);
  } else if (provisional != "none") {
    reader.mistake("provisional", "none, last, or FIELD > now");
  }
  reader.flag("ohlc", &form.ohlc);
  reader.parsed("future", &form.future_ns, parse_span);
  reader.number("min_rows", &form.rows_min);
  reader.flag("sparse", &form.sparse);
  reader.text("unit", &form.unit);
  reader.text("restated", &form.restated);
  return reader.finish();
}

Result<void> read_extra(const toml::table& table, Extra& extra) {
  TableReader reader(table, "extra");
  reader.text("record", &extra.record);
  if (extra.record.empty()) reader.mistake("record", "is missing");
  reader.adopt(read_decode_keys(reader, "extra", extra.decode));
  if (const toml::table* const fields = reader.table("fields")) reader.adopt(read_fields(*fields, extra.fields));
  return reader.finish();
}

Result<void> read_example(const toml::table& table, const std::filesystem::path& dir, Example& example) {
  TableReader reader(table, "example");
  unsigned status = 200;
  std::string type;
  std::string file;
  NamedValues headers;
  reader.number("status", &status);
  reader.text("type", &type);
  reader.pairs("headers", &headers);
  reader.text("body", &example.body);
  reader.text("file", &file);
  reader.parsed("is", &example.is, parse_outcome_word);
  std::uint64_t rows = 0;
  reader.number("rows", &rows);
  if (reader.has("rows")) example.rows = rows;
  reader.pairs("first", &example.first);
  NamedValues extra;
  reader.pairs("extra", &extra);
  for (const auto& [record, count] : extra) {
    const auto number = parse_count(count);
    if (!number) reader.mistake("extra", number.error().text);
    example.extra[record] = number.value_or(0);
  }
  reader.text("symbol", &example.symbol);
  reader.text("interval", &example.interval);
  example.status = static_cast<int>(status);
  for (const auto& [name, value] : headers) example.headers.push_back({name, value});
  if (!type.empty()) example.headers.push_back({"Content-Type", type});
  if (!file.empty()) {
    auto body = read_file(Posix::real(), dir / file, kExampleBytesMax);
    if (!body) reader.mistake("file", body.error().text);
    example.body = body.value_or("");
  }
  return reader.finish();
}

template <class Form, class Read>
void section(TableReader& reader, std::string_view key, Form& form, Read read) {
  if (const toml::table* const table = reader.table(key)) reader.adopt(read(*table, form));
}

template <class Item, class Read>
void list(TableReader& reader, std::string_view key, std::vector<Item>& to, Read read) {
  const toml::array* const all = reader.tables(key);
  if (all == nullptr) return;
  for (const toml::node& one : *all) reader.adopt(read(*one.as_table(), to.emplace_back()));
}

}  // namespace

Result<Preset> parse_preset(std::string_view text, const std::filesystem::path& dir) {
  const auto table = parse_toml(text);
  KV_TRY(table);
  Preset preset;
  TableReader reader(*table, "");
  std::uint64_t version = 0;
  reader.number("preset", &version);
  if (version != 1) reader.mistake("preset", "1 is the version that is read here");
  reader.text("name", &preset.name);
  reader.text("title", &preset.title);
  reader.text("record", &preset.record);
  if (preset.name.empty() || preset.record.empty()) reader.mistake("name", "name and record are needed");
  if (const toml::table* const vars = reader.table("vars")) {
    for (const std::string& name : keys_in_order(*vars)) {
      const toml::table* const one = vars->get(name)->as_table();
      if (one == nullptr) {
        reader.mistake("vars", fmt::format("{}: a table is wanted", name));
        continue;
      }
      reader.adopt(read_variable(*one, name, preset.vars.emplace_back()));
    }
  }
  section(reader, "request", preset.request, read_request);
  section(reader, "auth", preset.auth, read_auth);
  section(reader, "limits", preset.limits, read_limits);
  section(reader, "window", preset.window, read_window);
  section(reader, "page", preset.page, read_page);
  list(reader, "verdict", preset.rules, read_rule);
  section(reader, "expect", preset.expect, read_expect);
  section(reader, "decode", preset.decode, read_decode);
  section(reader, "fields", preset.fields, read_fields);
  if (const toml::table* const time = reader.table("time")) {
    TableReader inner(*time, "time");
    inner.text("zone", &preset.zone);
    const bool from_body = preset.zone.starts_with('@') || preset.zone.starts_with('$');
    if (!from_body && !is_zone(preset.zone)) inner.mistake("zone", "is no IANA zone known here");
    reader.adopt(inner.finish());
  }
  section(reader, "key", preset.key, read_key);
  section(reader, "check", preset.check, read_check);
  list(reader, "extra", preset.extras, read_extra);
  list(reader, "example", preset.examples,
       [&](const toml::table& one, Example& example) { return read_example(one, dir, example); });
  const auto read = reader.finish();
  if (!read) return fail(read.error(), "preset {}", preset.name);
  const auto sound = check_preset(preset);
  if (!sound) return fail(sound.error(), "preset {}", preset.name);
  return preset;
}

}  // namespace kvingest::fetch
