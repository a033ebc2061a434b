// Redirects: followed here, within bounds, and never with a secret to another origin.
#include "tests/http/client.hpp"

namespace kvingest::test {
namespace {

using http::Kind;

Reply move_to(int status, const std::string& place) {
  return answer(status, "", {{"Location", place}});
}

http::Request with_secrets() {
  http::Request request = quick();
  request.headers = {{"X-API-KEY", "header-secret"}, {"Cookie", "session=cookie-secret"}};
  request.auth = {.kind = http::Auth::Kind::bearer, .secret = http::Secret("bearer-secret")};
  return request;
}

TEST_CASE("http redirect: within an origin it is followed with all that was sent") {
  FaultServer server;
  server.on("/old", [](const Seen&) { return move_to(301, "/new?x=1"); });
  server.on("/new", [](const Seen&) { return answer(200, "here"); });
  http::Session session(on_loopback());
  const auto response = session.get(server.url("/old"), with_secrets());
  CHECK(response.ok());
  CHECK(response.body == "here");
  CHECK(response.attempts == 1);
  const Seen last = server.seen().back();
  CHECK(last.target == "/new?x=1");
  CHECK(last.header("authorization") == "Bearer bearer-secret");
  CHECK(last.header("x-api-key") == "header-secret");
}

TEST_CASE("http redirect: a key in the query is given again to its own origin") {
  FaultServer server;
  server.on("/old", [](const Seen&) { return move_to(302, "/new"); });
  server.on("/new", [](const Seen&) { return answer(200, "here"); });
  http::Session session(on_loopback());
  http::Request request = quick();
  request.auth = {.kind = http::Auth::Kind::query, .name = "apikey", .secret = http::Secret("query-secret")};
  CHECK(session.get(server.url("/old"), request).ok());
  CHECK(server.seen().back().target == "/new?apikey=query-secret");
}

TEST_CASE("http redirect: another port gets no secret, by whatever name it went") {
  FaultServer home;
  FaultServer other;
  home.on("/old", [&](const Seen&) { return move_to(307, other.url("/new")); });
  other.on("/new", [](const Seen&) { return answer(200, "here"); });
  http::Session session(on_loopback());
  CHECK(session.get(home.url("/old"), with_secrets()).ok());
  const Seen seen = other.seen().at(0);
  for (const auto& [name, value] : seen.headers) {
    INFO(name << ": " << value);
    CHECK(value.find("secret") == std::string::npos);
  }
}

TEST_CASE("http redirect: an address of another origin that holds the key is not followed") {
  FaultServer home;
  FaultServer other;
  home.on("/old", [&](const Seen& seen) { return move_to(302, other.origin() + seen.target); });
  other.on("/old", [](const Seen&) { return answer(200, "thanks"); });
  http::Session session(on_loopback());
  http::Request request = quick();
  request.auth = {.kind = http::Auth::Kind::query, .name = "apikey", .secret = http::Secret("query-secret")};
  const auto response = session.get(home.url("/old"), request);
  CHECK_KIND(response, Kind::redirect);
  CHECK(response.error.text.find("query-secret") == std::string::npos);
  CHECK(other.seen().empty());
}

TEST_CASE("http redirect: a loop ends, and so does a place that is none") {
  FaultServer server;
  server.on("/loop", [](const Seen&) { return move_to(302, "/loop"); });
  server.on("/file", [](const Seen&) { return move_to(302, "file:///etc/passwd"); });
  server.on("/nowhere", [](const Seen&) { return answer(302, ""); });
  http::Session session(on_loopback());
  http::Request request = quick();
  request.redirects_max = 5;
  CHECK_KIND(session.get(server.url("/loop"), request), Kind::redirect);
  CHECK(server.seen().size() == 6);
  CHECK_KIND(session.get(server.url("/file"), quick()), Kind::redirect);
  CHECK_KIND(session.get(server.url("/nowhere"), quick()), Kind::redirect);
}

TEST_CASE("http redirect: a body is not sent to another origin, and a password in an URL is not shown") {
  FaultServer home;
  FaultServer other;
  home.on("/form", [&](const Seen&) { return move_to(307, other.url("/form")); });
  http::Session session(on_loopback());
  CHECK_KIND(session.request({.url = home.url("/form"), .method = "POST", .body = "password=1"}), Kind::redirect);
  CHECK(other.seen().empty());
  std::string url = home.url("/none");
  url.insert(7, "me:pass%20word@");
  CHECK(session.get(url, quick()).url.find("pass") == std::string::npos);
}

TEST_CASE("http redirect: a post that is sent elsewhere becomes a get without its body") {
  FaultServer server;
  server.on("/form", [](const Seen&) { return move_to(303, "/done"); });
  server.on("/done", [](const Seen&) { return answer(200, "thanks"); });
  http::Session session(on_loopback());
  CHECK(session.request({.url = server.url("/form"), .method = "POST", .body = "a=1"}).ok());
  const Seen last = server.seen().back();
  CHECK(last.method == "GET");
  CHECK(last.body.empty());
}

}  // namespace
}  // namespace kvingest::test
