// demo_feed.hpp -- the kvfeed that `kvingest --demo` starts beside itself.
//
// Threads:  one waits for the child and then calls `ended`; the rest on the owner's.
// Lifetime: the destructor waits for the child, which is ended if it still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "kvingest/result.hpp"

namespace kvingest {

class DemoFeed {
 public:
  DemoFeed() = default;
  DemoFeed(const DemoFeed&) = delete;
  DemoFeed& operator=(const DemoFeed&) = delete;
  ~DemoFeed();

  /// Starts the kvfeed that stands beside this program, pushing `messages` lines to `address`; `ended` is called on
  /// another thread when it has ended. Fails with: io_error (there is no kvfeed, or it cannot be run).
  Result<void> start(const std::string& address, std::uint64_t messages, std::optional<int> cpu,
                     std::function<void()> ended);

  /// Whether it ran to its end and every line became durable. To be asked after `ended`.
  [[nodiscard]] bool succeeded() const noexcept { return status_ == 0; }

 private:
  pid_t child_ = -1;
  int status_ = -1;
  std::thread waiter_;
};

}  // namespace kvingest
