#include "base/interrupt.hpp"

#include <csignal>

namespace kvingest {
namespace {

volatile std::sig_atomic_t signal_came = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { signal_came = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() noexcept {
  return signal_came != 0;
}

}  // namespace kvingest
