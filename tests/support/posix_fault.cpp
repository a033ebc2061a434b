#include "tests/support/posix_fault.hpp"

#include <linux/falloc.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace kvingest::test {
namespace {

PosixFault* g_fault = nullptr;

std::size_t index_of(PosixFault::Call call) {
  return static_cast<std::size_t>(call);
}

bool is_transfer(PosixFault::Call call) {
  using Call = PosixFault::Call;
  return call == Call::pread || call == Call::pwrite || call == Call::pwritev || call == Call::write;
}

}  // namespace

/// The functions of the table: each asks the PosixFault whether it is to fail, and else makes the real call.
struct FaultTable {
  using Call = PosixFault::Call;

  template <class Result, class Make>
  static Result make(Call call, Result failed, Make&& real) {
    const std::lock_guard lock(g_fault->mutex_);
    if (const int error = g_fault->enter(call); error != 0) {
      errno = error;
      return failed;
    }
    return real(Posix::real());
  }

  // Tells the disk model of a change: `before` it, and `after` it if it succeeded.
  template <class Real, class Before, class After>
  static auto watched(Before&& before, Real&& real, After&& after) {
    DiskModel* const disk = g_fault->disk_.get();
    if (disk != nullptr) before(*disk);
    const auto done = real();
    const int error = errno;
    if (disk != nullptr && done >= 0) after(*disk, done);
    errno = error;
    return done;
  }
  template <class Real>
  static ssize_t transfer(int fd, off_t offset, std::size_t bytes, Real&& real) {
    return watched([&](DiskModel& disk) { disk.before_change(fd, offset, bytes); }, real,
                   [](DiskModel& disk, ssize_t done) { disk.after_change(static_cast<std::size_t>(done)); });
  }

  static int open(const char* path, int flags, mode_t mode) {
    return make(Call::open, -1, [&](const Posix& real) {
      return watched([&](DiskModel& disk) { disk.before_open(path, flags); },
                     [&] { return real.open(path, flags, mode); },
                     [&](DiskModel& disk, int fd) { disk.after_open(path, fd); });
    });
  }
  static int close(int fd) {
    return make(Call::close, -1, [&](const Posix& real) {
      return watched([](DiskModel&) {}, [&] { return real.close(fd); },
                     [&](DiskModel& disk, int) { disk.after_close(fd); });
    });
  }
  static ssize_t pread(int fd, void* to, std::size_t bytes, off_t offset) {
    return make(Call::pread, ssize_t{-1},
                [&](const Posix& real) { return real.pread(fd, to, g_fault->shortened(bytes), offset); });
  }
  static ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
    return make(Call::pwrite, ssize_t{-1}, [&](const Posix& real) {
      const std::size_t most = g_fault->shortened(bytes);
      return transfer(fd, offset, most, [&] { return real.pwrite(fd, from, most, offset); });
    });
  }
  static ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
    return make(Call::pwritev, ssize_t{-1}, [&](const Posix& real) {
      std::size_t bytes = 0;
      for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
      return transfer(fd, offset, bytes, [&] {
        if (g_fault->transfer_max_ == 0) return real.pwritev(fd, parts, count, offset);
        return real.pwrite(fd, parts->iov_base, g_fault->shortened(parts->iov_len), offset);
      });
    });
  }
  static ssize_t write(int fd, const void* from, std::size_t bytes) {
    return make(Call::write, ssize_t{-1}, [&](const Posix& real) {
      const std::size_t most = g_fault->shortened(bytes);
      const off_t offset = real.lseek(fd, 0, SEEK_CUR);
      return transfer(fd, offset, most, [&] { return real.write(fd, from, most); });
    });
  }
  static off_t lseek(int fd, off_t offset, int whence) {
    return make(Call::lseek, off_t{-1}, [&](const Posix& real) { return real.lseek(fd, offset, whence); });
  }
  static int fdatasync(int fd) {
    return make(Call::fdatasync, -1, [&](const Posix& real) {
      return watched([](DiskModel&) {}, [&] { return real.fdatasync(fd); },
                     [&](DiskModel& disk, int) { disk.after_sync(fd); });
    });
  }
  static int fsync(int fd) {
    return make(Call::fsync, -1, [&](const Posix& real) {
      return watched([](DiskModel&) {}, [&] { return real.fsync(fd); },
                     [&](DiskModel& disk, int) { disk.after_sync(fd); });
    });
  }
  static int ftruncate(int fd, off_t bytes) {
    return make(Call::ftruncate, -1, [&](const Posix& real) {
      struct stat info {};
      const bool cuts = real.fstat(fd, &info) == 0 && info.st_size > bytes;
      const auto lost = cuts ? static_cast<std::size_t>(info.st_size - bytes) : 0;
      return watched([&](DiskModel& disk) { disk.before_change(fd, bytes, lost); },
                     [&] { return real.ftruncate(fd, bytes); }, [](DiskModel& disk, int) { disk.after_change(0); });
    });
  }
  static int fallocate(int fd, int mode, off_t offset, off_t bytes) {
    // Punched holes and zeroed ranges change bytes; plain allocation changes the size alone.
    const auto changed = mode == 0 || mode == FALLOC_FL_KEEP_SIZE ? 0 : static_cast<std::size_t>(bytes);
    return make(Call::fallocate, -1, [&](const Posix& real) {
      return watched([&](DiskModel& disk) { disk.before_change(fd, offset, changed); },
                     [&] { return real.fallocate(fd, mode, offset, bytes); },
                     [&](DiskModel& disk, int) { disk.after_change(changed); });
    });
  }
  static int fstat(int fd, struct stat* to) {
    return make(Call::fstat, -1, [&](const Posix& real) { return real.fstat(fd, to); });
  }
  static int rename(const char* from, const char* to) {
    return make(Call::rename, -1, [&](const Posix& real) {
      return watched([&](DiskModel& disk) { disk.before_rename(from, to); }, [&] { return real.rename(from, to); },
                     [](DiskModel& disk, int) { disk.after_rename(); });
    });
  }
  static int unlink(const char* path) {
    return make(Call::unlink, -1, [&](const Posix& real) {
      return watched([&](DiskModel& disk) { disk.before_unlink(path); }, [&] { return real.unlink(path); },
                     [](DiskModel& disk, int) { disk.after_unlink(); });
    });
  }
  static void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    void* const failed = reinterpret_cast<void*>(-1);  // MAP_FAILED
    return make(Call::mmap, failed,
                [&](const Posix& real) { return real.mmap(address, bytes, protection, flags, fd, offset); });
  }
  static int munmap(void* address, std::size_t bytes) {
    return make(Call::munmap, -1, [&](const Posix& real) { return real.munmap(address, bytes); });
  }

  static constexpr Posix kTable{
      .open = open,
      .close = close,
      .pread = pread,
      .pwrite = pwrite,
      .pwritev = pwritev,
      .write = write,
      .lseek = lseek,
      .fdatasync = fdatasync,
      .fsync = fsync,
      .ftruncate = ftruncate,
      .fallocate = fallocate,
      .fstat = fstat,
      .rename = rename,
      .unlink = unlink,
      .mmap = mmap,
      .munmap = munmap,
  };
};

