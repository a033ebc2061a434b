// posix.hpp -- the system calls of our own stores, through one small table that a test can replace.
//
// The functions below the table loop over EINTR and short transfers, and every error carries the operation and the
// path.
//
// Threads: the table is constant; the functions may be called on any thread.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kvingest/result.hpp"

namespace kvingest {

/// Each member has the meaning of the call of its name: -1 and errno on failure.
struct Posix {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*close)(int fd);
  ssize_t (*pread)(int fd, void* to, size_t bytes, off_t offset);
  ssize_t (*pwrite)(int fd, const void* from, size_t bytes, off_t offset);
  ssize_t (*pwritev)(int fd, const iovec* parts, int count, off_t offset);
  ssize_t (*write)(int fd, const void* from, size_t bytes);
  off_t (*lseek)(int fd, off_t offset, int whence);
  int (*fdatasync)(int fd);
  int (*fsync)(int fd);
  int (*ftruncate)(int fd, off_t bytes);
  int (*fallocate)(int fd, int mode, off_t offset, off_t bytes);
  int (*fstat)(int fd, struct stat* to);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  void* (*mmap)(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* address, size_t bytes);

  /// The kernel's own.
  [[nodiscard]] static const Posix& real() noexcept;
};

/// Owns a file descriptor and the path it was opened under, for messages. Moves, never copies.
class File {
 public:
  File() = default;
  File(const Posix& posix, int fd, std::filesystem::path path) : posix_(&posix), fd_(fd), path_(std::move(path)) {}
  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept;
  ~File() { reset(); }

  /// Opens `path` with O_CLOEXEC added. Fails with: io_error, no_space.
  static Result<File> open(const Posix& posix, const std::filesystem::path& path, int flags, mode_t mode = 0644);

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Reads exactly `bytes` at `offset`. Fails with: corrupt (the file ends before), io_error.
  Result<void> read_at(char* to, std::size_t bytes, std::uint64_t offset) const;
  /// Writes all of it. Fails with: no_space, io_error; then any part of it may be in the file.
  Result<void> write_at(std::string_view bytes, std::uint64_t offset) const;
  /// Writes all parts, one behind the other. The parts are consumed. Fails like write_at().
  Result<void> write_at(std::span<iovec> parts, std::uint64_t offset) const;
  /// Fails with: io_error (also for ENOSPC: what a failed sync left on disk is unknown).
  Result<void> sync_data() const;
  Result<void> sync_all() const;
  Result<void> truncate(std::uint64_t bytes) const;
  /// Allocates real blocks for [offset, offset + bytes) and extends the file over them.
  Result<void> allocate(std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] Result<std::uint64_t> size() const;

  void reset() noexcept;

 private:
  const Posix* posix_ = nullptr;
  int fd_ = -1;
  std::filesystem::path path_;
};

/// Makes renames, creations and removals in `dir` durable. Fails with: io_error.
Result<void> sync_directory(const Posix& posix, const std::filesystem::path& dir);

/// Replaces `path` by a file with `bytes`: written under another name, synced, renamed, and the directory synced, so
/// that after a crash either the old or the new content is there. Fails with: no_space, io_error.
Result<void> replace_file(const Posix& posix, const std::filesystem::path& path, std::string_view bytes);

/// The whole content of a file of at most `bytes_max`. Fails with: io_error, corrupt (larger).
Result<std::string> read_file(const Posix& posix, const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace kvingest
