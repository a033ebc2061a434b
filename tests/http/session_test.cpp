// A session against a server of our own: many requests, one thread, results as they come.
#include <set>
#include <thread>

#include "tests/http/client.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

using http::Kind;

std::vector<http::Request> many(const FaultServer& server, int count, const std::string& path = "/item") {
  std::vector<http::Request> requests;
  for (int i = 0; i < count; ++i) {
    requests.push_back({.url = server.url(path),
                        .params = {{"i", std::to_string(i)}},
                        .retry = quick_retries(),
                        .tag = "t" + std::to_string(i)});
  }
  return requests;
}

Reply echo_target(const Seen& seen) {
  return answer(200, seen.target);
}

TEST_CASE("http session: a get sends its parameters, headers and name, and gives the answer") {
  FaultServer server;
  server.on("/hello", [](const Seen&) { return answer(200, "world", {{"X-Kind", "greeting"}}); });
  auto options = on_loopback();
  options.user_agent = "a-test/1.0 (ops@example.com)";
  http::Session session(options);
  const auto response =
      session.get(server.url("/hello"), {.params = {{"q", "a b"}}, .headers = {{"X-Mine", "yes"}}, .tag = "mine"});
  CHECK(response.ok());
  CHECK(response.status == 200);
  CHECK(response.body == "world");
  CHECK(response.header("x-kind") == "greeting");
  CHECK(response.tag == "mine");
  const Seen seen = server.seen().at(0);
  CHECK(seen.target == "/hello?q=a%20b");
  CHECK(seen.header("x-mine") == "yes");
  CHECK(seen.header("accept") == "*/*");
  CHECK(seen.header("user-agent") == "a-test/1.0 (ops@example.com)");
}

TEST_CASE("http session: a status says what it means, and the body is kept") {
  FaultServer server;
  server.on("/404", [](const Seen&) { return answer(404, "not here"); });
  server.on("/500", [](const Seen&) { return answer(500, "broken"); });
  server.on("/204", [](const Seen&) { return Reply{send(head(204))}; });
  http::Session session(on_loopback());
  const auto missing = session.get(server.url("/404"), quick());
  CHECK_KIND(missing, Kind::http_4xx);
  CHECK(missing.body == "not here");
  CHECK(missing.attempts == 1);
  const auto broken = session.get(server.url("/500"), quick());
  CHECK_KIND(broken, Kind::http_5xx);
  CHECK(broken.attempts == 3);
  CHECK(session.get(server.url("/204")).ok());
}

TEST_CASE("http session: what a caller does wrong is said and not sent") {
  FaultServer server;
  http::Session session(on_loopback());
  CHECK_KIND(session.get("no url"), Kind::usage);
  CHECK_KIND(session.get("ftp://127.0.0.1/x"), Kind::usage);
  CHECK_KIND(session.get(server.url("/"), {.headers = {{"X", "a\r\nY: b"}}}), Kind::usage);
  CHECK(server.seen().empty());
}

TEST_CASE("http session: gather gives responses in the order of their requests, whatever the server's") {
  FaultServer server;
  server.on("/item", [](const Seen& seen) {
    Reply steps = echo_target(seen);
    if (seen.count % 3 == 0) steps.insert(steps.begin(), wait(milliseconds(20)));
    return steps;
  });
  http::Session session(on_loopback());
  std::set<std::string> ticked;
  const auto batch =
      session.gather(many(server, 60), {.on_done = [&](const http::Response& r) { ticked.insert(r.tag); }});
  REQUIRE(batch.complete());
  CHECK(ticked.size() == 60);
  for (int i = 0; i < 60; ++i)
    CHECK(batch.responses[static_cast<std::size_t>(i)].body == "/item?i=" + std::to_string(i));
}

TEST_CASE("http session: responses are given out as they finish, and the window bounds what is under way") {
  FaultServer server;
  server.on("/item", echo_target);
  http::Session session(on_loopback());
  std::size_t asked = 0;
  std::size_t taken = 0;
  std::size_t most = 0;
  auto results = session.stream_of(
      [&]() -> std::optional<http::Request> {
        if (asked == 500) return std::nullopt;
        ++asked;
        most = std::max(most, asked - taken);
        return http::Request{.url = server.url("/item"), .params = {{"i", std::to_string(asked)}}};
      },
      {.window = 7});
  while (const auto response = results.next()) {
    ++taken;
    CHECK(response->ok());
  }
  CHECK(taken == 500);
  CHECK(most <= 8);  // The one being asked for, and seven under way.
}

TEST_CASE("http session: one slow answer holds up no other") {
  FaultServer server;
  server.on("/slow", [](const Seen&) { return Reply{stall()}; });
  server.on("/item", echo_target);
  http::Session session(on_loopback());
  auto slow = session.send({.url = server.url("/slow")});
  CHECK(session.gather(many(server, 20)).complete());
  CHECK_FALSE(slow.ready());
  slow.cancel();
  CHECK_KIND(slow.get(), Kind::cancelled);
}

TEST_CASE("http session: connections are kept, and no more are made than the origin's window") {
  FaultServer server;
  server.on("/item", echo_target);
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 4, .connections = 4}));
  REQUIRE(session.gather(many(server, 200)).complete());
  CHECK(server.connections() <= 4);
}

