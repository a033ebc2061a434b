// latency.hpp -- how long operations took: a histogram that keeps three digits, and a way of timing what is shorter
// than reading the clock.
//
// Buckets are log-linear: below 2,048 ns each nanosecond has its own; above, each doubling is cut into 1,024 equal
// parts, so that a bucket is at most a thousandth of its values wide. Least, most and the sum are kept exactly. Two
// histograms of any values can be merged without a loss. It grows with the largest value: 8 KiB for each doubling.
//
// Threads: values; one thread each, merged afterwards.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace kvingest::bench {

class LatencyHistogram {
 public:
  /// Counts `times` operations of `ns` each.
  void add(std::uint64_t ns, std::uint64_t times = 1);
  void merge(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t least() const noexcept { return count_ == 0 ? 0 : least_; }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_; }
  /// 0 of nothing.
  [[nodiscard]] double mean() const noexcept;

  /// The least time that `share` of all operations did not exceed, rounded up by less than a thousandth: at(0.99) is
  /// the 99th percentile. 0 of nothing.
  [[nodiscard]] std::uint64_t at(double share) const noexcept;

  /// Points of a percentile spectrum: 1 / (1 - share), and the time at that share; as far as there were operations.
  [[nodiscard]] std::vector<std::pair<double, double>> spectrum() const;

  /// The bucket of a time, and the largest time in a bucket.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t ns) noexcept;
  [[nodiscard]] static std::uint64_t top_of(std::size_t bucket) noexcept;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t least_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_ = 0;
  double sum_ = 0;
};

/// Below this an operation is timed together with others: reading the clock would be a part of the figure.
inline constexpr std::uint64_t kTimedAloneNsMin = 1'000;
inline constexpr std::size_t kTimedTogether = 64;

/// How many operations to time at once when one takes about `ns`.
[[nodiscard]] constexpr std::size_t timed_at_once(std::uint64_t ns) noexcept {
  return ns < kTimedAloneNsMin ? kTimedTogether : 1;
}

/// Calls `operation` with the numbers from `from` up to `to`, and counts the time of each, or, with `at_once` above 1,
/// the mean time of so many.
template <class Operation>
void time_each(std::size_t from, std::size_t to, std::size_t at_once, LatencyHistogram& histogram,
               Operation&& operation) {
  using Clock = std::chrono::steady_clock;
  auto before = Clock::now();
  while (from < to) {
    const std::size_t count = std::min(at_once, to - from);
    for (const std::size_t end = from + count; from < end; ++from) operation(from);
    const auto now = Clock::now();
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - before).count();
    histogram.add(static_cast<std::uint64_t>(ns) / count, count);
    before = now;
  }
}

}  // namespace kvingest::bench
