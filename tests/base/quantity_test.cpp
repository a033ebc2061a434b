// Sizes, times and counts: what is read, what is refused, and that formatting gives back what is read.
#include "base/quantity.hpp"

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a size is bytes or a power of 1,024") {
  CHECK(parse_size("0").value() == 0);
  CHECK(parse_size("1001").value() == 1001);
  CHECK(parse_size("8M").value() == 8ull << 20);
  CHECK(parse_size("3k").value() == 3072);
  CHECK(parse_size("2G").value() == 2ull << 30);
  CHECK(parse_size("1T").value() == 1ull << 40);
  CHECK(parse_size("18446744073709551615").value() == UINT64_MAX);
}

TEST_CASE("a size that is none is refused with an example") {
  for (const char* text : {"", "M", "-1", "+1", "1.5M", "8MB", "8 M", "0x10", "18446744073709551616", "99999999999G"}) {
    const auto size = parse_size(text);
    REQUIRE_FALSE(size);
    CHECK(size.error().code == Code::invalid_argument);
    CHECK(size.error().text.find("8M") != std::string::npos);
  }
}

TEST_CASE("a size is shown as it is read") {
  for (const char* text : {"0", "1", "1001", "1K", "1025", "1536K", "8M", "2G", "3T"})
    CHECK(format_size(parse_size(text).value()) == text);
  CHECK(format_size(1024ull * 1024 * 1024 * 1024) == "1T");
}

TEST_CASE("a time without a unit is in milliseconds") {
  CHECK(parse_duration("250").value() == milliseconds(250));
  CHECK(parse_duration("250ms").value() == milliseconds(250));
  CHECK(parse_duration("5s").value() == milliseconds(5'000));
  CHECK(parse_duration("2min").value() == milliseconds(120'000));
  CHECK(parse_duration("3h").value() == milliseconds(3 * 3'600'000));
  CHECK(parse_duration("7d").value() == milliseconds(7ll * 86'400'000));
}

TEST_CASE("a time that is none, or is too long, is refused") {
  for (const char* text : {"", "s", "-5s", "5 s", "5m", "5sec", "1.5s", "9223372036854775807s", "106752d"})
    CHECK_FALSE(parse_duration(text));
}

TEST_CASE("a time is shown as it is read") {
  for (const char* text : {"0ms", "1ms", "1500ms", "5s", "90s", "2min", "36h", "7d"})
    CHECK(format_duration(parse_duration(text).value()) == text);
}

TEST_CASE("a count keeps within its bounds") {
  CHECK(parse_count("42").value() == 42);
  CHECK(parse_count("1", 1, 3).value() == 1);
  CHECK(parse_count("3", 1, 3).value() == 3);
  CHECK_FALSE(parse_count("0", 1, 3));
  CHECK(parse_count("4", 1, 3).error().text == "'4' is not a whole number from 1 to 3");
  CHECK_FALSE(parse_count("1M"));
  CHECK_FALSE(parse_count("-1"));
  CHECK_FALSE(parse_count(""));
}

TEST_CASE("counts for people have commas") {
  CHECK(format_grouped(0) == "0");
  CHECK(format_grouped(999) == "999");
  CHECK(format_grouped(1'000) == "1,000");
  CHECK(format_grouped(12'345'678) == "12,345,678");
}

}  // namespace
}  // namespace kvingest
