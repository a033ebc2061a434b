// From bodies to records: each trap that a public source has set for its loaders.
#include "http/load/decode.hpp"
#include "http/load/exact_number.hpp"
#include "http/load/json_tree.hpp"
#include "http/load/time_text.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expect.hpp"

namespace kvingest::fetch {
namespace {

using test::contains_text;

/// A preset of a csv with a date and a close, and what is said besides.
Preset csv_preset(const std::string& close = R"(as = "decimal")", const std::string& more = "") {
  auto preset = parse_preset(R"(
preset = 1
name = "t"
record = "bar"
[request]
url = "http://h/{symbol}"
[decode]
format = "csv"
[fields]
date = { from = ["Date", "Data"], as = "date", format = "%Y-%m-%d", required = true }
close = { from = "Close", )" + close +
                                 " }\n[key]\ncolumns = { \"*\" = [\"symbol\", \"date\"] }\n" + more,
                             {});
  REQUIRE_OK(preset);
  return *std::move(preset);
}

DecodeContext context(std::string interval = "1d") {
  DecodeContext one;
  one.source = "t";
  one.symbol = "S";
  one.interval = std::move(interval);
  one.now = *parse_day("2024-06-01") * kNsPerDay;
  return one;
}

Decoded csv(std::string_view body, const Preset& preset = csv_preset()) {
  return decode(preset, body, context());
}

std::string close_of(std::string_view cell, const std::string& close) {
  const auto decoded = csv("Date,Close\n2024-01-02,\"" + std::string(cell) + "\"\n", csv_preset(close));
  if (decoded.outcome != Outcome::ok) return std::string(to_string(decoded.outcome));
  JsonTree tree;
  REQUIRE(tree.parse(decoded.records.at(0).json) == JsonTree::Parsed::whole);
  return std::string(tree.member(*tree.root(), "close")->text);
}

TEST_CASE("http decode: byte order marks, line ends and blank lines are no trouble") {
  for (const char* body : {"Date,Close\n2024-01-02,1.50\n",
                           "\xEF\xBB\xBF"
                           "Date,Close\r\n2024-01-02,1.50\r\n",
                           "Date,Close\n\n2024-01-02,1.50\n\n", "Data,Close\n2024-01-02,1.50"}) {
    const auto decoded = csv(body);
    REQUIRE(decoded.records.size() == 1);
    CHECK(decoded.records[0].key == "t/S/2024-01-02");
    CHECK(decoded.records[0].json == R"({"source":"t","symbol":"S","interval":"1d","date":"2024-01-02","close":1.50})");
  }
}

TEST_CASE("http decode: a last line without its end is whole only where the transfer has proved it") {
  DecodeContext cut = context();
  cut.whole = false;
  CHECK(decode(csv_preset(), "Date,Close\n2024-01-02,1.5", cut).outcome == Outcome::truncated);
  CHECK(decode(csv_preset(), "Date,Close\n2024-01-02,1.5\n", cut).outcome == Outcome::ok);
}

TEST_CASE("http decode: a row that does not fit is named with its line, and nothing of the body is taken") {
  for (const char* row : {"2024-01-03", "2024-01-03,1,2", "03/01/2024,1", "2024-02-30,1", "11:34,1", "2024-01-03,n/a",
                          "2024-01-03,1.2.3", "2024-01-03,\"1", ",1"}) {
    INFO(row);
    const auto decoded = csv("Date,Close\n2024-01-02,1\n" + std::string(row) + "\n");
    CHECK(decoded.outcome == Outcome::bad_body);
    CHECK(decoded.records.empty());
    CHECK_THAT(decoded.problem, contains_text("line 3"));
  }
  CHECK_THAT(csv("Day,Close\n2024-01-02,1\n").problem, contains_text("there are: Day, Close"));
}

TEST_CASE("http decode: numbers keep their digits, and marks are taken off only where the preset says so") {
  CHECK(close_of("0.01634790", R"(as = "decimal")") == "0.01634790");
  CHECK(close_of("75.0875015258789", R"(as = "decimal")") == "75.0875015258789");
  CHECK(close_of("1.9e-7", R"(as = "decimal")") == "1.9e-7");
  CHECK(close_of("+.5", R"(as = "decimal")") == "0.5");
  CHECK(close_of("7,278.20", R"(as = "decimal")") == "bad_body");
  CHECK(close_of("7,278.20", R"(as = "decimal", strip = ",")") == "7278.20");
  CHECK(close_of("7.278,20", R"(as = "decimal", strip = ".", decimal = ",")") == "7278.20");
  CHECK(close_of("$208.62", R"(as = "decimal", strip = "$")") == "208.62");
  CHECK(close_of("1.52%", R"(as = "decimal", strip = "%")") == "1.52");
  CHECK(close_of("190.28M", R"(as = "decimal", suffix = true)") == "190280000");
  CHECK(close_of("1.23456K", R"(as = "decimal", suffix = true)") == "1234.56");
  CHECK(close_of("4086065", R"(as = "int")") == "4086065");
  CHECK(close_of("642646396.0", R"(as = "int")") == "642646396");
  CHECK(close_of("1.5", R"(as = "int")") == "bad_body");
  for (const char* null : {".", "N/A", "-", "NaN", ""}) {
    INFO(null);
    CHECK(close_of(null, R"(as = "decimal", null = [".", "N/A", "-", "NaN"])").empty());
  }
}

TEST_CASE("http decode: a point is moved, not multiplied") {
  CHECK(shifted("12.345", 6) == "12345000");
  CHECK(shifted("12.345", -3) == "0.012345");
  CHECK(shifted("-0.5", 1) == "-5");
  CHECK(shifted("7", -2) == "0.07");
  CHECK_FALSE(shifted("1e5", 2));
  CHECK_FALSE(exact_number("", {}));
  CHECK_FALSE(exact_number("-", {}));
  CHECK_FALSE(exact_number("1e", {}));
  CHECK_FALSE(exact_number("0x10", {}));
  CHECK_FALSE(exact_number("inf", {}));
}

TEST_CASE("http decode: a format is exact") {
  const auto day = [](std::string_view text, std::string_view format) -> std::string {
    const auto time = parse_time(text, format);
    return time ? format_instant(time->ns - time->offset_ns.value_or(0)) : "";
  };
  CHECK(day("Jan 1 2000", "%b %d %Y") == "2000-01-01T00:00:00Z");
  CHECK(day("Apr 09, 2020", "%b %d, %Y") == "2020-04-09T00:00:00Z");
  CHECK(day("2019-Q3", "%Y-Q%q") == "2019-07-01T00:00:00Z");
  CHECK(day("2019-W01", "%Y-W%V") == "2018-12-31T00:00:00Z");
  CHECK(day("2020-W53", "%Y-W%V") == "2020-12-28T00:00:00Z");
  CHECK(day("2015-01-02T00:00:00.500Z", "%Y-%m-%dT%H:%M:%S.%f%z") == "2015-01-02T00:00:00.5Z");
  CHECK(day("2015-01-02T01:00:00+01:00", "%Y-%m-%dT%H:%M:%S%z") == "2015-01-02T00:00:00Z");
  for (const char* text : {"2024-13-01", "2024-02-30", "24-01-01", "2024-01-01 ", "2024/01/01", ""}) {
    INFO(text);
    CHECK(day(text, "%Y-%m-%d").empty());
  }
}

TEST_CASE("http decode: summer time is the zone's, not what an offset says") {
  const LocalTime open_in_winter{*parse_day("2021-03-12") * kNsPerDay + 34'200 * kNsPerSecond, std::nullopt};
  const LocalTime open_in_summer{*parse_day("2021-03-15") * kNsPerDay + 34'200 * kNsPerSecond, std::nullopt};
  CHECK(format_instant(*instant_of(open_in_winter, "America/New_York")) == "2021-03-12T14:30:00Z");
  CHECK(format_instant(*instant_of(open_in_summer, "America/New_York")) == "2021-03-15T13:30:00Z");
  CHECK(format_day(*day_in_zone(*parse_day("2024-01-01") * kNsPerDay + 23 * 3600 * kNsPerSecond, "Australia/Sydney")) ==
        "2024-01-02");
  CHECK_FALSE(is_zone("Nowhere/Else"));
}

TEST_CASE("http decode: rows outside of the window are counted and not stored") {
  DecodeContext january = context();
  january.from = *parse_day("2024-01-02") * kNsPerDay;
  january.to = *parse_day("2024-01-03") * kNsPerDay;
  const auto decoded = decode(csv_preset(), "Date,Close\n2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n", january);
  REQUIRE(decoded.records.size() == 1);
  CHECK(decoded.oddities.outside == 2);
}

TEST_CASE("http decode: newest first becomes oldest first, and another order is counted") {
  const auto preset = csv_preset(R"(as = "decimal")", "[check]\norder = \"desc\"\n");
  const auto decoded = csv("Date,Close\n2024-01-03,3\n2024-01-02,2\n", preset);
  REQUIRE(decoded.records.size() == 2);
  CHECK(decoded.records[0].key == "t/S/2024-01-02");
  CHECK(decoded.oddities.out_of_order == 0);
  CHECK(csv("Date,Close\n2024-01-02,2\n2024-01-03,3\n", preset).oddities.out_of_order == 1);
}

TEST_CASE("http decode: two rows under one key are what the preset says they are") {
  const char* body = "Date,Close\n2024-01-02,1\n2024-01-02,2\n";
  CHECK(csv(body).outcome == Outcome::bad_body);
  auto preset = csv_preset();
  preset.key.duplicates = KeyForm::Duplicates::last;
  auto decoded = csv(body, preset);
  REQUIRE(decoded.records.size() == 1);
  CHECK_THAT(decoded.records[0].json, contains_text("\"close\":2"));
  CHECK(decoded.oddities.duplicates == 1);
  preset.key.duplicates = KeyForm::Duplicates::first;
  CHECK_THAT(csv(body, preset).records.at(0).json, contains_text("\"close\":1"));
  CHECK(csv("Date,Close\n2024-01-02,1\n2024-01-02,1\n").records.size() == 1);  // The same twice is one.
}

TEST_CASE("http decode: the last bar is provisional while its interval lasts, and a date far ahead is a typo") {
  const auto preset = csv_preset(R"(as = "decimal")", "[check]\nprovisional = \"last\"\nfuture = \"2d\"\n");
  const auto decoded = csv("Date,Close\n2024-05-31,1\n2024-06-01,2\n2042-06-01,3\n", preset);
  REQUIRE(decoded.records.size() == 2);
  CHECK_FALSE(decoded.records[0].provisional);
  CHECK(decoded.records[1].provisional);
  CHECK_THAT(decoded.records[1].json, contains_text("\"provisional\":true}"));
  CHECK(decoded.oddities.future == 1);
  CHECK(csv("Date,Close\n2024-05-30,1\n", preset).oddities.provisional == 0);
}

TEST_CASE("http decode: JSON that ends early is truncated, JSON that is wrong is a bad body") {
  JsonTree tree;
  const std::string text = R"({"a":[1,2.50,{"b":"x\u00e9\"y"}],"c":null,"d":-1.9e-7,"e":true})";
  REQUIRE(tree.parse(text) == JsonTree::Parsed::whole);
  CHECK(tree.find(*tree.root(), "/a/1")->text == "2.50");
  CHECK(tree.find(*tree.root(), "/a/2/b")->text == "x\xC3\xA9\"y");
  CHECK(tree.find(*tree.root(), "/d")->text == "-1.9e-7");
  CHECK(tree.find(*tree.root(), "/a/9") == nullptr);
  CHECK(tree.find(*tree.root(), "/a/x") == nullptr);
  CHECK(tree.count(*tree.find(*tree.root(), "/a")) == 3);
  for (std::size_t bytes = 1; bytes < text.size(); ++bytes) {
    INFO(text.substr(0, bytes));
    CHECK(tree.parse(std::string_view(text).substr(0, bytes)) == JsonTree::Parsed::cut);
  }
  for (const char* wrong : {"{]", "[1,]", "{\"a\" 1}", "{a:1}", "[1]x", "[01]", "nul!", "[\"\x01\"]"}) {
    INFO(wrong);
    CHECK(tree.parse(wrong) == JsonTree::Parsed::bad);
  }
  CHECK(tree.parse(std::string(1000, '[')) == JsonTree::Parsed::bad);
}

