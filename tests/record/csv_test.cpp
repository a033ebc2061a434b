// CsvLine: RFC 4180 within one line. The world is lines of every length around the 64-byte blocks it scans.
#include <random>

#include "record/csv_line.hpp"
#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;
using Fields = std::vector<std::string>;

Fields split(std::string_view line, char separator = ',') {
  CsvLine csv;
  const std::string copy(line);  // Exactly as long, so that a sanitizer sees a read behind it.
  CHECK(csv.split(copy, separator) == "");
  return Fields(csv.fields().begin(), csv.fields().end());
}

std::string problem_of(std::string_view line) {
  CsvLine csv;
  return std::string(csv.split(line, ','));
}

TEST_CASE("separators cut a line, and empty fields count") {
  CHECK(split("") == Fields{""});
  CHECK(split("a") == Fields{"a"});
  CHECK(split(",") == Fields{"", ""});
  CHECK(split("a,,b,") == Fields{"a", "", "b", ""});
  CHECK(split("a;b,c", ';') == Fields{"a", "b,c"});
  CHECK(split("a\tb", '\t') == Fields{"a", "b"});
  CHECK(split("a\0b,c"s) == Fields{"a\0b"s, "c"});
  CHECK(split("a\0b"s, '\0') == Fields{"a", "b"});
}

TEST_CASE("quotes hold separators, and doubled quotes are one") {
  CHECK(split(R"("a,b",c)") == Fields{"a,b", "c"});
  CHECK(split(R"(a,"")") == Fields{"a", ""});
  CHECK(split(R"("",)") == Fields{"", ""});
  CHECK(split(R"("say ""hi""",""""," ""x")") == Fields{R"(say "hi")", "\"", " \"x"});
  CHECK(split(R"("""a""b""","c")") == Fields{R"("a"b")", "c"});
}

TEST_CASE("each quoting mistake is named") {
  CHECK(problem_of(R"("abc)") == "a quote is never closed");
  CHECK(problem_of(R"(a,"abc"")") == "a quote is never closed");
  CHECK(problem_of(R"(")") == "a quote is never closed");
  CHECK(problem_of(R"("a"b,c)") == "text behind a closing quote");
  CHECK(problem_of(R"(a,b"c)") == "a quote within an unquoted field");
  CHECK(problem_of(R"(a, "b")") == "a quote within an unquoted field");
}

TEST_CASE("the fields before a bad one are kept, so that its number can be told") {
  CsvLine csv;
  REQUIRE(csv.split(R"(a,"b","c"d,e)", ',') != "");
  CHECK(csv.fields().size() == 2);
  REQUIRE(csv.split(R"(a,"b",c"d,e)", ',') != "");
  CHECK(csv.fields().size() == 2);
}

TEST_CASE("a line of nothing but separators is bounded") {
  const std::string fits(kCsvFieldsMax - 1, ',');
  CHECK(split(fits).size() == kCsvFieldsMax);
  CHECK(problem_of(fits + ",").find("16384") != std::string::npos);
  CHECK(problem_of("\"q\"" + fits) == "");
  CHECK(problem_of("\"q\"" + fits + ",").find("16384") != std::string::npos);
  CHECK(problem_of(std::string(1'000'000, ',')).find("16384") != std::string::npos);
}

TEST_CASE("random fields come back whatever they hold and wherever the blocks end") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string alphabet = "abc,\"; \0x"s;
  for (int round = 0; round < 5'000; ++round) {
    Fields fields(1 + random() % 12);
    std::string line;
    for (std::string& field : fields) {
      const std::size_t kinds = random() % 2 ? 3 : alphabet.size();  // Half of the lines hold no quote.
      for (std::size_t i = random() % 20; i > 0; --i) field += alphabet[random() % kinds];
      if (&field != fields.data()) line += ',';
      append_csv_field(line, field, ',');
    }
    REQUIRE(split(line) == fields);
  }
}

}  // namespace
}  // namespace kvingest
