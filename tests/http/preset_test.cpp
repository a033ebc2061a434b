// Presets: what is read, what is refused, and that each of ours proves itself.
#include <set>

#include "http/load/judge.hpp"
#include "http/load/preset.hpp"
#include "http/load/preset_check.hpp"
#include "http/load/url_template.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expect.hpp"

namespace kvingest::fetch {
namespace {

using test::contains_text;
using test::text_of;

constexpr std::string_view kSmall = R"(
preset = 1
name = "small"
record = "bar"
[vars]
interval = { default = "1d", allowed = ["1d", "1h"], spelled = { "1d" = "day/1" } }
[request]
url = "https://{host}/{interval}/{symbol}"
query = { a = "{from:s}", b = "{to:date}", z = "{symbol}" }
bounds = "[]"
[decode]
format = "csv"
[fields]
date = { from = "Date", as = "date", format = "%Y-%m-%d", required = true }
close = { from = "Close", as = "decimal" }
[key]
columns = { "*" = ["symbol", "interval", "date"] }
)";

std::string small_with(std::string_view old_text, std::string_view new_text) {
  std::string text(kSmall);
  text.replace(text.find("{host}"), 6, "example.com");
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old_text.size(), new_text);
}

TEST_CASE("http preset: each of ours proves itself against its own examples") {
  std::set<std::string> names;
  for (const BuiltinPreset& one : builtin_presets()) {
    INFO(one.name);
    const auto preset = parse_preset(one.toml, {});
    REQUIRE_OK(preset);
    CHECK(preset->name == one.name);
    CHECK_FALSE(preset->title.empty());
    const PresetProof proof = prove(*preset);
    for (const std::string& failure : proof.failures) FAIL_CHECK(failure);
    names.insert(preset->name);
  }
  for (const char* name :
       {"yahoo-chart", "alphavantage-daily", "stooq-daily", "fred-observations", "fred-csv", "binance-klines",
        "coinbase-candles", "kraken-ohlc", "ecb-exr", "frankfurter", "polygon-aggs"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
}

TEST_CASE("http preset: a preset that shows too little fails its check, and so does one that is wrong") {
  std::string text = small_with("record", "record");
  auto preset = parse_preset(text, {});
  REQUIRE_OK(preset);
  CHECK(prove(*preset).failures.size() == 4);
  text += "\n[[example]]\nbody = \"Date,Close\\n2024-01-02,1.50\\n\"\nrows = 2\nfirst = { close = \"1.5\" }\n";
  preset = parse_preset(text, {});
  REQUIRE_OK(preset);
  const auto failures = prove(*preset).failures;
  REQUIRE(failures.size() == 5);
  CHECK_THAT(failures[0], contains_text("1 records instead of 2"));
  CHECK_THAT(failures[1], contains_text("close is not '1.5'"));
}

TEST_CASE("http preset: what is mistyped or missing is named with its line") {
  struct Case {
    const char* old_text;
    const char* new_text;
    const char* says;
  };
  for (const Case& one :
       {Case{"bounds = \"[]\"", "bonds = \"[]\"", "is bounds meant"},
        Case{"bounds = \"[]\"", "bounds = \"[x\"", "none of"}, Case{"{symbol}", "{symbl}", "{symbl}"},
        Case{"preset = 1", "preset = 2", "preset"}, Case{"format = \"csv\"", "format = \"xml\"", "xml"},
        Case{"as = \"decimal\"", "as = \"float\"", "float"},
        Case{"[\"symbol\", \"interval\", \"date\"]", "[\"symbol\", \"day\"]", "'day' is no field"},
        Case{"format = \"%Y-%m-%d\",", "", "format or unit"},
        Case{"default = \"1d\"", "default = \"1w\"", "not among those allowed"}, Case{"record = \"bar\"", "", "record"},
        Case{"[decode]", "[limits]\nrate = [\"5 per minute\"]\n[decode]", "5/1m"},
        Case{"[decode]", "[auth]\nkind = \"bearer\"\nsecret = \"abc\"\n[decode]", "env:NAME"},
        Case{"[decode]", "[check]\nunit = \"currency\"\n[decode]", "check.unit"},
        Case{"[decode]", "[time]\nzone = \"Mars/Olympus\"\n[decode]", "zone"},
        Case{"[decode]", "[[verdict]]\nis = \"ok\"\n[decode]", "when"},
        Case{"[decode]", "[[verdict]]\nwhen = { staus = 1 }\nis = \"ok\"\n[decode]", "is status meant"},
        Case{"preset = 1", "preset = = 1", "line 2"}}) {
    INFO(one.new_text);
    const auto preset = parse_preset(small_with(one.old_text, one.new_text), {});
    CHECK_CODE(preset, Code::invalid_argument);
    CHECK_THAT(text_of(preset), contains_text(one.says));
  }
  CHECK_THAT(text_of(find_preset("yahoo-chat")), contains_text("yahoo-chart"));
}

TEST_CASE("http preset: a request is filled in, a closed bound one unit before the window's end") {
  const auto preset = parse_preset(small_with("record", "record"), {});
  REQUIRE_OK(preset);
  Filling filling{
      .symbol = "A/B C", .vars = {{"interval", "1d"}}, .from = 0, .to = 2 * kNsPerDay, .bounds = Bounds::closed};
  CHECK(filled(*preset, preset->request.url, filling, true).value() == "https://example.com/day/1/A%2FB%20C");
  CHECK(filled(*preset, "{from:s}|{to:s}|{to:ms}|{to:date}|{to:ymd}|{from:iso}|{from:year}", filling, false).value() ==
        "0|172799|172799999|1970-01-02|19700102|1970-01-01T00:00:00Z|1970");
  filling.bounds = Bounds::half_open;
  CHECK(filled(*preset, "{to:date}", filling, false).value() == "1970-01-03");
}

TEST_CASE("http preset: verdicts are tried in order, and status 200 proves nothing") {
  const auto preset = find_preset("alphavantage-daily");
  REQUIRE_OK(preset);
  const auto note = judge(*preset, 200, {}, R"({"Note": "5 calls per minute"})");
  CHECK(note.outcome == Outcome::rate_limited);
  CHECK(note.scope == Scope::origin);
  CHECK(note.wait == std::chrono::seconds(60));
  CHECK(note.message == "5 calls per minute");
  CHECK(judge(*preset, 200, {}, R"({"Information": "x per day x premium endpoint"})").outcome == Outcome::plan);
  CHECK(judge(*preset, 500, {}, "oops").outcome == Outcome::server);
  CHECK(judge(*preset, 403, {}, "no").outcome == Outcome::auth);
  const auto day = judge(*preset, 200, {}, R"({"Information": "25 requests per day"})");
  CHECK(day.outcome == Outcome::quota);
  CHECK_FALSE(day.retry);
  REQUIRE(day.wait);
  CHECK(*day.wait <= std::chrono::hours(25));
}

}  // namespace
}  // namespace kvingest::fetch
