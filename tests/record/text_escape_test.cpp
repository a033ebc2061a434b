// The escapes of kvq: what is printed, and that every string of bytes comes back.
#include "record/text_escape.hpp"

#include <random>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;

TEST_CASE("text stays, control bytes and what is not UTF-8 are escaped") {
  CHECK(escaped("plain text ~!") == "plain text ~!");
  CHECK(escaped("a\\b\tc\nd\re") == R"(a\\b\tc\nd\re)");
  CHECK(escaped("\0\x1B\x7F"s) == R"(\x00\x1b\x7f)");
  CHECK(escaped("é€😀") == "é€😀");
  CHECK(escaped("\xFF\xC3") == R"(\xff\xc3)");
  CHECK(escaped("\xE2\x82z") == R"(\xe2\x82z)");
}

TEST_CASE("ill-formed UTF-8 of every kind is escaped") {
  CHECK(escaped("\xC0\x80") == R"(\xc0\x80)");                  // NUL in two bytes
  CHECK(escaped("\xE0\x9F\xBF") == R"(\xe0\x9f\xbf)");          // too long a form
  CHECK(escaped("\xED\xA0\x80") == R"(\xed\xa0\x80)");          // a surrogate
  CHECK(escaped("\xF4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");  // beyond U+10FFFF
  CHECK(escaped("\xF0\x8F\xBF\xBF") == R"(\xf0\x8f\xbf\xbf)");
  CHECK(escaped("\xC2\x9B") == R"(\xc2\x9b)");  // a terminal's control sequence introducer
  CHECK(escaped("\xC2\xA0") == "\xC2\xA0");
  CHECK(escaped("\xF4\x8F\xBF\xBF") == "\xF4\x8F\xBF\xBF");
  CHECK(escaped("\xED\x9F\xBF") == "\xED\x9F\xBF");
}

TEST_CASE("every string of bytes comes back") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    for (std::size_t i = random() % 30; i > 0; --i) bytes += static_cast<char>(random());
    const std::string text = escaped(bytes);
    REQUIRE(text.find_first_of("\n\t\r\0\x1B"s) == std::string::npos);
    REQUIRE(*unescaped(text) == bytes);
    for (const bool seq_keys : {false, true}) {
      std::string key;
      append_key_text(key, bytes, seq_keys);
      REQUIRE(*key_from_text(key, seq_keys) == bytes);
    }
  }
}

TEST_CASE("an unknown or cut escape is a mistake") {
  for (const char* text : {"\\", "a\\q", "\\x", "\\x1", "\\xZZ", "\\x+1"}) {
    INFO(text);
    const auto bytes = unescaped(text);
    REQUIRE_FALSE(bytes);
    CHECK(bytes.error().code == Code::invalid_argument);
  }
  CHECK(*unescaped(R"(\x4A\x4a)") == "JJ");
}

TEST_CASE("keys that are arrival numbers are decimal, and other keys cannot be taken for one") {
  const auto shown = [](std::string_view key) {
    std::string text;
    append_key_text(text, key, true);
    return text;
  };
  CHECK(shown(key_of_seq(1)) == "1");
  CHECK(shown(key_of_seq(300)) == "300");
  CHECK(shown("AAPL") == "AAPL");
  CHECK(shown("12345678") == R"(\x312345678)");
  CHECK(*key_from_text("300", true) == "\0\0\0\0\0\0\x01\x2C"s);
  CHECK(*key_from_text("300", false) == "300");
  CHECK(*seq_of_key("\0\0\0\0\0\0\x01\x2C"s) == 300);
  CHECK_FALSE(seq_of_key("12345678"));
  CHECK_FALSE(seq_of_key("\0\0"s));
}

TEST_CASE("a number that no key can hold is refused") {
  CHECK(key_from_text("72057594037927935", true));
  CHECK_FALSE(key_from_text("72057594037927936", true));
  CHECK_FALSE(key_from_text("99999999999999999999999", true));
}

}  // namespace
}  // namespace kvingest
