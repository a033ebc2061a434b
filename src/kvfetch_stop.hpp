// kvfetch_stop.hpp -- SIGINT and SIGTERM as a stop_token, for work that waits on other threads.
//
// Threads: made before any other thread, which then all leave the signals to its own. The second signal ends the
// process
//          as usual.
#pragma once

#include <stop_token>
#include <thread>

namespace kvingest::kvfetch {

class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  [[nodiscard]] bool stopped() const noexcept { return source_.stop_requested(); }

 private:
  void wait();

  std::stop_source source_;
  int signals_ = -1;
  int end_ = -1;
  std::thread thread_;
};

}  // namespace kvingest::kvfetch
