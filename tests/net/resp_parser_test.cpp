// The requests of the Redis protocol, cut out of a stream: whole, in pieces, and as an attacker would send them.
#include "net/resp_parser.hpp"

#include "net/resp_writer.hpp"
#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

using Step = RespParser::Step;
using WordList = std::vector<std::string>;

struct Parsed {
  std::vector<WordList> requests;
  std::string problem;
  std::size_t left = 0;  ///< Bytes that belong to an unfinished request.
};

/// Gives the parser `stream` in pieces of `piece` bytes, as a connection would.
Parsed parse(std::string_view stream, std::size_t piece, const RespLimits& limits = {}) {
  RespParser parser;
  parser.limit(limits);
  Parsed parsed;
  std::string input;
  while (!stream.empty() && parsed.problem.empty()) {
    const std::string_view part = stream.substr(0, piece);
    input += part;
    stream.remove_prefix(part.size());
    for (Step step = parser.next(input); step != Step::more; step = parser.next(input)) {
      if (step == Step::broken) {
        parsed.problem = parser.problem();
        break;
      }
      parsed.requests.emplace_back(parser.words().begin(), parser.words().end());
      input.erase(0, parser.done());
    }
  }
  parsed.left = input.size();
  return parsed;
}

std::string problem_of(std::string_view stream, const RespLimits& limits = {}) {
  const Parsed whole = parse(stream, stream.size(), limits);
  const Parsed bytes = parse(stream, 1, limits);
  CHECK(whole.problem == bytes.problem);
  return whole.problem;
}

TEST_CASE("resp: requests come out the same wherever the stream is cut") {
  const std::string odd("\r\n\0*", 4);
  const std::string stream =
      "*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*0\r\n*1\r\n$0\r\n\r\n*1\r\n$4\r\n" + odd + "\r\n\r\nSET k \"a b\"\n";
  const std::vector<WordList> wanted{{"GET", "a"}, {"PING"}, {}, {""}, {odd}, {}, {"SET", "k", "a b"}};
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    CAPTURE(piece);
    const Parsed parsed = parse(stream, piece);
    CHECK(parsed.requests == wanted);
    CHECK(parsed.problem.empty());
    CHECK(parsed.left == 0);
  }
}

TEST_CASE("resp: a request that has to wait is given again, also when its bytes have moved") {
  RespParser parser;
  std::string input = "*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n";
  REQUIRE(parser.next(input) == Step::command);
  const std::string moved = input;
  input.assign(input.size(), '#');
  REQUIRE(parser.next(moved) == Step::command);
  CHECK(parser.words()[1] == "a");
  CHECK(parser.done() == 20);
  REQUIRE(parser.next(std::string_view(moved).substr(20)) == Step::command);
  CHECK(parser.words()[0] == "PING");
}

TEST_CASE("resp: what breaks the protocol is said in Redis' words") {
  CHECK(problem_of("*2147483647\r\n") == "ERR Protocol error: invalid multibulk length");
  CHECK(problem_of("*x\r\n") == "ERR Protocol error: invalid multibulk length");
  CHECK(problem_of("*1\r\n$2147483647\r\n") == "ERR Protocol error: invalid bulk length");
  CHECK(problem_of("*1\r\n$-7\r\n") == "ERR Protocol error: invalid bulk length");
  CHECK(problem_of("*1\r\n:1\r\n") == "ERR Protocol error: expected '$', got ':'");
  CHECK(problem_of("*1\r\n*1\r\n*1\r\n") == "ERR Protocol error: expected '$', got '*'");
  CHECK(problem_of("*" + std::string(70'000, '1')) == "ERR Protocol error: too big mbulk count string");
  CHECK(problem_of("*1\r\n$" + std::string(70'000, '1')) == "ERR Protocol error: too big bulk count string");
  CHECK(problem_of(std::string(70'000, 'A')) == "ERR Protocol error: too big inline request");
  CHECK(problem_of("SET k \"a\r\n") == "ERR Protocol error: unbalanced quotes in request");
  CHECK(problem_of("SET k \"a\"b\r\n") == "ERR Protocol error: unbalanced quotes in request");
  CHECK(problem_of("*1\r\n$3\r\nabcd\r\n") == "ERR Protocol error: expected CRLF behind a bulk string");
  CHECK(problem_of("*-5\r\n").empty());  // Nothing is asked, so nothing is answered.
}

TEST_CASE("resp: a stranger may announce less, and is told why") {
  const RespLimits stranger = RespLimits::of_stranger();
  CHECK(problem_of("*11\r\n", stranger) == "ERR Protocol error: unauthenticated multibulk length");
  CHECK(problem_of("*1\r\n$16385\r\n", stranger) == "ERR Protocol error: unauthenticated bulk length");
  CHECK(problem_of("*1\r\n$16384\r\n", stranger).empty());
}

TEST_CASE("resp: memory follows what has arrived, not what was announced") {
  RespParser parser;
  const std::string announced = "*1048576\r\n$67108864\r\n";
  CHECK(parser.next(announced) == Step::more);
  CHECK(parser.memory_bytes() < 4'096);
}

TEST_CASE("resp: a request as a whole has its limit, too") {
  RespLimits limits;
  limits.word_bytes_max = 10;
  limits.request_bytes_max = 15;
  CHECK(problem_of("*3\r\n$9\r\n123456789\r\n$6\r\n123456\r\n$1\r\n", limits) == "ERR Protocol error: too big request");
  CHECK(problem_of("*2\r\n$9\r\n123456789\r\n$6\r\n123456\r\n", limits).empty());
}

TEST_CASE("resp: inline words take quotes and escapes") {
  std::vector<std::string> words;
  REQUIRE(split_quoted(R"(a  "b\x41\n\"c" 'd\'e\n' "")", words));
  CHECK(words == WordList{"a", "bA\n\"c", "d'e\\n", ""});
  CHECK_FALSE(split_quoted("'a", words));
  CHECK_FALSE(split_quoted("\"a\\", words));
}

TEST_CASE("resp: answers are those of the version that the client chose") {
  std::string text;
  RespWriter two(text, 2);
  two.map(1);
  two.bulk("k");
  two.null();
  two.error("ERR a\r\nb");
  CHECK(text == "*2\r\n$1\r\nk\r\n$-1\r\n-ERR a  b\r\n");
  text.clear();
  RespWriter three(text, 3);
  three.map(1);
  three.set(0);
  three.null();
  three.verbatim("t");
  three.integer(-5);
  CHECK(text == "%1\r\n~0\r\n_\r\n=5\r\ntxt:t\r\n:-5\r\n");
}

}  // namespace
}  // namespace kvingest::net
