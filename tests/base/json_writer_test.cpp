// JSON text: structure, escapes, and bytes that are no UTF-8.
#include "base/json_writer.hpp"

#include <limits>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;

std::string string_of(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

TEST_CASE("objects and arrays nest with commas where they belong") {
  JsonWriter json;
  json.begin_object().field("a", 1).key("b").begin_array();
  json.value("x").begin_object().end_object().begin_array().end_array().null().value(true);
  json.end_array().field("c", false).end_object();
  CHECK(json.text() == R"({"a":1,"b":["x",{},[],null,true],"c":false})");
}

TEST_CASE("numbers are written so that they read back the same") {
  JsonWriter json;
  json.begin_array();
  json.value(std::numeric_limits<std::uint64_t>::max()).value(std::numeric_limits<std::int64_t>::min());
  json.value(0.1).value(1e300).value(2.0);
  json.value(std::numeric_limits<double>::infinity()).value(std::numeric_limits<double>::quiet_NaN());
  json.end_array();
  CHECK(json.text() == "[18446744073709551615,-9223372036854775808,0.1,1e+300,2,null,null]");
}

TEST_CASE("quotes, backslashes and control characters are escaped") {
  CHECK(string_of("a\"b\\c/") == R"("a\"b\\c/")");
  CHECK(string_of("\n\r\t\x01\x7f\0"s) == R"("\n\r\t\u0001\u007f\u0000")");
}

TEST_CASE("valid UTF-8 stays as it is") {
  for (const char* text : {"naïve €", "\U0001F600", "\u0080", "\u07ff\u0800\uffff\U00010000\U0010ffff"})
    CHECK(string_of(text) == "\""s + text + "\"");
}

TEST_CASE("a byte that is no UTF-8 shows as its number") {
  CHECK(string_of("a\xff"
                  "b\x80") == R"("a\u00ffb\u0080")");
  CHECK(string_of("\xC0\x80") == R"("\u00c0\u0080")");                      // Overlong.
  CHECK(string_of("\xED\xA0\x80") == R"("\u00ed\u00a0\u0080")");            // A surrogate.
  CHECK(string_of("\xF4\x90\x80\x80") == R"("\u00f4\u0090\u0080\u0080")");  // Beyond the last code point.
  CHECK(string_of("\xE2\x82") == R"("\u00e2\u0082")");                      // Cut off.
}

}  // namespace
}  // namespace kvingest
