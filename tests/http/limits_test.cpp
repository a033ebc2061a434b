// What an origin allows: rates, refusals, pauses. A refusal is the origin's, not one request's.
#include <deque>

#include "tests/http/client.hpp"

namespace kvingest::test {
namespace {

using http::Kind;
using namespace std::chrono_literals;

std::vector<http::Request> limited_requests(const FaultServer& server, int count, unsigned attempts = 5) {
  std::vector<http::Request> requests;
  for (int i = 0; i < count; ++i) {
    requests.push_back({.url = server.url("/item"), .retry = quick_retries(attempts)});
  }
  return requests;
}

/// Refuses more than `units` in any `per`.
struct Limiter {
  std::size_t units;
  std::chrono::milliseconds per;
  std::deque<std::chrono::steady_clock::time_point> taken = {};
  int refused = 0;

  Reply operator()(const Seen& seen) {
    while (!taken.empty() && taken.front() + per <= seen.at) taken.pop_front();
    if (taken.size() >= units) {
      ++refused;
      return answer(429, "slow down");
    }
    taken.push_back(seen.at);
    return answer(200, "x");
  }
};

TEST_CASE("http limits: a known rate is kept, so nothing is refused") {
  FaultServer server;
  Limiter limiter{20, 500ms};
  server.on("/item", [&](const Seen& seen) { return limiter(seen); });
  http::Session session(on_loopback());
  // A tenth of slack for the way there.
  REQUIRE_OK(session.limit(server.origin(), {.rates = {{20, 550ms}}, .in_flight = 8}));
  CHECK(session.gather(limited_requests(server, 80)).complete());
  CHECK(limiter.refused <= 1);
}

TEST_CASE("http limits: a refusal pauses the whole origin for as long as it asks") {
  FaultServer server;
  server.on("/item", [](const Seen& seen) {
    return seen.count == 1 ? answer(429, "", {{"Retry-After", "1"}}) : answer(200, "x");
  });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1}));
  REQUIRE(session.gather(limited_requests(server, 5)).complete());
  const auto seen = server.seen();
  REQUIRE(seen.size() == 6);
  CHECK(seen[1].at - seen[0].at >= 990ms);
}

TEST_CASE("http limits: an unknown rate is found with few refusals, however many are asked for at once") {
  FaultServer server;
  Limiter limiter{20, 200ms};
  server.on("/item", [&](const Seen& seen) { return limiter(seen); });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 32, .connections = 32, .breaker_failures = 1000}));
  const auto batch = session.gather(limited_requests(server, 100, 50));
  CHECK(batch.complete());
  INFO(limiter.refused);
  CHECK(limiter.refused < 80);  // Without pauses each of a hundred is refused again and again.
}

TEST_CASE("http limits: Retry-After in the past or in rubbish is not waited for, and one without end is cut") {
  for (const char* value : {"-5", "soon", "Mon, 01 Jan 2001 00:00:00 GMT", "0"}) {
    FaultServer server;
    server.on("/item", [&](const Seen& seen) {
      return seen.count == 1 ? answer(429, "", {{"Retry-After", value}}) : answer(200, "x");
    });
    http::Session session(on_loopback());
    INFO(value);
    CHECK(session.gather(limited_requests(server, 1)).complete());
  }
  FaultServer server;
  server.on("/item", [](const Seen& seen) {
    return seen.count == 1 ? answer(503, "", {{"Retry-After", "999999999"}}) : answer(200, "x");
  });
  http::Session session(on_loopback());
  auto requests = limited_requests(server, 1);
  requests[0].retry.retry_after_max = 50ms;
  CHECK(session.gather(requests).complete());
}

TEST_CASE("http limits: a wait beyond the deadline fails what waits, at once and with the time to come back") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return answer(429, "", {{"Retry-After", "3000"}}); });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1}));
  auto requests = limited_requests(server, 10);
  for (auto& request : requests) request.retry.deadline = 1min;
  const auto batch = session.gather(requests);
  CHECK(server.seen().size() == 1);
  for (const auto& response : batch.responses) {
    CHECK_KIND(response, Kind::rate_limited);
    REQUIRE(response.error.retry_after);
    CHECK(*response.error.retry_after > 2000s);
  }
}

TEST_CASE("http limits: a quota that is used up is not overdrawn") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return answer(200, "x"); });
  http::Session session(on_loopback());
  const auto now = std::chrono::system_clock::now();
  REQUIRE_OK(session.limit(server.origin(), {.quotas = {{{25, 24h}, 22, now - 1h}}}));
  const auto batch = session.gather(limited_requests(server, 10));
  CHECK(batch.succeeded == 3);
  CHECK(server.seen().size() == 3);
  CHECK_KIND(batch.responses.back(), Kind::quota);
  const auto states = session.origins();
  REQUIRE(states.size() == 1);
  CHECK(states[0].quotas.at(0).used == 25);
}

TEST_CASE("http limits: what waits its turn does not run out of its time") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return Reply{wait(100ms), send(head(200, {{"Content-Length", "0"}}))}; });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1}));
  auto requests = limited_requests(server, 8, 1);
  for (auto& request : requests) request.timeout.total = 600ms;  // All eight one after the other take longer.
  CHECK(session.gather(requests).complete());
}

TEST_CASE("http limits: a request may say how long it waits for its turn") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return Reply{stall()}; });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1}));
  auto first = session.send({.url = server.url("/item")});
  http::Request second{.url = server.url("/item")};
  second.timeout.queue = 50ms;
  CHECK_KIND(session.request(std::move(second)), Kind::queue_timeout);
  first.cancel();
}

TEST_CASE("http limits: an origin that only fails is left alone, and what waits for it is told") {
  FaultServer server;
  server.on("/item", [](const Seen&) { return answer(500, ""); });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1, .breaker_failures = 4, .breaker_pause = 1h}));
  const auto batch = session.gather(limited_requests(server, 30, 2));
  CHECK(batch.succeeded == 0);
  CHECK(server.seen().size() == 4);
  CHECK_KIND(batch.responses.back(), Kind::rate_limited);
}

TEST_CASE("http limits: an origin that recovers is asked again, one request first") {
  FaultServer server;
  server.on("/item", [](const Seen& seen) { return seen.count <= 3 ? answer(500, "") : answer(200, "x"); });
  http::Session session(on_loopback());
  REQUIRE_OK(session.limit(server.origin(), {.in_flight = 1, .breaker_failures = 3, .breaker_pause = 50ms}));
  CHECK(session.gather(limited_requests(server, 3, 1)).succeeded == 0);
  CHECK(session.gather(limited_requests(server, 5, 3)).complete());
}

TEST_CASE("http limits: a header that tells of a used budget stops us before the server does") {
  FaultServer server;
  server.on("/item", [](const Seen& seen) {
    return answer(200, "x", {{"X-MBX-USED-WEIGHT-1M", seen.count < 3 ? "100" : "5500"}});
  });
  http::Session session(on_loopback());
  http::OriginLimits limits{.in_flight = 1};
  limits.used_header = http::UsedHeader{"x-mbx-used-weight-1m", 6000};
  REQUIRE_OK(session.limit(server.origin(), limits));
  auto requests = limited_requests(server, 5);
  for (auto& request : requests) request.retry.deadline = 1s;
  const auto batch = session.gather(requests);
  CHECK(batch.succeeded == 3);
  CHECK(server.seen().size() == 3);
}

}  // namespace
}  // namespace kvingest::test