TEST_CASE("http decode: every cut of a body is noticed") {
  const auto preset = find_preset("yahoo-chart");
  REQUIRE_OK(preset);
  const std::string& body = preset->examples.at(0).body;
  REQUIRE(decode(*preset, body, context()).outcome == Outcome::ok);
  for (std::size_t bytes = 1; bytes < body.size(); ++bytes) {
    INFO(bytes);
    CHECK(decode(*preset, std::string_view(body).substr(0, bytes), context()).outcome == Outcome::truncated);
  }
}

TEST_CASE("http decode: columns of different lengths are no table") {
  const auto preset = find_preset("yahoo-chart");
  REQUIRE_OK(preset);
  const auto decoded =
      decode(*preset,
             R"({"chart":{"result":[{"meta":{"exchangeTimezoneName":"UTC"},"timestamp":[1,2],)"
             R"("indicators":{"quote":[{"open":[1],"high":[1],"low":[1],"close":[1],"volume":[1]}]}}]}})",
             context());
  CHECK(decoded.outcome == Outcome::bad_body);
}

TEST_CASE("http decode: a line of NDJSON is a row, and a line that is cut is not") {
  auto preset = csv_preset();
  preset.decode.format = DecodeForm::Format::ndjson;
  preset.fields[0].from = {"date"};
  preset.fields[1].from = {"/q/close"};
  const auto decoded = csv("{\"date\":\"2024-01-02\",\"q\":{\"close\":1.10}}\n{\"date\":\"2024-01-03\"}\n", preset);
  REQUIRE(decoded.records.size() == 2);
  CHECK_THAT(decoded.records[0].json, contains_text("\"close\":1.10"));
  CHECK(csv("{\"date\":\"2024-01-02\"}\n{\"date\":\"2024-01", preset).outcome == Outcome::bad_body);
}

TEST_CASE("http decode: keys hold one slash between their parts, whatever a symbol is called") {
  DecodeContext odd = context();
  odd.symbol = "BRK/B%\n";
  CHECK(decode(csv_preset(), "Date,Close\n2024-01-02,1\n", odd).records.at(0).key == "t/BRK%2FB%25%0A/2024-01-02");
}

}  // namespace
}  // namespace kvingest::fetch
