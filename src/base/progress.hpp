// progress.hpp -- how far long work has come: a bar on a terminal, a line every few seconds elsewhere.
//
//   Progress progress(options.quiet ? nullptr : stderr, "sent", messages);
//   progress.update(lines);       // as often as is convenient: it looks at the clock and most often returns
//
// The bar is gone when the Progress ends, so that results stand alone.
//
// Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace kvingest {

class Progress {
 public:
  /// Writes to `to`, or nowhere when it is null. `what` stands in front of the count. `total` is 0 where not known.
  Progress(std::FILE* to, std::string what, std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void update(std::uint64_t done) {
    if (to_ != nullptr) show_when_due(done);
  }
  /// Takes the bar off the terminal; the next update() draws it again.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void show_when_due(std::uint64_t done);
  [[nodiscard]] std::string line(std::uint64_t done, Clock::time_point now) const;

  std::FILE* to_;
  std::string what_;
  std::uint64_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace kvingest