TEST_CASE("http session: servers that close each connection are not asked one by one") {
  FaultServer server;
  server.on("/item", [](const Seen&) {
    return Reply{wait(milliseconds(150)), send(head(200, {{"Connection", "close"}, {"Content-Length", "1"}}) + "x"),
                 close()};
  });
  http::Session session(on_loopback());
  CHECK(session.gather(many(server, 6)).complete());
  const auto seen = server.seen();
  REQUIRE(seen.size() == 6);
  // One by one the last would come when five had been answered.
  CHECK(seen.back().at - seen.front().at < milliseconds(5 * 150));
}

TEST_CASE("http session: a stop_token cancels what is queued, what waits and what is under way") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return Reply{stall()}; });
  http::Session session(on_loopback());
  std::stop_source stop;
  std::thread stopper([&] {
    eventually([&] { return server.seen().size() >= 2; });
    stop.request_stop();
  });
  const auto batch = session.gather(many(server, 50), {.stop = stop.get_token()});
  stopper.join();
  REQUIRE(batch.responses.size() == 50);
  for (const auto& response : batch.responses) CHECK(response.error.kind == Kind::cancelled);
}

TEST_CASE("http session: a batch that is cancelled takes requests along that have a token of their own") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return Reply{stall()}; });
  http::Session session(on_loopback());
  const std::stop_source never;
  auto requests = many(server, 5);
  for (auto& request : requests) request.stop = never.get_token();
  auto results = session.stream_of(std::move(requests));
  std::thread canceller([&] {
    eventually([&] { return !server.seen().empty(); });
    results.cancel();
  });
  int cancelled = 0;
  while (const auto response = results.next()) cancelled += response->error.kind == Kind::cancelled ? 1 : 0;
  canceller.join();
  CHECK(cancelled == 5);
}

TEST_CASE("http session: fail_fast ends a batch with its first failure") {
  FaultServer server;
  server.on("/item", [](const Seen& seen) { return seen.count == 3 ? answer(404, "") : Reply{stall()}; });
  http::Session session(on_loopback());
  const auto batch = session.gather(many(server, 10), {.fail_fast = true});
  CHECK_FALSE(batch.complete());
  CHECK(batch.succeeded == 0);
}

TEST_CASE("http session: a session that ends gives every request its response") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return Reply{stall()}; });
  std::vector<http::Pending> pending;
  {
    http::Session session(on_loopback());
    for (auto& request : many(server, 20)) pending.push_back(session.send(std::move(request)));
    REQUIRE(eventually([&] { return !server.seen().empty(); }));
  }
  for (auto& one : pending) CHECK_KIND(one.get(), Kind::cancelled);
}

TEST_CASE("http session: a post carries its body and is not sent twice") {
  FaultServer server;
  server.on("/post", [](const Seen&) { return answer(503, ""); });
  http::Session session(on_loopback());
  const auto response =
      session.request({.url = server.url("/post"), .method = "POST", .body = "a=1", .retry = quick_retries(5)});
  CHECK_FALSE(response.ok());
  const auto seen = server.seen();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].method == "POST");
  CHECK(seen[0].body == "a=1");
}

TEST_CASE("http session: a verdict may call an answer with status 200 a failure, and have it tried again") {
  FaultServer server;
  server.on("/note", [](const Seen& seen) {
    return seen.count < 3 ? answer(200, R"({"Note":"too many calls"})") : answer(200, "date,close\n");
  });
  http::Session session(on_loopback());
  http::Request request = quick(5);
  request.verdict = [](const http::Response& response) -> http::Verdict {
    if (response.body.starts_with("{")) return {.kind = Kind::rejected, .retry = true, .message = "no table"};
    return http::by_status(response);
  };
  const auto response = session.get(server.url("/note"), request);
  CHECK(response.ok());
  CHECK(response.attempts == 3);
}

TEST_CASE("http session: a verdict that throws fails its request alone") {
  FaultServer server;
  server.on("/item", echo_target);
  http::Session session(on_loopback());
  http::Request request = quick();
  request.verdict = [](const http::Response&) -> http::Verdict { throw std::runtime_error("no idea"); };
  const auto response = session.get(server.url("/item"), request);
  CHECK_KIND(response, Kind::rejected);
  CHECK_THAT(response.error.text, contains_text("no idea"));
  CHECK(session.get(server.url("/item")).ok());
}

TEST_CASE("http session: no text that leaves it holds a secret") {
  FaultServer server;
  server.on("/keyed", [](const Seen& seen) { return answer(403, "your key " + seen.target + " is bad"); });
  http::Session session(on_loopback());
  http::Request request = quick();
  request.auth = {.kind = http::Auth::Kind::query, .name = "apikey", .secret = http::Secret("s3cr+t/key")};
  request.verdict = [](const http::Response& response) -> http::Verdict {
    return {.kind = Kind::http_4xx, .message = response.body + " s3cr+t/key"};
  };
  const auto response = session.get(server.url("/keyed"), request);
  CHECK(server.seen().at(0).target == "/keyed?apikey=s3cr%2Bt%2Fkey");
  CHECK(response.url.find("s3cr") == std::string::npos);
  CHECK(response.error.text.find("s3cr") == std::string::npos);
  CHECK_THAT(response.error.text, contains_text("***"));
}

}  // namespace
}  // namespace kvingest::test
