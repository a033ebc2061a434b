// answers.hpp -- what a kvingest says to a named source: read on a thread of its own, so that acknowledgements are
// seen, and timed, while lines are being sent.
//
// Threads:  the reader's own; every method may be called on another one.
// Lifetime: `stream` outlives it. The destructor ends the reader.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "feed/tcp.hpp"

namespace kvingest::feed {

/// Lines of the feed that became durable together with how long that took, from when they were meant to be sent.
struct LatencySamples {
  std::vector<std::chrono::nanoseconds> times;
};

class Answers {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Answers(Stream& stream);
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers();

  /// The line the source is to send next; nothing when the connection ended, or `patience` passed, without it.
  std::optional<std::uint64_t> wait_for_welcome(std::chrono::milliseconds patience);

  struct Synced {
    std::uint64_t line = 0;
    std::uint64_t rejected = 0;
    std::string rejected_lines;  ///< "3,17": the first of them.
  };
  /// The answer to a sync; nothing when the connection ended, or an interrupt came, without it.
  std::optional<Synced> wait_for_synced();

  /// Up to here all is durable, as far as has been said.
  [[nodiscard]] std::uint64_t acknowledged() const;
  /// The errors that came, a line each; their codes decide whether to try again.
  [[nodiscard]] std::string errors() const;

  /// The lines up to `last_line` were meant to be sent at `due`: when they are acknowledged, a sample is taken.
  void expect(std::uint64_t last_line, Clock::time_point due);
  [[nodiscard]] LatencySamples take_samples();

 private:
  void read();
  void take_line(std::string_view line, Clock::time_point now);
  void acknowledge(std::uint64_t line, Clock::time_point now);

  Stream& stream_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::uint64_t> next_;
  std::optional<Synced> synced_;
  std::uint64_t acknowledged_ = 0;
  std::string errors_;
  bool closed_ = false;
  bool stop_ = false;
  std::deque<std::pair<std::uint64_t, Clock::time_point>> expected_;
  LatencySamples samples_;
  std::thread thread_;
};

}  // namespace kvingest::feed
