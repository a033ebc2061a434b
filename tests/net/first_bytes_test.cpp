// First bytes: four protocols are recognized however the network cuts them, and nothing else is.
#include "net/first_bytes.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

using namespace std::string_literals;

/// What a stream is found to be when its bytes come one by one.
FirstBytes byte_by_byte(const std::string& stream) {
  for (std::size_t bytes = 0; bytes <= stream.size(); ++bytes) {
    const FirstBytes found = recognize(std::string_view(stream).substr(0, bytes));
    if (found != FirstBytes::undecided) return found;
  }
  return FirstBytes::undecided;
}

TEST_CASE("requests of other protocols are recognized, whole or byte by byte") {
  const std::pair<std::string, FirstBytes> cases[] = {
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", FirstBytes::http},
      {"POST /a?b=c HTTP/1.0\r\n", FirstBytes::http},
      {"PUT /x HTTP/1.1", FirstBytes::http},
      {"HEAD / HTTP/1.1", FirstBytes::http},
      {"OPTIONS * HTTP/1.1", FirstBytes::http},
      {"CONNECT a:443 HTTP/1.1", FirstBytes::http},
      {"\x16\x03\x01\x02\x00\x01"s, FirstBytes::tls},
      {"\x16\x03\x04"s, FirstBytes::tls},
      {"\xFF\xFD\x18", FirstBytes::telnet},
      {"\xFF\xFB\x01\xFF\xFB\x03", FirstBytes::telnet},
      {"*1\r\n$4\r\nPING\r\n", FirstBytes::resp},
      {"*12\r\n$", FirstBytes::resp},
  };
  for (const auto& [stream, wanted] : cases) {
    CAPTURE(stream);
    CHECK(recognize(stream) == wanted);
    CHECK(byte_by_byte(stream) == wanted);
  }
}

TEST_CASE("data may begin like a protocol") {
  for (const std::string& stream : {"GET a life\n"s, "GET  / HTTP/1.1"s, "GETTING"s, "get / HTTP/1.1"s,
                                    "PATCH / HTTP/1.1"s, "\xFF data"s, "\xFF\xFF"s,
                                    "\xFF\xFE"
                                    "A\0,\0"s,
                                    "\xFF\xFE\x01"s, "\xFF\xFC"s, "\x16\x03\x05"s, "\x16\x04"s, "*1 is a rating\n"s,
                                    "*\r\n$"s, "*1\r\n+"s, "AAPL,1\n"s, "GET /\n"s}) {
    CAPTURE(stream);
    CHECK(recognize(stream) == FirstBytes::lines);
    CHECK(byte_by_byte(stream) == FirstBytes::lines);
  }
}

TEST_CASE("what could still become a pattern is undecided, but not for ever") {
  for (const std::string& stream : {""s, "G"s, "GET /path"s, "GET / HTT"s, "\x16"s, "\xFF"s, "*"s, "*12"s, "*1\r"s}) {
    CAPTURE(stream);
    CHECK(recognize(stream) == FirstBytes::undecided);
  }
  CHECK(recognize("*" + std::string(kFirstBytesMax, '1')) == FirstBytes::lines);
  CHECK(recognize("GET /" + std::string(kFirstBytesMax, 'x')) == FirstBytes::lines);
}

}  // namespace
}  // namespace kvingest::net
