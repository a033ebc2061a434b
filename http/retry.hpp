// retry.hpp -- what is worth another try, and when.
//
// Threads: pure functions; a Backoff belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string_view>

#include "kvingest/http_client.hpp"

namespace kvingest::http {

/// What Retry-After asks for: seconds, with a fraction, or a date. What lies in the past is zero; what is neither is
/// nothing. `now` is for dates.
[[nodiscard]] std::optional<Milliseconds> parse_retry_after(std::string_view value,
                                                            std::chrono::system_clock::time_point now);

/// What a CURLcode says. `connected`: the request had been sent.
[[nodiscard]] Kind kind_of_curl(int code, bool connected) noexcept;

/// Whether an attempt that ended so may be made again, where the method is one that changes nothing.
[[nodiscard]] bool is_worth_a_retry(Kind kind) noexcept;
[[nodiscard]] bool is_status_worth_a_retry(int status) noexcept;

/// Random waits: those that failed together do not come back together.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}
  /// Up to base * 2^failures, at most delay_max. `failures` counts from 0.
  [[nodiscard]] Milliseconds delay(const RetryPolicy& policy, unsigned failures);

 private:
  std::mt19937_64 random_;
};

}  // namespace kvingest::http
