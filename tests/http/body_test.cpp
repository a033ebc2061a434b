// Bodies that end early, lie about themselves or never end: none is taken for a whole one.
#include "tests/http/client.hpp"

namespace kvingest::test {
namespace {

using http::Kind;

struct World {
  FaultServer server;
  http::Session session{on_loopback()};

  http::Response get(const std::string& path, http::Request request = quick(2)) {
    return session.get(server.url(path), std::move(request));
  }
};

std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i * 7919) + "," + std::to_string(i) + "\n";
  return text;
}

TEST_CASE("http body: a body shorter than its Content-Length is truncated, and tried again") {
  World world;
  world.server.on("/short", [](const Seen& seen) {
    return seen.count == 1 ? Reply{send(head(200, {{"Content-Length", "10"}}) + "half"), close()}
                           : answer(200, "whole");
  });
  const auto response = world.get("/short");
  CHECK_KIND(response, Kind::none);
  CHECK(response.body == "whole");
  CHECK(response.attempts == 2);
  CHECK_KIND(world.get("/short", quick(1)), Kind::none);
}

TEST_CASE("http body: chunks without their end are truncated") {
  World world;
  world.server.on("/cut", [](const Seen&) {
    return Reply{send(head(200, {{"Transfer-Encoding", "chunked"}}) + chunk("some,rows\n")), close()};
  });
  const auto response = world.get("/cut");
  CHECK_KIND(response, Kind::truncated);
  CHECK(response.attempts == 2);
}

TEST_CASE("http body: a gzip body that is cut is truncated, though its transfer was whole") {
  World world;
  const std::string body = gzipped(rows(1000));
  for (const std::size_t missing : {std::size_t{4}, std::size_t{30}}) {
    world.server.on("/gz", [&](const Seen&) {
      return answer(200, body.substr(0, body.size() - missing), {{"Content-Encoding", "gzip"}});
    });
    CHECK_KIND(world.get("/gz", quick(1)), Kind::truncated);
  }
  world.server.on("/gz", [&](const Seen&) { return answer(200, body, {{"Content-Encoding", "gzip"}}); });
  const auto whole = world.get("/gz");
  CHECK_KIND(whole, Kind::none);
  CHECK(whole.body == rows(1000));
  CHECK(world.server.seen().back().header("accept-encoding") == "gzip");
}

TEST_CASE("http body: what is labelled gzip and is not is a bad encoding") {
  World world;
  world.server.on("/plain", [](const Seen&) { return answer(200, "plain text", {{"Content-Encoding", "gzip"}}); });
  CHECK_KIND(world.get("/plain", quick(1)), Kind::bad_encoding);
  world.server.on("/empty", [](const Seen&) { return answer(200, "", {{"Content-Encoding", "gzip"}}); });
  CHECK_KIND(world.get("/empty", quick(1)), Kind::none);
}

TEST_CASE("http body: a bomb ends early and is not tried again") {
  World world;
  const std::string bomb = gzipped(std::string(32 << 20, ' '));
  world.server.on("/bomb", [&](const Seen&) { return answer(200, bomb, {{"Content-Encoding", "gzip"}}); });
  const auto response = world.get("/bomb");
  CHECK_KIND(response, Kind::bomb);
  CHECK(response.attempts == 1);
  CHECK(response.body.size() < (std::size_t{4} << 20));
}

TEST_CASE("http body: a body beyond its bound is refused, announced or not") {
  World world;
  world.server.on("/announced", [](const Seen&) { return answer(200, std::string(5000, 'x')); });
  world.server.on("/chunked", [](const Seen&) {
    return Reply{send(head(200, {{"Transfer-Encoding", "chunked"}})), send(chunk(std::string(5000, 'x')) + chunk(""))};
  });
  for (const char* path : {"/announced", "/chunked"}) {
    http::Request request = quick();
    request.body_bytes_max = 1000;
    const auto response = world.get(path, request);
    CHECK_KIND(response, Kind::too_large);
    CHECK(response.body.size() <= 1000);
  }
}

TEST_CASE("http body: a server that resets, or says nothing, is a broken connection and tried again") {
  World world;
  world.server.on("/reset", [](const Seen& seen) {
    if (seen.count == 1) return Reply{reset()};
    if (seen.count == 2) return Reply{close()};
    if (seen.count == 3) return Reply{send(head(200, {{"Content-Length", "10"}}) + "half"), reset()};
    return answer(200, "at last");
  });
  const auto response = world.get("/reset", quick(4));
  CHECK_KIND(response, Kind::none);
  CHECK(response.body == "at last");
  CHECK(response.attempts >= 2);  // libcurl itself tries once more where a kept connection was closed.
}

TEST_CASE("http body: what is no HTTP is a protocol error, and an endless head ends") {
  World world;
  world.server.on("/junk", [](const Seen&) { return Reply{send("220 ready for mail\r\n"), close()}; });
  const auto junk = world.get("/junk", quick(1));
  CHECK_FALSE(junk.ok());
  world.server.on("/head", [](const Seen&) {
    std::string text = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 20'000; ++i) text += "X-Filler: " + std::string(60, 'x') + "\r\n";
    return Reply{send(text), stall()};
  });
  CHECK_KIND(world.get("/head", quick(1)), Kind::protocol);
}

TEST_CASE("http body: a stall before the head and one in the body end by their own bounds") {
  World world;
  world.server.on("/silent", [](const Seen&) { return Reply{stall()}; });
  world.server.on("/stalls", [](const Seen&) {
    return Reply{send(head(200, {{"Content-Length", "10"}}) + "half"), stall()};
  });
  world.server.on("/drips", [](const Seen&) {
    Reply steps{send(head(200, {{"Content-Length", "1000"}}))};
    for (int i = 0; i < 1000; ++i) {
      steps.push_back(send("x"));
      steps.push_back(wait(milliseconds(20)));
    }
    return steps;
  });
  http::Request request = quick(1);
  request.timeout.first_byte = milliseconds(100);
  CHECK_KIND(world.get("/silent", request), Kind::first_byte_timeout);
  request = quick(1);
  request.timeout.idle = milliseconds(100);
  CHECK_KIND(world.get("/stalls", request), Kind::stalled);
  request = quick(1);
  request.timeout.total = milliseconds(300);
  CHECK_KIND(world.get("/drips", request), Kind::total_timeout);
}

TEST_CASE("http body: nobody at the address is a failure to connect") {
  std::string url;
  {
    FaultServer gone;
    url = gone.url("/");
  }
  http::Session session(on_loopback());
  const auto response = session.get(url, quick(2));
  CHECK_KIND(response, Kind::connect);
  CHECK(response.attempts == 2);
}

}  // namespace
}  // namespace kvingest::test
