// store_lock.hpp -- the file LOCK: one writer, or any number of readers, in this process or others. The lock is flock's
// and ends with its process; the text in it, the writer's pid, is only for the message that others get.
//
// Threads:  one at a time.
// Lifetime: the lock is given back by the destructor.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/posix.hpp"

namespace kvingest {

inline constexpr std::string_view kLockName = "LOCK";

class StoreLock {
 public:
  /// Holds nothing.
  StoreLock() = default;
  StoreLock(StoreLock&&) noexcept = default;
  StoreLock& operator=(StoreLock&&) noexcept = delete;
  ~StoreLock();

  /// Makes LOCK where it is missing. Fails with: locked, io_error, no_space.
  [[nodiscard]] static Result<StoreLock> for_writing(const Posix& posix, const std::filesystem::path& dir);
  /// Writes nothing; where there is no LOCK, nobody writes, and nothing is held. Fails with: locked, io_error.
  [[nodiscard]] static Result<StoreLock> for_reading(const Posix& posix, const std::filesystem::path& dir);

  /// Puts our pid into the file. Fails with: io_error, no_space.
  Result<void> write_pid();

 private:
  explicit StoreLock(File file) : file_(std::move(file)) {}

  File file_;
  bool pid_written_ = false;
};

}  // namespace kvingest
