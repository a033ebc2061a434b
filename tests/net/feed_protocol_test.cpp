// The control lines of the feed protocol: what is one, how it is read, and how answers are written.
#include "net/feed_protocol.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

TEST_CASE("only !kv and a space make a control line, and more marks make it data again") {
  CHECK(classify_line("!kv sync") == LineKind::control);
  CHECK(classify_line("!kv ") == LineKind::control);
  CHECK(classify_line("!!kv sync") == LineKind::escaped);
  CHECK(classify_line("!!!kv sync") == LineKind::escaped);
  CHECK(classify_line("!kv") == LineKind::data);
  CHECK(classify_line("!kvsync") == LineKind::data);
  CHECK(classify_line("!") == LineKind::data);
  CHECK(classify_line("!!") == LineKind::data);
  CHECK(classify_line("kv sync") == LineKind::data);
  CHECK(classify_line("") == LineKind::data);
}

TEST_CASE("words are tokens or name=value, quoted where they hold spaces") {
  const auto line = parse_control(R"(!kv hello source=a from=12 note="two words \"x\" \\" bare)");
  REQUIRE(line);
  CHECK(line->verb == "hello");
  CHECK(line->value_of("source") == "a");
  CHECK(line->value_of("from") == "12");
  CHECK(line->value_of("note") == "two words \"x\" \\");
  CHECK_FALSE(line->value_of("none"));
  REQUIRE(line->words.size() == 4);
  CHECK(line->words[3].name.empty());
  CHECK(line->words[3].value == "bare");
}

TEST_CASE("spaces around words and a CR at the end do not matter") {
  const auto line = parse_control("!kv   sync   t1  \r");
  REQUIRE(line);
  CHECK(line->verb == "sync");
  REQUIRE(line->words.size() == 1);
  CHECK(line->words[0].value == "t1");
}

TEST_CASE("a control line that cannot be read says why") {
  for (const std::string text : {"!kv ", "!kv a=b", "!kv sync \x01", "!kv sync caf\xC3\xA9", R"(!kv sync "open)",
                                 R"(!kv sync "a"b)", R"(!kv sync a"b)", R"(!kv sync "\n")", "!kv sync =x"}) {
    CAPTURE(text);
    const auto line = parse_control(text);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == Code::invalid_argument);
    CHECK_FALSE(line.error().text.empty());
  }
  const std::string prefix = "!kv sync ";
  CHECK(parse_control(prefix + std::string(kControlLineBytesMax - prefix.size(), 't')));
  CHECK_FALSE(parse_control(prefix + std::string(kControlLineBytesMax - prefix.size() + 1, 't')));
}

TEST_CASE("answers can be read by the same parser, whatever they carry") {
  const std::string text = ControlAnswer("error")
                               .add("code", "control")
                               .add("line", 7)
                               .add("message", "say \"hi\" \\ now")
                               .add("closing")
                               .line();
  CHECK(text == "!kv error code=control line=7 message=\"say \\\"hi\\\" \\\\ now\" closing\n");
  const auto read = parse_control(text.substr(0, text.size() - 1));
  REQUIRE(read);
  CHECK(read->value_of("message") == "say \"hi\" \\ now");
  CHECK(ControlAnswer("x").add("m", "a\nb").line() == "!kv x m=a?b\n");
  CHECK(ControlAnswer("x").add("m", "").line() == "!kv x m=\"\"\n");
}

}  // namespace
}  // namespace kvingest::net
