// The parts of the client that need no server: addresses, waits, rates, inflation.
#include <map>

#include "http/inflate.hpp"
#include "http/rate_limit.hpp"
#include "http/redactor.hpp"
#include "http/retry.hpp"
#include "http/url.hpp"
#include "tests/http/client.hpp"

namespace kvingest::http {
namespace {

using namespace std::chrono_literals;
using test::gzipped;

TEST_CASE("http parts: an origin has its scheme, host and port, in one spelling") {
  CHECK(origin_of("HTTPS://Example.COM/x?y#z").value() == "https://example.com:443");
  CHECK(origin_of("http://127.0.0.1:8080").value() == "http://127.0.0.1:8080");
  CHECK(origin_of("http://[::1]/").value() == "http://[::1]:80");
  for (const char* url : {"", "example.com", "ftp://example.com/", "http://", "http://a:port/", "file:///etc/passwd"}) {
    INFO(url);
    CHECK_CODE(origin_of(url), Code::invalid_argument);
  }
}

TEST_CASE("http parts: parameters are encoded to their last byte and follow what is there") {
  CHECK(with_params("http://h/p", {{"a b", "c&d=e"}, {"s", "^GSPC/x"}}) == "http://h/p?a%20b=c%26d%3De&s=%5EGSPC%2Fx");
  CHECK(with_params("http://h/p?x=1#frag", {{"y", "2"}}) == "http://h/p?x=1&y=2");
  CHECK(with_params("http://h/p?", {{"y", ""}}) == "http://h/p?y=");
  CHECK(query_value("http://h/p?x=1&name=a%20b%26c", "name") == "a b&c");
  CHECK(query_value("http://h/p?x=1", "name").empty());
}

TEST_CASE("http parts: a redirect's address is read on the page it came from") {
  CHECK(resolved("http://h:81/a/b?q", "../c?d").value() == "http://h:81/c?d");
  CHECK(resolved("http://h/a", "//other/x").value() == "http://other/x");
  CHECK(resolved("http://h/a", "https://o/x").value() == "https://o/x");
  CHECK_CODE(resolved("http://h/a", "file:///etc/passwd"), Code::invalid_argument);
  CHECK(moved_to("https://api.example.com/v1/x?y=1", "http://127.0.0.1:99").value() == "http://127.0.0.1:99/v1/x?y=1");
}

TEST_CASE("http parts: Retry-After is seconds, fractions or a date, and never negative") {
  const auto now = std::chrono::system_clock::from_time_t(1'700'000'000);  // Tue, 14 Nov 2023 22:13:20 GMT
  CHECK(parse_retry_after("120", now) == 120s);
  CHECK(parse_retry_after(" 1.5 ", now) == 1500ms);
  CHECK(parse_retry_after("-3600", now) == 0ms);
  CHECK(parse_retry_after("Tue, 14 Nov 2023 22:14:20 GMT", now) == 60s);
  CHECK(parse_retry_after("Tue, 14 Nov 2023 21:13:20 GMT", now) == 0ms);
  CHECK(parse_retry_after("99999999999999999999", now) == 1'000'000'000s);
  for (const char* junk : {"", "soon", "1,5", "1.5.5", "-", "0x10"}) {
    INFO(junk);
    CHECK_FALSE(parse_retry_after(junk, now).has_value());
  }
}

TEST_CASE("http parts: waits are spread over the whole span, which doubles up to its bound") {
  const RetryPolicy policy{.base = 100ms, .delay_max = 1000ms};
  Backoff backoff(7);
  for (const auto& [failures, most] :
       std::map<unsigned, Milliseconds>{{0, 100ms}, {1, 200ms}, {3, 800ms}, {9, 1000ms}}) {
    Milliseconds least = most;
    Milliseconds longest{0};
    for (int i = 0; i < 1000; ++i) {
      const Milliseconds delay = backoff.delay(policy, failures);
      least = std::min(least, delay);
      longest = std::max(longest, delay);
    }
    CHECK(least < most / 10);
    CHECK(longest > most - most / 10);
    CHECK(longest <= most);
  }
}

TEST_CASE("http parts: a rate holds in every span, also across the edge of two") {
  const auto rate = parse_rate("5/1m");
  REQUIRE_OK(rate);
  RateWindow window(*rate);
  Clock::time_point now{};
  std::vector<Clock::time_point> sent;
  for (int i = 0; i < 40; ++i) {
    now = window.when(now, 1);
    window.take(now, 1);
    sent.push_back(now);
    now += 7s;
  }
  for (std::size_t i = 5; i < sent.size(); ++i) CHECK(sent[i] - sent[i - 5] >= 60s);
  CHECK(window.when(now, 100) <= now + 60s);  // More than ever fits waits until nothing else is in the span.
  for (const char* wrong : {"5", "5/", "/1m", "0/1m", "5/0s", "x/1m", "5/1 fortnight"}) {
    INFO(wrong);
    CHECK_CODE(parse_rate(wrong), Code::invalid_argument);
  }
}

TEST_CASE("http parts: a quota goes on where another process left it, and begins anew when its span is over") {
  const auto now = std::chrono::system_clock::now();
  Quota quota{{25, 24h}, 24, now - 1h};
  CHECK(when_allowed(quota, 1, now) == now);
  take(quota, 1, now);
  CHECK(when_allowed(quota, 1, now) == now - 1h + 24h);
  CHECK(when_allowed(quota, 1, now + 23h) == now + 23h);
  CHECK(quota.used == 0);
}

TEST_CASE("http parts: secrets are found as they are and encoded") {
  Redactor redactor;
  redactor.add("k3y/+secret");
  redactor.add("");
  CHECK(redactor.redacted("GET /?apikey=k3y%2F%2Bsecret said: your key k3y/+secret") ==
        "GET /?apikey=*** said: your key ***");
  CHECK(redactor.found_in("http://evil/?x=k3y%2F%2Bsecret"));
  CHECK_FALSE(redactor.found_in("http://evil/"));
}

/// Decodes `body` in pieces of `step` bytes.
std::pair<Kind, std::string> decoded(std::string_view encoding, std::string_view body, std::size_t step,
                                     std::uint64_t bytes_max = 0, unsigned ratio_max = 200) {
  BodyDecoder decoder;
  std::string out;
  Kind kind = decoder.begin(encoding, bytes_max, ratio_max);
  for (std::size_t at = 0; kind == Kind::none && at < body.size(); at += step) {
    kind = decoder.write(body.substr(at, step), [&](std::string_view bytes) -> Result<void> {
      out += bytes;
      return {};
    });
  }
  if (kind == Kind::none) kind = decoder.finish();
  return {kind, out};
}

TEST_CASE("http parts: a gzip body is whole however the network cuts it") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919) + ",";
  const std::string body = gzipped(text);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, body.size()}) {
    CHECK(decoded("gzip", body, step) == std::pair(Kind::none, text));
    CHECK(decoded("gzip", gzipped("a") + gzipped("") + gzipped("b"), step) == std::pair(Kind::none, std::string("ab")));
  }
}

TEST_CASE("http parts: a gzip body that ends early is truncated wherever it ends") {
  const std::string body = gzipped("some text that is compressed, some text that is compressed");
  for (std::size_t bytes = 1; bytes < body.size(); ++bytes) {
    INFO(bytes);
    CHECK(decoded("gzip", std::string_view(body).substr(0, bytes), 5).first == Kind::truncated);
  }
}

TEST_CASE("http parts: what is not what its encoding says is refused, and so is what grows without bound") {
  CHECK(decoded("gzip", "plain text", 3).first == Kind::bad_encoding);
  CHECK(decoded("gzip", gzipped("a") + "rubbish", 4).first == Kind::bad_encoding);
  CHECK(decoded("br", "x", 1).first == Kind::bad_encoding);
  CHECK(decoded("", std::string(1001, 'x'), 100, 1000).first == Kind::too_large);
  const std::string bomb = gzipped(std::string(10 << 20, '\0'));
  CHECK(decoded("gzip", bomb, 512).first == Kind::bomb);
  CHECK(decoded("gzip", bomb, 512, 1 << 20, 0).first == Kind::too_large);
}

}  // namespace
}  // namespace kvingest::http
