#include "service/record_pages.hpp"

#include <charconv>
#include <cmath>
#include <memory>
#include <optional>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "record/field_reader.hpp"
#include "record/text_escape.hpp"

namespace kvingest {
namespace {

constexpr std::uint64_t kKeysDefault = 50;
constexpr std::uint64_t kKeysMax = 500;
constexpr std::uint64_t kPointsDefault = 1'000;
constexpr std::uint64_t kPointsMax = 5'000;
constexpr std::size_t kPreviewBytes = 200;                // Of a value in a list.
constexpr std::size_t kValueBytes = 256 << 10;            // Of a value shown alone.
constexpr std::size_t kReadBytes = std::size_t{8} << 20;  // A page is one view of the store, and must not be long.

constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kFailed = 500;

net::PageReply refusal(int status, std::string_view text) {
  JsonWriter json;
  json.begin_object().field("error", text).end_object();
  return {status, json.text() + "\n"};
}

net::PageReply refusal(const Error& error) {
  const bool asked_wrongly = error.code == Code::invalid_argument || error.code == Code::unsupported;
  return refusal(asked_wrongly ? kBadRequest : kFailed, error.text);
}

std::string parameter(const net::PageQuery& query, const char* name) {
  const auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

/// The first `bytes` of `text`, without a last character that would be cut in two.
std::string_view beginning(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto continues = [&text](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  std::size_t end = bytes;
  while (end > 0 && bytes - end < 4 && continues(end)) --end;
  return text.substr(0, continues(end) ? bytes : end);
}

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// `field` as a template names it, whatever it holds.
std::string in_template(const std::string& field) {
  if (field.starts_with('/')) return "{" + field + "}";
  std::string quoted = "{\"";
  for (const char c : field) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + "\"}";
}

/// Finds the number of a record: a field of the message, or the whole value.
class NumberReader {
 public:
  /// Fails with: invalid_argument (the records have no fields, or none of this name).
  static Result<std::unique_ptr<NumberReader>> make(const RecordPlan& plan, std::vector<std::string> columns,
                                                    const std::string& field) {
    auto reader = std::make_unique<NumberReader>();
    if (field.empty()) return reader;
    const bool csv = plan.format() == MessageFormat::csv;
    if (!plan.has_fields())
      return fail(Code::invalid_argument, "values of this store have no fields: leave field= out");
    if (csv && columns.empty())
      return fail(Code::invalid_argument, "the columns are not known before the first csv header came");
    RecordOptions options{.format = plan.format(), .value = in_template(field)};
    if (csv) {
      options.columns = std::move(columns);
      options.separator = std::string(1, plan.separator());
    }
    auto compiled = RecordPlan::compile(options);
    KV_TRY(compiled);
    reader->plan_ = std::move(*compiled);
    reader->fields_.resize(reader->plan_.fields().size());
    reader->reader_ = csv ? make_csv_reader(reader->plan_) : make_json_reader(reader->plan_);
    return reader;
  }

  std::optional<double> read(std::string_view value) {
    if (reader_ == nullptr) return number_of(value);
    if (value.empty() || reader_->read(value, fields_) != FieldReader::Found::fields) return std::nullopt;
    return number_of(fields_[plan_.value().parts()[0].field]);
  }

 private:
  RecordPlan plan_;
  std::unique_ptr<FieldReader> reader_;  // Refers to plan_.
  std::vector<std::string_view> fields_;
};

}  // namespace

/// Where a list begins and ends.
struct RecordPages::Asked {
  std::string prefix;
  std::string first;
  std::uint64_t limit = 0;
};

std::string RecordPages::key_text(std::string_view key) const {
  std::string text;
  append_key_text(text, key, seq_keys_);
  return text;
}

Result<RecordPages::Asked> RecordPages::read(const net::PageQuery& query, std::uint64_t limit,
                                             std::uint64_t limit_max) const {
  Asked asked{.limit = limit};
  if (const std::string text = parameter(query, "limit"); !text.empty()) {
    const auto wanted = parse_count(text, 1, limit_max);
    if (!wanted) return fail(wanted.error(), "limit");
    asked.limit = *wanted;
  }
  if (const std::string text = parameter(query, "prefix"); !text.empty()) {
    if (seq_keys_)
      return fail(Code::invalid_argument, "prefix: the keys of this store are arrival numbers; say from=NUMBER");
    auto prefix = unescaped(text);
    if (!prefix) return fail(prefix.error(), "prefix");
    asked.prefix = *std::move(prefix);
  }
  asked.first = asked.prefix;
  for (const char* const name : {"from", "after"}) {
    const std::string text = parameter(query, name);
    if (text.empty()) continue;
    auto key = key_from_text(text, seq_keys_);
    if (!key) return fail(key.error(), "{}", name);
    if (std::string_view(name) == "after") *key += '\0';  // The next key that there can be.
    asked.first = std::max(asked.first, *std::move(key));
  }
  return asked;
}

net::PageReply RecordPages::keys(const net::PageQuery& query) const {
  const auto asked = read(query, kKeysDefault, kKeysMax);
  if (!asked) return refusal(asked.error());
  JsonWriter json;
  json.begin_object().key("keys").begin_array();
  std::uint64_t rows = 0;
  std::size_t bytes = 0;
  bool more = false;
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(asked->prefix)) return false;
    more = rows == asked->limit || bytes > kReadBytes;
    if (more) return false;
    const std::string_view preview = beginning(value, kPreviewBytes);
    json.begin_object().field("key", key_text(key)).field("bytes", value.size());
    json.field("value", escaped(preview)).field("cut", preview.size() < value.size()).end_object();
    bytes += value.size();
    ++rows;
    return true;
  };
  const auto done = store_->scan({.first = asked->first, .limit = asked->limit + 1}, visit);
  if (!done) return refusal(done.error());
  json.end_array().field("more", more).end_object();
  return {.json = json.text() + "\n"};
}

net::PageReply RecordPages::value(const net::PageQuery& query) const {
  const std::string text = parameter(query, "key");
  const auto key = key_from_text(text, seq_keys_);
  if (!key) return refusal(kBadRequest, "key: " + key.error().text);
  if (key->empty() || key->size() > kKeyBytesMax)
    return refusal(kBadRequest, fmt::format("key: a key has 1 to {} bytes", kKeyBytesMax));
  JsonWriter json;
  const auto found = store_->get(*key, [&](std::string_view value) {
    const std::string_view shown = beginning(value, kValueBytes);
    json.begin_object().field("key", key_text(*key)).field("bytes", value.size());
    json.field("value", escaped(shown)).field("cut", shown.size() < value.size()).end_object();
  });
  if (!found) return refusal(found.error());
  if (!*found) return refusal(kNotFound, "there is no record under " + key_text(*key));
  return {.json = json.text() + "\n"};
}

net::PageReply RecordPages::series(const net::PageQuery& query) const {
  const auto asked = read(query, kPointsDefault, kPointsMax);
  if (!asked) return refusal(asked.error());
  const std::string field = parameter(query, "field");
  const auto reader = NumberReader::make(*plan_, columns_->columns(), field);
  if (!reader) return refusal(kBadRequest, "field: " + reader.error().text);
  JsonWriter json;
  json.begin_object().field("field", field).key("points").begin_array();
  std::uint64_t rows = 0;
  std::uint64_t skipped = 0;
  std::size_t bytes = 0;
  bool more = false;
  std::string last;
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(asked->prefix)) return false;
    more = rows == asked->limit || bytes > kReadBytes;
    if (more) return false;
    if (const auto number = (*reader)->read(value))
      json.begin_object().field("key", key_text(key)).field("value", *number).end_object();
    else
      ++skipped;
    last = key;
    bytes += value.size();
    ++rows;
    return true;
  };
  const auto done = store_->scan({.first = asked->first, .limit = asked->limit + 1}, visit);
  if (!done) return refusal(done.error());
  json.end_array()
      .field("skipped", skipped)
      .field("more", more)
      .field("last", last.empty() ? "" : key_text(last))
      .end_object();
  return {.json = json.text() + "\n"};
}

}  // namespace kvingest