PosixFault::PosixFault() {
  if (g_fault != nullptr) throw std::logic_error("one PosixFault at a time");
  g_fault = this;
}

PosixFault::~PosixFault() {
  g_fault = nullptr;
}

const Posix& PosixFault::table() const noexcept {
  return FaultTable::kTable;
}

int PosixFault::enter(Call call) {
  const std::size_t index = index_of(call);
  ++counts_[index];
  if (tracing_) trace_.push_back(call);
  if (fail_next_[index] > 0) {
    --fail_next_[index];
    has_failed_ = true;
    return fail_next_error_[index];
  }
  if (can_fail(call)) {
    ++failable_;
    if (fail_at_ != 0 && (failable_ == fail_at_ || (fail_all_later_ && failable_ > fail_at_))) {
      has_failed_ = true;
      return fail_error_;
    }
  }
  if (transfer_max_ != 0 && is_transfer(call)) {
    interrupt_ = !interrupt_;
    if (interrupt_) return EINTR;
  }
  return 0;
}

std::size_t PosixFault::shortened(std::size_t bytes) const noexcept {
  return transfer_max_ == 0 ? bytes : std::min(bytes, transfer_max_);
}

std::uint64_t PosixFault::count(Call call) const {
  const std::lock_guard lock(mutex_);
  return counts_[index_of(call)];
}

std::uint64_t PosixFault::count() const {
  const std::lock_guard lock(mutex_);
  return failable_;
}

void PosixFault::start_trace() {
  const std::lock_guard lock(mutex_);
  tracing_ = true;
  trace_.clear();
}

std::vector<PosixFault::Call> PosixFault::trace() const {
  const std::lock_guard lock(mutex_);
  return trace_;
}

void PosixFault::fail_nth(std::uint64_t n, int error, bool all_later) {
  const std::lock_guard lock(mutex_);
  fail_at_ = failable_ + n;
  fail_error_ = error;
  fail_all_later_ = all_later;
  has_failed_ = false;
}

void PosixFault::fail_next(Call call, int error, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  fail_next_[index_of(call)] = times;
  fail_next_error_[index_of(call)] = error;
  has_failed_ = false;
}

bool PosixFault::has_failed() const {
  const std::lock_guard lock(mutex_);
  return has_failed_;
}

void PosixFault::shorten(std::size_t bytes_max) {
  const std::lock_guard lock(mutex_);
  transfer_max_ = bytes_max;
}

DiskModel& PosixFault::watch_disk() {
  const std::lock_guard lock(mutex_);
  if (!disk_) disk_ = std::make_unique<DiskModel>();
  return *disk_;
}

void PosixFault::heal() {
  const std::lock_guard lock(mutex_);
  fail_at_ = 0;
  fail_next_ = {};
  transfer_max_ = 0;
}

}  // namespace kvingest::test
