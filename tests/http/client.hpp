// client.hpp -- what the tests of the HTTP client share: a session that stays on loopback and does not wait long.
#pragma once

#include "kvingest/http_client.hpp"
#include "tests/http/fault_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expect.hpp"

namespace kvingest::test {

using std::chrono::milliseconds;

/// No proxy of the environment stands between us and loopback.
inline http::SessionOptions on_loopback() {
  http::SessionOptions options;
  options.proxy = "";
  return options;
}

/// Retries at once: what is tried is that it is tried again, not how long it waits.
inline http::RetryPolicy quick_retries(unsigned attempts = 3) {
  return {.attempts = attempts, .base = milliseconds(1), .delay_max = milliseconds(5)};
}

inline http::Request quick(unsigned attempts = 3) {
  return {.retry = quick_retries(attempts)};
}

}  // namespace kvingest::test

/// The response failed with this kind; prints the response's own words when not.
#define CHECK_KIND(response, wanted)                                                                              \
  do {                                                                                                            \
    const auto& kv_response_ = (response);                                                                        \
    INFO("status " << kv_response_.status << ", " << ::kvingest::http::to_string(kv_response_.error.kind) << ": " \
                   << kv_response_.error.text);                                                                   \
    CHECK(kv_response_.error.kind == (wanted));                                                                   \
  } while (false)
