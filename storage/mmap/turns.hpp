// turns.hpp -- a lock that is given in the order it was asked for. The store's writer and compaction take turns with
// it: with std::mutex, a writer that asks again at once would keep compaction out for as long as it writes.
//
// Threads: any. Works with std::scoped_lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kvingest::mmap_store {

class Turns {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = next_++;
    if (mine != serving_) changed_.wait(lock, [&] { return mine == serving_; });
  }
  void unlock() {
    bool others = false;
    {
      const std::scoped_lock lock(mutex_);
      others = ++serving_ != next_;
    }
    if (others) changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;  // Guarded by mutex_, as the one below.
  std::uint64_t serving_ = 0;
};

}  // namespace kvingest::mmap_store
