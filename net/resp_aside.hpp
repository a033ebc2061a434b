// resp_aside.hpp -- one thread for what would hold up a worker: counts of whole stores, long ranges, KV.ADMIN.
//
// A client has one job under way at most, so their number is bounded by that of the clients.
//
// Threads: add() on any; jobs run on a thread named kv-resp-aside, one at a time, in order.
// Lifetime: what the jobs refer to outlives stop().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kvingest::net {

class RespAside {
 public:
  RespAside();
  RespAside(const RespAside&) = delete;
  RespAside& operator=(const RespAside&) = delete;
  ~RespAside() { stop(); }

  void add(std::function<void()> job);
  /// Runs what waits, and ends the thread.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kvingest::net
