#include "storage/mmap/bus_guard.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

namespace kvingest::mmap_store {
namespace {

constexpr int kExitStoreUnusable = 3;  // As base/cli.hpp has it.

struct Slot {
  std::atomic<const char*> begin{nullptr};
  std::atomic<const char*> end{nullptr};
  std::atomic<WatchedRange::Describe> describe{nullptr};
  std::atomic<const void*> of{nullptr};
};

// A process has a few stores open at most. Fixed, because a signal handler reads it.
std::array<Slot, 64> slots;
std::mutex slots_mutex;  // Of those who change them.
struct sigaction previous_action;

void say(const char* text) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

const Slot* slot_of(const char* address) noexcept {
  for (const Slot& slot : slots) {
    const char* const begin = slot.begin.load(std::memory_order_acquire);
    if (begin != nullptr && address >= begin && address < slot.end.load(std::memory_order_acquire)) return &slot;
  }
  return nullptr;
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const bool sent = info->si_code <= 0;  // By another process, and at no address.
  const auto* const address = static_cast<const char*>(info->si_addr);
  const Slot* const slot = sent ? nullptr : slot_of(address);
  if (slot == nullptr) {
    ::sigaction(SIGBUS, &previous_action, nullptr);
    if (sent) ::raise(SIGBUS);
    return;  // The instruction is tried again and meets whoever was there before.
  }
  if (sigjmp_buf* const target = bus_guard::target()) siglongjmp(*target, 1);
  say("kvingest: ");
  say(slot->describe.load(std::memory_order_acquire)(slot->of.load(std::memory_order_acquire), address));
  say(": the file was cut, or cannot be read, while the store was in use (SIGBUS); check it with kvq verify\n");
  ::_exit(kExitStoreUnusable);
}

void install_once() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &previous_action) == 0;
  }();
  static_cast<void>(installed);
}

}  // namespace

sigjmp_buf*& bus_guard::target() noexcept {
  thread_local sigjmp_buf* current = nullptr;
  return current;
}

WatchedRange::WatchedRange(const void* begin, std::size_t bytes, Describe describe, const void* of) : slot_(-1) {
  install_once();
  const std::scoped_lock lock(slots_mutex);
  for (std::size_t i = 0; i < slots.size() && slot_ < 0; ++i) {
    Slot& slot = slots[i];
    if (slot.begin.load(std::memory_order_relaxed) != nullptr) continue;
    slot_ = static_cast<int>(i);
    slot.describe.store(describe, std::memory_order_release);
    slot.of.store(of, std::memory_order_release);
    slot.end.store(static_cast<const char*>(begin) + bytes, std::memory_order_release);
    slot.begin.store(static_cast<const char*>(begin), std::memory_order_release);
  }
}

WatchedRange::~WatchedRange() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].begin.store(nullptr, std::memory_order_release);
}

}  // namespace kvingest::mmap_store
