// Endpoints: the forms people write, and which addresses only this machine can reach.
#include "net/endpoint.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

bool local(std::string_view text) {
  const auto endpoint = parse_endpoint(text);
  REQUIRE(endpoint);
  const auto addresses = resolve(*endpoint);
  REQUIRE(addresses);
  return is_local(addresses->front());
}

TEST_CASE("an endpoint is HOST:PORT, [V6]:PORT or unix:PATH and prints as it was written") {
  for (const std::string text : {"127.0.0.1:5555", "localhost:0", "[::1]:80", "unix:/tmp/kv.sock"}) {
    const auto endpoint = parse_endpoint(text);
    REQUIRE(endpoint);
    CHECK(endpoint->text() == text);
  }
}

TEST_CASE("what is no endpoint is refused with the form that is wanted") {
  for (const std::string text :
       {"", "5555", "localhost", "localhost:", ":5555", "localhost:http", "localhost:65536", "localhost:-1", "unix:"}) {
    CAPTURE(text);
    const auto endpoint = parse_endpoint(text);
    REQUIRE_FALSE(endpoint);
    CHECK(endpoint.error().code == Code::invalid_argument);
  }
  CHECK_FALSE(parse_endpoint("unix:" + std::string(200, 'p')));
}

TEST_CASE("loopback addresses and Unix sockets are local, all others are not") {
  CHECK(local("127.0.0.1:1"));
  CHECK(local("127.9.9.9:1"));
  CHECK(local("[::1]:1"));
  CHECK(local("unix:/tmp/x"));
  CHECK_FALSE(local("0.0.0.0:1"));
  CHECK_FALSE(local("[::]:1"));
  CHECK_FALSE(local("192.0.2.1:1"));
}

TEST_CASE("an address prints with its port") {
  for (const std::string text : {"127.0.0.1:5555", "[::1]:5555", "unix:/tmp/kv.sock"}) {
    const auto addresses = resolve(*parse_endpoint(text));
    REQUIRE(addresses);
    CHECK(to_text(addresses->front()) == text);
  }
}

}  // namespace
}  // namespace kvingest::net
