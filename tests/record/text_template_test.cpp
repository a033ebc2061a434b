// The template language: what each form compiles to, and that every mistake names the template and the byte.
#include "record/text_template.hpp"

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using Kind = TextTemplate::Kind;

struct Compiled {
  TextTemplate made;
  std::vector<FieldPath> fields;
};

Compiled compiled(std::string_view text) {
  Compiled result;
  auto made = TextTemplate::compile("key", text, result.fields);
  REQUIRE(made);
  result.made = *std::move(made);
  return result;
}

std::string error_of(std::string_view text) {
  std::vector<FieldPath> fields;
  const auto made = TextTemplate::compile("key", text, fields);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Code::invalid_argument);
  CHECK(made.error().text.find(text) != std::string::npos);
  return made.error().text;
}

TEST_CASE("literals and fields alternate, and doubled braces are themselves") {
  const auto [made, fields] = compiled("a{{{symbol}}}/{date}");
  REQUIRE(made.parts().size() == 4);
  CHECK(made.parts()[0].text == "a{");
  CHECK(made.parts()[1].kind == Kind::field);
  CHECK(made.parts()[2].text == "}/");
  CHECK(made.parts()[3].field == 1);
  CHECK(fields == std::vector<FieldPath>{{{"symbol"}}, {{"date"}}});
}

TEST_CASE("built-in names are not fields, unless quoted or written as a pointer") {
  const auto [made, fields] = compiled("{seq}{time}{source}{\"seq\"}{/time}");
  CHECK(made.parts()[0].kind == Kind::seq);
  CHECK(made.parts()[1].kind == Kind::time);
  CHECK(made.parts()[2].kind == Kind::source);
  CHECK(made.parts()[3].kind == Kind::field);
  CHECK(made.parts()[4].kind == Kind::field);
  CHECK(fields == std::vector<FieldPath>{{{"seq"}}, {{"time"}}});
}

TEST_CASE("only {seq} by itself is the fast key") {
  CHECK(compiled("{seq}").made.is_seq_alone());
  CHECK_FALSE(compiled("k{seq}").made.is_seq_alone());
  CHECK_FALSE(compiled("{\"seq\"}").made.is_seq_alone());
  CHECK(compiled("k{seq}").made.contains(Kind::seq));
  CHECK_FALSE(compiled("k{time}").made.contains(Kind::seq));
}

TEST_CASE("quoted names hold colons, braces and doubled quotes") {
  CHECK(compiled(R"({"a:b}"})").fields[0].steps == std::vector<std::string>{"a:b}"});
  CHECK(compiled(R"({"say ""hi"""})").fields[0].steps == std::vector<std::string>{R"(say "hi")"});
  CHECK(compiled(R"({"n":05})").made.parts()[0].width == 5);
  CHECK(compiled(R"({""})").fields[0].steps == std::vector<std::string>{""});
}

TEST_CASE("pointers are cut at slashes, and ~0 and ~1 are undone") {
  CHECK(compiled("{/quote/symbol}").fields[0].steps == std::vector<std::string>{"quote", "symbol"});
  CHECK(compiled("{/a~1b/c~0d/}").fields[0].steps == std::vector<std::string>{"a/b", "c~d", ""});
  CHECK(compiled("{/a~1b/c~0d/}").fields[0].text() == "/a~1b/c~0d/");
  CHECK(compiled("{/x}").fields[0].text() == "x");
}

TEST_CASE("a field that two templates name is listed once") {
  std::vector<FieldPath> fields;
  REQUIRE(TextTemplate::compile("key", "{b}/{a}", fields));
  const auto second = TextTemplate::compile("value", "{a}{/b}{c}", fields);
  REQUIRE(second);
  CHECK(fields.size() == 3);
  CHECK(second->parts()[0].field == 1);
  CHECK(second->parts()[1].field == 0);
}

TEST_CASE("the width is kept") {
  CHECK(compiled("{n:012}").made.parts()[0].width == 12);
  CHECK(compiled("{time:020}").made.parts()[0].width == 20);
}

TEST_CASE("each mistake in a template is named with its place") {
  CHECK(error_of("ab{name").find("byte 3: '{' is never closed") != std::string::npos);
  CHECK(error_of("{unclosed").find("unclosed") != std::string::npos);
  CHECK(error_of("a}b").find("byte 2: a single '}'") != std::string::npos);
  CHECK(error_of("{}").find("names no field") != std::string::npos);
  CHECK(error_of("{\"a}").find("quoted name is never closed") != std::string::npos);
  CHECK(error_of("{\"a\"b}").find("byte 5: '}' should follow") != std::string::npos);
  CHECK(error_of("{/a~2}").find("'~0'") != std::string::npos);
  CHECK(error_of("{/a~}").find("'~0'") != std::string::npos);
  CHECK(error_of("{seq:020}").find("{seq} takes no width") != std::string::npos);
  for (const char* width : {"{n:5}", "{n:0}", "{n:00}", "{n:}", "{n:0512}", "{n:099999999999999999999}", "{n:0-5}"}) {
    INFO(width);
    CHECK(error_of(width).find("the width is written :0W") != std::string::npos);
  }
  CHECK(error_of("{n:05x}").find("'}' should follow") != std::string::npos);
}

}  // namespace
}  // namespace kvingest
