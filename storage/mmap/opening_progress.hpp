// opening_progress.hpp -- says now and then how far reading the log has come.
//
// Threads: add() on any; it is said on the thread that made it, which takes part in the reading.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace kvingest::mmap_store {

class OpeningProgress {
 public:
  using Notice = std::function<void(std::string_view)>;

  /// `what` stands in front: "opening DIR". `notice` outlives it.
  OpeningProgress(const Notice& notice, std::string what, std::uint64_t total_bytes,
                  std::chrono::milliseconds every = std::chrono::seconds(5));

  /// So many bytes more have been read.
  void add(std::uint64_t bytes) {
    const std::uint64_t done = done_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (done - looked_at_.load(std::memory_order_relaxed) >= kLookEvery) look(done);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kLookEvery = std::uint64_t{1} << 20;  // Bytes between two looks at the clock.

  void look(std::uint64_t done);

  const Notice& notice_;
  const std::string what_;
  const std::uint64_t total_;
  const std::chrono::milliseconds every_;
  const std::thread::id owner_ = std::this_thread::get_id();
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + every_;  // The owner's.
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> looked_at_{0};
};

}  // namespace kvingest::mmap_store
