// MessageParser: one message in, one put out, for each format; every reason to reject; a rejected message changes
// nothing.
#include "record/message_parser.hpp"

#include <optional>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;

constexpr std::uint64_t kTimeNs = 1'700'000'000'123'456'789;

/// A connection: a plan, its parser and the batch it fills.
class Connection {
 public:
  explicit Connection(const RecordOptions& options) : plan_(*RecordPlan::compile(options)), parser_(plan_) {}

  /// "key=value" of the record that `message` became, "blank", or the reason why it was rejected.
  std::string add(std::string_view message) {
    WriteBatch batch;
    batch.put("before", "1");
    const std::string before(batch.bytes());
    const Verdict verdict = parser_.add(message, kTimeNs, "@", batch);
    if (verdict.outcome != Outcome::stored) {
      CHECK(batch.bytes() == before);
      CHECK(verdict.reason.empty() == (verdict.outcome == Outcome::blank));
      CHECK(verdict.detail.empty() == (verdict.outcome == Outcome::blank));
      detail_ = verdict.detail;
      return verdict.outcome == Outcome::blank ? "blank" : std::string(verdict.reason);
    }
    CHECK(batch.check());
    batch.number(6);  // "before" takes it; the record gets 7.
    std::string record;
    REQUIRE(for_each_operation(batch.bytes(), [&](const BatchOperation& op) -> Result<void> {
      record = std::string(op.key) + "=" + std::string(op.value);
      return {};
    }));
    return record;
  }

  MessageParser& parser() { return parser_; }
  const std::string& detail() const { return detail_; }

 private:
  RecordPlan plan_;
  MessageParser parser_;
  std::string detail_;
};

TEST_CASE("a line is stored under its number, whatever bytes it holds") {
  Connection lines({});
  CHECK(lines.add("hello") == "\0\0\0\0\0\0\0\x07=hello"s);
  CHECK(lines.add("\0\xFF\r"s) == "\0\0\0\0\0\0\0\x07=\0\xFF\r"s);
  CHECK(lines.add("") == "blank");
}

TEST_CASE("a number inside a key is 20 digits, also twice and with the value") {
  CHECK(Connection({.key = "k/{seq}"}).add("x") == "k/00000000000000000007=x");
  CHECK(Connection({.key = "{seq}{seq}", .value = "<{seq}>"}).add("x") ==
        "0000000000000000000700000000000000000007=<00000000000000000007>");
  CHECK(Connection({.value = "{seq} {line}"}).add("x") == "\0\0\0\0\0\0\0\x07=00000000000000000007 x"s);
  CHECK(Connection({.key = "{line}", .value = "{seq}"}).add("x") == "x=00000000000000000007");
}

TEST_CASE("time and source are as given") {
  CHECK(Connection({.key = "{source}/{time}/{line}"}).add("x") == "@/1700000000123456789/x=x");
  CHECK(Connection({.key = "{time:020}"}).add("x") == "01700000000123456789=x");
}

TEST_CASE("kv is cut at the first separator") {
  Connection kv({.format = MessageFormat::kv});
  CHECK(kv.add("key=a=b") == "key=a=b");
  CHECK(kv.add("key=") == "key=");
  CHECK(kv.add("no separator") == "bad_kv");
  CHECK(kv.add("=value") == "key_empty");
  CHECK(Connection({.format = MessageFormat::kv, .separator = "\t"}).add("k\tv") == "k=v");
  CHECK(Connection({.format = MessageFormat::kv, .key = "{value}", .value = "{key}"}).add("k=v") == "v=k");
}

