#include "net/resp_aside.hpp"

#include "base/thread.hpp"

namespace kvingest::net {

RespAside::RespAside() : thread_([this] { run(); }) {}

void RespAside::add(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wakes_.notify_one();
}

void RespAside::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void RespAside::run() {
  name_this_thread("kv-resp-aside");
  std::unique_lock lock(mutex_);
  while (true) {
    wakes_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace kvingest::net
