// background.hpp -- a thread that does jobs in the order they are posted. It starts with the first one.
//
// Threads:  any may post; jobs run on the worker's own thread.
// Lifetime: the destructor waits for the job that runs and drops those that wait; what jobs refer to outlives it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace kvingest::mmap_store {

class Background {
 public:
  explicit Background(std::string thread_name);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { stop(); }

  /// Dropped after stop().
  void post(std::function<void()> job);
  /// Waits for the job that runs, drops the others. A second call does nothing.
  void stop();

 private:
  void run();

  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // Guarded by mutex_.
  bool stopping_ = false;                   // Guarded by mutex_.
  std::thread thread_;                      // Set under mutex_.
};

}  // namespace kvingest::mmap_store
