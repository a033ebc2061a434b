// engine.hpp -- the session's thread: hand-in, admission, libcurl's multi handle, timers, verdicts, retries.
//
//   submit() -> origin's queue -> [slot, rate, pause] -> multi handle -> verdict -> done | back into the queue
//                                                                                     | the origin pauses
//
// curl_multi_poll() with curl_multi_wakeup(), not socket_action(): for some hundred sockets it is as fast and has no
// state of ours to get wrong.
//
// Threads: submit(), look_for_cancelled(), limit(), pause(), origins() and redactor() on any; the rest on its own.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/flight.hpp"
#include "http/origin.hpp"
#include "http/redactor.hpp"
#include "http/retry.hpp"
#include "http/transfer.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

struct MultiCloser {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};

class Engine {
 public:
  explicit Engine(SessionOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// `done` is called once, on the session's thread.
  void submit(Request request, std::function<void(Response)> done, std::stop_token batch = {});
  /// A stop_token of some request may have been asked to stop.
  void look_for_cancelled() noexcept;
  Result<void> limit(std::string_view origin, OriginLimits limits);
  Result<void> pause(std::string_view origin, Milliseconds time);
  [[nodiscard]] std::vector<OriginState> origins();
  [[nodiscard]] const Redactor& redactor() const noexcept { return redactor_; }

 private:
  using FlightPtr = std::unique_ptr<Flight>;
  /// A flight that waits for its next attempt.
  using Waiting = std::multimap<Clock::time_point, FlightPtr>;

  void run();
  void call(std::function<void()> work);
  void wake() noexcept { curl_multi_wakeup(multi_.get()); }

  void take_submitted();
  void accept(FlightPtr flight);
  void drop_cancelled();
  void drop_hopeless(Clock::time_point now);
  void release_due(Clock::time_point now);
  void expire(Clock::time_point now);
  Clock::time_point admit(Clock::time_point now);
  void start(FlightPtr flight, Clock::time_point now);
  void collect_done();
  void stop_overdue(Clock::time_point now);
  FlightPtr detach(Transfer& transfer, CURLcode code, std::optional<Error> error);
  [[nodiscard]] Clock::time_point next_due() const;
  void cancel_everything();

  void conclude(FlightPtr flight);
  bool follow_redirect(FlightPtr& flight);
  static Verdict judge(Flight& flight);
  void retry_or_deliver(FlightPtr flight, const Verdict& verdict);
  void leave_alone(Origin& from);
  void deliver(FlightPtr flight);
  void keep_in_cache(const Flight& flight) const;
  Origin& origin(const std::string& name);

  const SessionOptions options_;
  std::unique_ptr<CURLM, MultiCloser> multi_;
  Redactor redactor_;
  Backoff backoff_;

  std::mutex mutex_;
  std::deque<FlightPtr> submitted_;          // Guarded by mutex_.
  std::deque<std::function<void()>> calls_;  // Guarded by mutex_.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> look_for_cancelled_{false};

  unsigned connections_max_ = 0;
  std::map<std::string, std::unique_ptr<Origin>, std::less<>> origins_;
  std::map<CURL*, std::unique_ptr<Transfer>> active_;
  std::vector<EasyHandle> idle_;
  Waiting waiting_;
  bool queue_bounds_ = false;  // Some request has had a bound on how long it may be queued.
  Clock::time_point next_expiry_look_{};

  std::thread thread_;
};

}  // namespace kvingest::http
