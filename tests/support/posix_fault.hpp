// posix_fault.hpp -- a system-call table that counts, interrupts, shortens and fails the calls of our own stores, and
// that cuts the power.
//
//   PosixFault fault;
//   auto store = open_store(spec, {.dir = dir, .posix = &fault.table()});
//   fault.fail_next(PosixFault::Call::fdatasync, EIO);
//   CHECK_FALSE(store->write(batch, Durability::disk));
//
// A table holds plain functions, so its state is global: one PosixFault at a time in a process, and no store that uses
// its table may outlive it.
//
// Threads: any; one call of the table at a time.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/posix.hpp"
#include "tests/support/disk_model.hpp"

namespace kvingest::test {

class PosixFault {
 public:
  enum class Call : std::uint8_t {
    open,
    close,
    pread,
    pwrite,
    pwritev,
    write,
    lseek,
    fdatasync,
    fsync,
    ftruncate,
    fallocate,
    fstat,
    rename,
    unlink,
    mmap,
    munmap,
  };
  static constexpr std::size_t kCalls = static_cast<std::size_t>(Call::munmap) + 1;
  /// Which calls fail_nth() may fail: those that can fail in the world and that a program can answer to.
  [[nodiscard]] static constexpr bool can_fail(Call call) noexcept {
    return call != Call::close && call != Call::munmap && call != Call::fstat && call != Call::lseek;
  }

  PosixFault();
  ~PosixFault();
  PosixFault(const PosixFault&) = delete;
  PosixFault& operator=(const PosixFault&) = delete;

  [[nodiscard]] const Posix& table() const noexcept;

  /// Calls made so far, of one kind and of those that can fail.
  [[nodiscard]] std::uint64_t count(Call call) const;
  [[nodiscard]] std::uint64_t count() const;
  /// The calls made since the last start_trace(), in order.
  void start_trace();
  [[nodiscard]] std::vector<Call> trace() const;

  /// The n-th call from now (1: the next one) of those that can fail, fails with `error` without any effect; with
  /// `all_later`, every later one does, too.
  void fail_nth(std::uint64_t n, int error, bool all_later = false);
  /// The next `times` calls of one kind fail.
  void fail_next(Call call, int error, std::uint64_t times = 1);
  /// Whether a fault that was asked for has happened.
  [[nodiscard]] bool has_failed() const;
  /// Every transfer moves at most so many bytes (0: no limit), and every second one is interrupted first.
  void shorten(std::size_t bytes_max);
  /// No faults any more; counts go on.
  void heal();

  /// From now on, remembers what is changed and not synced. What a store writes through a mapping is not seen.
  DiskModel& watch_disk();
  /// The n-th call from now that can fail is the first that the power failure prevents: it and all later ones fail.
  void cut_power_at(std::uint64_t n) { fail_nth(n, EIO, true); }

 private:
  friend struct FaultTable;

  /// The errno with which this call is to fail, 0 to let it pass.
  int enter(Call call);
  [[nodiscard]] std::size_t shortened(std::size_t bytes) const noexcept;

  mutable std::mutex mutex_;
  std::array<std::uint64_t, kCalls> counts_{};
  std::uint64_t failable_ = 0;
  std::uint64_t fail_at_ = 0;  // Of failable_; 0: never.
  bool fail_all_later_ = false;
  int fail_error_ = 0;
  std::array<std::uint64_t, kCalls> fail_next_{};
  std::array<int, kCalls> fail_next_error_{};
  bool has_failed_ = false;
  std::size_t transfer_max_ = 0;
  bool interrupt_ = false;
  bool tracing_ = false;
  std::vector<Call> trace_;
  std::unique_ptr<DiskModel> disk_;
};

}  // namespace kvingest::test
