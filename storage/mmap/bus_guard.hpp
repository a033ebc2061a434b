// bus_guard.hpp -- what becomes of a SIGBUS: the kernel sends it to whoever touches a mapped page that its file does
// not have, because somebody cut the file, or cannot read.
//
// In a range of ours it ends the guarded call that it happened in, which then returns false. Where a visitor reads a
// value there is nothing to return to: the process says in one line what happened and ends with exit code 3, the store
// cannot be used. A SIGBUS elsewhere is none of ours and goes where it would have gone.
//
// Threads:  any; a guard is of its thread.
// Lifetime: a range is watched from its construction to its destruction.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <utility>

namespace kvingest::mmap_store {

/// Watches [begin, begin + bytes). `describe` names the file at an address, in a signal handler: it allocates nothing.
class WatchedRange {
 public:
  using Describe = const char* (*)(const void* of, const void* address);

  WatchedRange(const void* begin, std::size_t bytes, Describe describe, const void* of);
  WatchedRange(const WatchedRange&) = delete;
  WatchedRange& operator=(const WatchedRange&) = delete;
  ~WatchedRange();

 private:
  int slot_;  // -1: more ranges than can be watched; then the default is left to happen.
};

namespace bus_guard {
/// Where the guarded call of this thread is left for; null outside.
sigjmp_buf*& target() noexcept;
}  // namespace bus_guard

/// Calls `f`, which reads or writes mapped bytes and makes nothing that has to be destroyed. False if it was cut short.
template <class F>
[[nodiscard, gnu::noinline]] bool guarded_from_bus_errors(F&& f) {
  sigjmp_buf here;
  sigjmp_buf*& target = bus_guard::target();
  sigjmp_buf* const outer = target;
  target = &here;
  const bool whole = sigsetjmp(here, 0) == 0;  // The handler leaves the signal unblocked: no mask to restore.
  if (whole) std::forward<F>(f)();
  bus_guard::target() = outer;
  return whole;
}

}  // namespace kvingest::mmap_store
