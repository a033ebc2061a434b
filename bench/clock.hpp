// clock.hpp -- the clock that everything here is measured with.
#pragma once

#include <chrono>

namespace kvingest::bench {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace kvingest::bench