TEST_CASE("csv columns make keys, and the message is the value") {
  Connection csv({.format = MessageFormat::csv, .columns = {"symbol", "ts", "price"}, .key = "{symbol}/{ts:06}"});
  CHECK(csv.add("AAPL,42,1.5") == "AAPL/000042=AAPL,42,1.5");
  CHECK(csv.add("\"A,\"\"B\",42,\"1\"") == "A,\"B/000042=\"A,\"\"B\",42,\"1\"");
  CHECK(csv.add("AAPL,1234567,1") == "bad_number");
  CHECK(csv.add("AAPL,-1,1") == "bad_number");
  CHECK(csv.add("AAPL,,1") == "bad_number");
  CHECK(csv.add("AAPL,1.0,1") == "bad_number");
  CHECK(csv.add("AAPL,1") == "bad_csv");
  CHECK(csv.detail() == "2 fields where there are 3 columns");
  CHECK(csv.add("AAPL,1,2,3") == "bad_csv");
  CHECK(csv.add("AAPL,\"1,2") == "bad_csv");
  CHECK(csv.detail().find("(field 2)") != std::string::npos);
  CHECK(csv.add("AAPL,999999,1") == "AAPL/999999=AAPL,999999,1");
  CHECK(csv.add("") == "blank");
}

TEST_CASE("a csv value may be made of columns, without their quotes") {
  Connection csv({.format = MessageFormat::csv, .columns = {"a", "b"}, .key = "{a}", .value = "{b}"});
  CHECK(csv.add("k,\"x,\"\"y\"\"\"") == "k=x,\"y\"");
  CHECK(csv.add("k,") == "k=");
}

TEST_CASE("the header names the columns and is stored as nothing") {
  Connection csv({.format = MessageFormat::csv, .header = true, .key = "{date}"});
  CHECK(csv.parser().columns().empty());
  CHECK(csv.add("") == "blank");
  CHECK(csv.add("\xEF\xBB\xBF\"symbol\",date") == "blank");
  CHECK(csv.parser().columns() == std::vector<std::string>{"symbol", "date"});
  CHECK(csv.add("A,Jan 1 2000") == "Jan 1 2000=A,Jan 1 2000");
  CHECK(csv.add("symbol,date") == "date=symbol,date");
}

TEST_CASE("columns kept with a source replace the header when it resumes") {
  Connection csv({.format = MessageFormat::csv, .header = true, .key = "{b}"});
  csv.parser().set_columns({"a", "b"});
  CHECK(csv.add("1,2") == "2=1,2");
}

TEST_CASE("a header that lacks a needed column is rejected, and so is what follows") {
  Connection csv({.format = MessageFormat::csv, .header = true, .key = "{date}"});
  CHECK(csv.add("symbol,day") == "missing_field");
  CHECK(csv.detail().find("'date'") != std::string::npos);
  CHECK(csv.add("A,1") == "missing_field");
}

TEST_CASE("a header that differs from the store's columns is refused, and so is what follows") {
  Connection csv({.format = MessageFormat::csv, .header = true, .columns = {"a", "b"}, .key = "{a}"});
  CHECK(csv.add("b,a") == "header_changed");
  CHECK(csv.add("1,2") == "header_changed");
  Connection same({.format = MessageFormat::csv, .header = true, .key = "{a}"});
  same.parser().expect_columns({"a", "b"});
  CHECK(same.add("a,b") == "blank");
  CHECK(same.add("1,2") == "1=1,2");
}

TEST_CASE("a header that is no csv is rejected, and the next line is tried") {
  Connection csv({.format = MessageFormat::csv, .header = true, .key = "{a}"});
  CHECK(csv.add("\"a") == "bad_csv");
  CHECK(csv.add("a,b") == "blank");
}

TEST_CASE("keys of 1 and 511 bytes are stored, others rejected") {
  Connection kv({.format = MessageFormat::kv});
  CHECK(kv.add("k=v") == "k=v");
  CHECK(kv.add(std::string(kKeyBytesMax, 'k') + "=v") == std::string(kKeyBytesMax, 'k') + "=v");
  CHECK(kv.add(std::string(kKeyBytesMax + 1, 'k') + "=v") == "key_too_long");
}

TEST_CASE("a value beyond the limit is rejected") {
  Connection twice({.value = "{line}{line}"});
  CHECK(twice.add(std::string(kValueBytesMax / 2 + 1, 'x')) == "value_too_long");
  CHECK(twice.add("x") == "\0\0\0\0\0\0\0\x07=xx"s);
}

TEST_CASE("exactly one CR goes with the LF") {
  CHECK(without_cr("a\r") == "a");
  CHECK(without_cr("a\r\r") == "a\r");
  CHECK(without_cr("\r") == "");
  CHECK(without_cr("") == "");
}

}  // namespace
}  // namespace kvingest
