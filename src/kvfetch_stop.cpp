#include "kvfetch_stop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/check.hpp"

namespace kvingest::kvfetch {
namespace {

sigset_t wanted_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  const sigset_t set = wanted_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  KV_ASSERT(signals_ >= 0 && end_ >= 0);
  thread_ = std::thread([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
  const std::uint64_t one = 1;
  KV_ASSERT(::write(end_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(signals_);
  ::close(end_);
}

void StopOnSignal::wait() {
  pollfd wanted[] = {{signals_, POLLIN, 0}, {end_, POLLIN, 0}};
  while (::poll(wanted, 2, -1) < 0) {
  }
  if (wanted[0].revents == 0) return;
  signalfd_siginfo info{};
  KV_ASSERT(::read(signals_, &info, sizeof info) == sizeof info);
  source_.request_stop();
  const sigset_t set = wanted_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // Another one reaches this thread, and ends the process.
  while (::poll(wanted + 1, 1, -1) < 0) {
  }
}

}  // namespace kvingest::kvfetch
