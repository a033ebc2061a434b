// rate_limit.hpp -- how much may be sent, and when: rates that all hold, and quotas that last longer than a process.
//
// A rate is a sliding window and not a bucket that refills: servers count in windows of their own, and a full bucket
// plus what flows in during the window would be up to twice of what they allow.
//
// Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

#include "kvingest/http_client.hpp"

namespace kvingest::http {

using Clock = std::chrono::steady_clock;

class RateWindow {
 public:
  explicit RateWindow(Rate rate) : rate_(rate) {}

  /// The first moment, not before `now`, at which `cost` units fit. A cost above the whole rate fits when nothing else
  /// is in the window.
  [[nodiscard]] Clock::time_point when(Clock::time_point now, std::uint64_t cost);
  void take(Clock::time_point now, std::uint64_t cost);

 private:
  struct Taken {
    Clock::time_point at;
    std::uint64_t cost;
  };
  void forget(Clock::time_point now);

  Rate rate_;
  std::deque<Taken> taken_;
  std::uint64_t used_ = 0;
};

/// When `cost` more fit into `quota`; a span that is over begins anew.
[[nodiscard]] std::chrono::system_clock::time_point when_allowed(Quota& quota, std::uint64_t cost,
                                                                 std::chrono::system_clock::time_point now);
void take(Quota& quota, std::uint64_t cost, std::chrono::system_clock::time_point now);

}  // namespace kvingest::http
