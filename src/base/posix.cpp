#include "base/posix.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace kvingest {

const Posix& Posix::real() noexcept {
  static constexpr Posix kReal{
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .close = ::close,
      .pread = ::pread,
      .pwrite = ::pwrite,
      .pwritev = ::pwritev,
      .write = ::write,
      .lseek = ::lseek,
      .fdatasync = ::fdatasync,
      .fsync = ::fsync,
      .ftruncate = ::ftruncate,
      .fallocate = ::fallocate,
      .fstat = [](int fd, struct stat* to) { return ::fstat(fd, to); },
      .rename = ::rename,
      .unlink = ::unlink,
      .mmap = ::mmap,
      .munmap = ::munmap,
  };
  return kReal;
}

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    reset();
    posix_ = other.posix_;
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

void File::reset() noexcept {
  if (fd_ >= 0) posix_->close(std::exchange(fd_, -1));
}

Result<File> File::open(const Posix& posix, const std::filesystem::path& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = posix.open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail(errno, "open {}", path.native());
  return File(posix, fd, path);
}

Result<void> File::read_at(char* to, std::size_t bytes, std::uint64_t offset) const {
  while (bytes > 0) {
    const ssize_t got = posix_->pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno, "pread {} at {}", path_.native(), offset);
    if (got == 0) return fail(Code::corrupt, "{}: ends before offset {}", path_.native(), offset + bytes);
    to += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> File::write_at(std::string_view bytes, std::uint64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t written = posix_->pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;  // Zero would loop for ever.
      return fail(error, "pwrite {} at {}", path_.native(), offset);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> File::write_at(std::span<iovec> parts, std::uint64_t offset) const {
  while (!parts.empty()) {
    if (parts.front().iov_len == 0) {
      parts = parts.subspan(1);
      continue;
    }
    const ssize_t written =
        posix_->pwritev(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      return fail(error, "pwritev {} at {}", path_.native(), offset);
    }
    offset += static_cast<std::uint64_t>(written);
    auto left = static_cast<std::size_t>(written);
    while (!parts.empty() && left >= parts.front().iov_len) {
      left -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (left > 0) {
      parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + left;
      parts.front().iov_len -= left;
    }
  }
  return {};
}

Result<void> File::sync_data() const {
  // Not repeated on EINTR: a sync that did not finish leaves unknown what is on disk, like any failed one.
  if (posix_->fdatasync(fd_) == 0) return {};
  Error error = errno_error(errno, "fdatasync " + path_.native());
  error.code = Code::io_error;
  return tl::unexpected<Error>(std::move(error));
}

Result<void> File::sync_all() const {
  if (posix_->fsync(fd_) == 0) return {};
  Error error = errno_error(errno, "fsync " + path_.native());
  error.code = Code::io_error;
  return tl::unexpected<Error>(std::move(error));
}

Result<void> File::truncate(std::uint64_t bytes) const {
  int done = -1;
  do {
    done = posix_->ftruncate(fd_, static_cast<off_t>(bytes));
  } while (done != 0 && errno == EINTR);
  if (done != 0) return fail(errno, "ftruncate {} to {}", path_.native(), bytes);
  return {};
}

Result<void> File::allocate(std::uint64_t offset, std::uint64_t bytes) const {
  int done = -1;
  do {
    done = posix_->fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (done != 0 && errno == EINTR);
  if (done != 0) return fail(errno, "fallocate {} bytes of {}", bytes, path_.native());
  return {};
}

Result<std::uint64_t> File::size() const {
  struct stat info {};
  if (posix_->fstat(fd_, &info) != 0) return fail(errno, "fstat {}", path_.native());
  return static_cast<std::uint64_t>(info.st_size);
}

Result<void> sync_directory(const Posix& posix, const std::filesystem::path& dir) {
  auto opened = File::open(posix, dir, O_RDONLY | O_DIRECTORY);
  KV_TRY(opened);
  return opened->sync_all();
}

Result<void> replace_file(const Posix& posix, const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path next = path;
  next += ".tmp";
  auto file = File::open(posix, next, O_WRONLY | O_CREAT | O_TRUNC);
  KV_TRY(file);
  KV_TRY(file->write_at(bytes, 0));
  KV_TRY(file->sync_all());
  if (posix.rename(next.c_str(), path.c_str()) != 0)
    return fail(errno, "rename {} to {}", next.native(), path.native());
  return sync_directory(posix, path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
}

Result<std::string> read_file(const Posix& posix, const std::filesystem::path& path, std::size_t bytes_max) {
  auto file = File::open(posix, path, O_RDONLY);
  KV_TRY(file);
  auto size = file->size();
  KV_TRY(size);
  if (*size > bytes_max)
    return fail(Code::corrupt, "{}: {} bytes, expected at most {}", path.native(), *size, bytes_max);
  std::string content(*size, '\0');
  KV_TRY(file->read_at(content.data(), content.size(), 0));
  return content;
}

}  // namespace kvingest
