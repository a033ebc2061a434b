// origin.hpp -- what a session knows about one scheme, host and port: what waits for it, what it allows, and how it has
// been answering.
//
// A refusal belongs to the origin and not to one request: with 32 requests under way against a limit of 20 a second,
// 194 of 200 are refused within 20 ms where each backs off by itself. So a refusal pauses all, halves the window and
// paces what follows; answers open it again, slowly.
//
// Threads: the session's.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/flight.hpp"
#include "http/rate_limit.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

class Origin {
 public:
  enum class Protocol : std::uint8_t { unknown, h1, h2 };

  Origin(std::string name, OriginLimits limits);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const OriginLimits& limits() const noexcept { return limits_; }
  void set_limits(OriginLimits limits);

  void enqueue(std::unique_ptr<Flight> flight, bool in_front);
  [[nodiscard]] bool has_queued() const noexcept { return queued_ > 0; }
  /// Takes out what `wanted` says.
  std::vector<std::unique_ptr<Flight>> take_queued(const std::function<bool(const Flight&)>& wanted);

  /// The flight that may start now; nothing, and `next` is lowered to when one might. In-flight slots raise no time:
  /// an answer frees them.
  std::unique_ptr<Flight> next_to_start(Clock::time_point now, Clock::time_point& next);
  /// A flight at the front that would have to wait longer than its deadline allows, with its error; nothing where the
  /// front may wait.
  std::unique_ptr<Flight> next_hopeless(Clock::time_point now);
  void finished() noexcept { --in_flight_; }

  void set_protocol(Protocol protocol) noexcept { protocol_ = protocol; }
  [[nodiscard]] Protocol protocol() const noexcept { return protocol_; }

  /// Nothing starts before `until`.
  void pause(Clock::time_point until) { paused_until_ = std::max(paused_until_, until); }
  [[nodiscard]] Clock::time_point paused_until() const noexcept { return paused_until_; }
  /// An answer that says that all is well.
  void succeeded();
  /// A refusal of a request that started at `started`: all refusals of requests sent before the pause are one.
  void refused(Clock::time_point now, Clock::time_point started, Clock::time_point until, Kind kind);
  /// Counts for the circuit breaker. True: it is open now, until paused_until().
  [[nodiscard]] bool failed(Clock::time_point now);
  void note_used_header(const Headers& headers, Clock::time_point now);

  [[nodiscard]] OriginState state(Clock::time_point now) const;

 private:
  [[nodiscard]] unsigned window() const noexcept;
  [[nodiscard]] Clock::time_point allowed_at(Clock::time_point now, std::uint64_t cost);

  std::string name_;
  OriginLimits limits_;
  std::vector<RateWindow> rates_;
  std::map<int, std::deque<std::unique_ptr<Flight>>, std::greater<>> queue_;  // By priority.
  std::size_t queued_ = 0;

  Protocol protocol_ = Protocol::unknown;
  unsigned in_flight_ = 0;
  double window_ = 0;  // Adapted; at most limits_.in_flight.
  bool slow_ = false;  // The used header says so.
  Clock::time_point paused_until_{};
  Clock::time_point last_start_{};
  Clock::duration pace_{0};  // Learned from refusals: at least so long between two starts.
  Clock::time_point refused_at_{};
  Kind refused_as_ = Kind::rate_limited;
  unsigned failures_in_row_ = 0;
  bool probing_ = false;  // After a break: one request at a time until one succeeds.
  std::uint64_t sent_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace kvingest::http
