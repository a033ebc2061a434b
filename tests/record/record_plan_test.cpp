// RecordPlan: defaults by format, what the marker gets, and options that do not go together.
#include "record/record_plan.hpp"

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

RecordPlan compiled(const RecordOptions& options) {
  auto plan = RecordPlan::compile(options);
  if (!plan) FAIL(plan.error().text);
  return *std::move(plan);
}

std::string error_of(const RecordOptions& options) {
  const auto plan = RecordPlan::compile(options);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == Code::invalid_argument);
  return plan.error().text;
}

TEST_CASE("plain lines keyed by their number take the fast path, and nothing else does") {
  CHECK(compiled({}).whole_line_by_seq());
  CHECK(compiled({.value = "{line}"}).whole_line_by_seq());
  CHECK_FALSE(compiled({.key = "k/{seq}"}).whole_line_by_seq());
  CHECK_FALSE(compiled({.value = "{line}!"}).whole_line_by_seq());
  CHECK_FALSE(compiled({.format = MessageFormat::csv}).whole_line_by_seq());
}

TEST_CASE("key and value have the defaults of their format, and the marker says so") {
  using Labels = std::map<std::string, std::string, std::less<>>;
  CHECK(compiled({}).labels() == Labels{{"format", "line"}, {"key", "{seq}"}, {"value", "(whole message)"}});
  CHECK(compiled({.format = MessageFormat::kv}).labels() ==
        Labels{{"format", "kv"}, {"key", "{key}"}, {"separator", "="}, {"value", "{value}"}});
  CHECK(compiled({.format = MessageFormat::csv, .columns = {"a", "b,c"}, .separator = ";", .key = "{a}"}).labels() ==
        Labels{{"columns", "a,\"b,c\""},
               {"format", "csv"},
               {"header", "false"},
               {"key", "{a}"},
               {"separator", ";"},
               {"value", "(whole message)"}});
}

TEST_CASE("options that the format does not take are refused") {
  CHECK(error_of({.format = MessageFormat::line, .header = true}).find("header") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::json, .columns = {"a"}}).find("columns") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::json, .separator = ","}).find("separator") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::kv, .separator = "=="}).find("one byte") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::csv, .separator = "\""}).find("quote") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::csv, .columns = {"a", "b", "a"}}).find("twice") != std::string::npos);
  CHECK(error_of({.key = ""}).find("at least one byte") != std::string::npos);
}

TEST_CASE("a field that the format or the columns lack is refused at the start, with what there is") {
  CHECK(error_of({.key = "{symbol}"}).find("'symbol'") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::kv, .key = "{line}"}).find("key,value") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::csv, .columns = {"a"}, .key = "{b}"}).find("there are: a") !=
        std::string::npos);
  CHECK(error_of({.format = MessageFormat::csv, .key = "{b}"}).find("--header") != std::string::npos);
  CHECK(error_of({.format = MessageFormat::csv, .header = true, .key = "{/a/b}"}).find("json") != std::string::npos);
  CHECK(RecordPlan::compile({.format = MessageFormat::csv, .header = true, .key = "{b}"}));
  CHECK(RecordPlan::compile({.format = MessageFormat::json, .key = "{/a/b}"}));
  CHECK(RecordPlan::compile({.format = MessageFormat::csv}));
}

TEST_CASE("formats go by name") {
  CHECK(*parse_message_format("json") == MessageFormat::json);
  const auto wrong = parse_message_format("xml");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text.find("csv") != std::string::npos);
}

TEST_CASE("column names survive the form in which they are kept") {
  const std::vector<std::string> columns = {"plain", "", "a,b", "say \"hi\"", "x:y}"};
  const auto again = split_columns(join_columns(columns));
  REQUIRE(again);
  CHECK(*again == columns);
  CHECK_FALSE(split_columns("\"open"));
}

}  // namespace
}  // namespace kvingest
