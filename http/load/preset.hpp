// preset.hpp -- a source as data: what http/SOURCES.md describes, read from TOML and checked.
//
// A preset picks and parameterises what the engine knows; it holds no expressions. An unknown key is an error, because
// a mistyped limit is expensive.
//
// Threads: values; shared freely once read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/load/exact_number.hpp"
#include "http/load/outcome.hpp"
#include "kvingest/http_client.hpp"
#include "kvingest/result.hpp"

namespace kvingest::fetch {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// What a job may set.
struct Variable {
  std::string name;
  std::optional<std::string> fallback;
  std::vector<std::string> allowed;            ///< Empty: anything.
  std::map<std::string, std::string> spelled;  ///< How the source writes a value: { "1d" = "1440" }.
};

/// How the source reads the bounds of a window; jobs think in [from, to).
enum class Bounds : std::uint8_t { half_open, closed, none };

struct RequestForm {
  std::string url;
  NamedValues query;
  NamedValues headers;
  Bounds bounds = Bounds::none;
};

struct AuthForm {
  http::Auth::Kind kind = http::Auth::Kind::none;
  std::string name;
  std::string prefix;
  std::string secret;  ///< "env:NAME" or "file:PATH".
  bool optional = false;
};

struct LimitForm {
  http::OriginLimits limits;
  unsigned cost = 1;
};

struct WindowForm {
  std::map<std::string, std::int64_t> span_ns;      ///< The longest request, by interval; "*" for all others.
  std::map<std::string, std::int64_t> lookback_ns;  ///< How far back the source has anything, by interval.
  std::uint64_t buckets_max = 0;                    ///< Rows that fit into one answer.
  bool by_year = false;                             ///< A request holds a calendar year.
  std::uint64_t last_n_only = 0;                    ///< The source keeps so many buckets and no more.
};

struct PageForm {
  enum class Kind : std::uint8_t { none, time, url, cursor, offset };
  enum class Stop : std::uint8_t { short_page, empty };
  Kind kind = Kind::none;
  std::uint64_t size = 0;
  std::string at;     ///< JSON pointer, from the document, to the next URL or cursor.
  std::string param;  ///< Query parameter of cursor or offset.
  Stop stop = Stop::short_page;
  std::uint64_t pages_max = 1'000;
};

struct Condition {
  std::vector<int> statuses;  ///< 4 stands for 4xx.
  std::string type;           ///< Content-Type begins with it.
  std::string header;         ///< Is there.
  std::optional<std::string> starts;
  std::optional<std::string> body_has;
  std::optional<std::string> body_is;
  std::optional<std::string> at;       ///< JSON pointer that names something...
  std::optional<std::string> equals;   ///< ...which is this,
  std::optional<std::string> has;      ///< ...or contains this.
  std::optional<std::string> missing;  ///< JSON pointer that names nothing.
};

enum class Scope : std::uint8_t { item, origin };

struct Rule {
  Condition when;
  Outcome is = Outcome::bad_body;
  bool wait_from_header = false;  ///< Retry-After first.
  std::optional<http::Milliseconds> wait;
  std::string wait_next_day;  ///< Zone at whose midnight it is over.
  Scope scope = Scope::item;
  std::string message;  ///< JSON pointer to the source's own words.
  std::optional<bool> retry;
};

struct ExpectForm {
  std::vector<std::string> types;
  std::vector<std::string> first_lines;
  bool html = false;
};

struct DecodeForm {
  enum class Format : std::uint8_t { csv, json, ndjson };
  enum class Layout : std::uint8_t { objects, rows, columns, map, map2, wide };
  Format format = Format::json;
  Layout layout = Layout::objects;
  std::string root;
  std::vector<std::string> except;  ///< Members that `*` in the root passes over.
  std::string inner;                ///< map2: pointer from the outer member to the inner object.
  std::string names;                ///< rows: pointer to the names of the columns.
  std::uint64_t width = 0;
  char delimiter = ',';
  bool header = true;
  bool final_newline_required = false;
  std::vector<std::string> ids;  ///< wide: the columns that are not unpivoted.
};

struct Field {
  enum class As : std::uint8_t { text, decimal, integer, boolean, time, date };
  std::string name;
  std::vector<std::string> from;  ///< Names, pointers or indexes, tried in turn.
  std::string of;                 ///< date of the time field of this name.
  As as = As::text;
  std::int64_t unit_ns = 0;          ///< Numeric times count these.
  std::vector<std::string> formats;  ///< Textual times and dates.
  std::vector<std::string> nulls;
  NumberForm number;
  std::string scale;  ///< A field that holds the power of ten to multiply with.
  std::string zone;   ///< IANA, or where the body names it; empty: the preset's.
  bool required = false;
  bool optional = false;  ///< May be missing from the body.
  bool store = true;
};

struct CheckForm {
  enum class Order : std::uint8_t { any, ascending, descending };
  enum class Provisional : std::uint8_t { none, last };
  Order order = Order::any;
  std::vector<std::string> drop_when_null;
  Provisional provisional = Provisional::none;
  std::string provisional_after;  ///< A time field: a row whose time lies ahead is provisional.
  bool ohlc = false;
  std::int64_t future_ns = 0;  ///< Rows further ahead are refused; 0: not looked at.
  std::uint64_t rows_min = 0;
  bool sparse = false;   ///< Missing buckets are no gaps.
  std::string unit;      ///< Field that says what prices are in: a series keeps to one.
  std::string restated;  ///< Field whose change by one ratio says that history was rewritten.
};

struct KeyForm {
  enum class Duplicates : std::uint8_t { last, first, error };
  std::map<std::string, std::vector<std::string>> columns;  ///< By interval; "*" for all others.
  Duplicates duplicates = Duplicates::error;
};

/// A further set of records in the same body.
struct Extra {
  std::string record;
  DecodeForm decode;
  std::vector<Field> fields;
};

struct Example {
  int status = 200;
  http::Headers headers;
  std::string body;
  std::optional<Outcome> is;
  std::optional<std::uint64_t> rows;
  NamedValues first;  ///< Field and value of the first record in key order, as the record's JSON has it.
  std::map<std::string, std::uint64_t> extra;
  std::string symbol = "SYMBOL";
  std::string interval;  ///< Empty: the preset's default.
};

struct Preset {
  std::string name;
  std::string title;
  std::string record;
  std::vector<Variable> vars;
  RequestForm request;
  AuthForm auth;
  LimitForm limits;
  WindowForm window;
  PageForm page;
  std::vector<Rule> rules;
  ExpectForm expect;
  DecodeForm decode;
  std::vector<Field> fields;
  std::string zone = "UTC";
  KeyForm key;
  CheckForm check;
  std::vector<Extra> extras;
  std::vector<Example> examples;

  [[nodiscard]] const Variable* variable(std::string_view wanted) const noexcept;
  [[nodiscard]] const std::vector<std::string>& key_columns(std::string_view interval) const;
  /// "date:date,open:decimal,...": what its records hold.
  [[nodiscard]] std::string schema() const;
};

/// Reads a preset. `dir` is where files of its examples are. Fails with: invalid_argument, with line and key.
[[nodiscard]] Result<Preset> parse_preset(std::string_view text, const std::filesystem::path& dir);

/// A preset that is compiled in: its file's text.
struct BuiltinPreset {
  std::string_view name;
  std::string_view toml;
};
[[nodiscard]] std::span<const BuiltinPreset> builtin_presets() noexcept;

/// The preset of that name, or in that file where `name` ends in .toml. Fails with: invalid_argument (listing what
/// there is), io_error.
[[nodiscard]] Result<Preset> find_preset(const std::string& name);

}  // namespace kvingest::fetch
