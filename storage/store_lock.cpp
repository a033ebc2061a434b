#include "storage/store_lock.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kvingest {
namespace {

constexpr std::size_t kPidBytesMax = 32;

// Takes the lock without waiting; errno, 0 when it is held.
int try_lock(int fd, int operation) {
  int done = -1;
  do {
    done = ::flock(fd, operation | LOCK_NB);
  } while (done != 0 && errno == EINTR);
  return done == 0 ? 0 : errno;
}

// Who holds the lock, as far as can be told: a writer leaves its pid, readers leave nothing.
std::string holder(const Posix& posix, const File& file) {
  if (try_lock(file.fd(), LOCK_SH) == 0) return "a process that reads it";
  auto text = read_file(posix, file.path(), kPidBytesMax);
  if (text && text->ends_with('\n')) text->pop_back();
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text || text->empty() || !std::all_of(text->begin(), text->end(), is_digit)) return "another process";
  return "pid " + *text;
}

Result<void> take(const Posix& posix, const File& file, int operation) {
  const int error = try_lock(file.fd(), operation);
  if (error == 0) return {};
  if (error != EWOULDBLOCK) return fail(error, "lock {}", file.path().native());
  return fail(Code::locked, "{} is in use by {}", file.path().parent_path().native(), holder(posix, file));
}

}  // namespace

StoreLock::~StoreLock() {
  if (pid_written_ && file_.is_open()) static_cast<void>(file_.truncate(0));  // Only text: a failure harms nobody.
}

Result<StoreLock> StoreLock::for_writing(const Posix& posix, const std::filesystem::path& dir) {
  auto file = File::open(posix, dir / kLockName, O_RDWR | O_CREAT);
  KV_TRY(file);
  KV_TRY(take(posix, *file, LOCK_EX));
  return StoreLock(std::move(*file));
}

Result<StoreLock> StoreLock::for_reading(const Posix& posix, const std::filesystem::path& dir) {
  auto file = File::open(posix, dir / kLockName, O_RDONLY);
  if (!file && file.error().sys_errno == ENOENT) return StoreLock();
  KV_TRY(file);
  KV_TRY(take(posix, *file, LOCK_SH));
  return StoreLock(std::move(*file));
}

Result<void> StoreLock::write_pid() {
  pid_written_ = true;
  KV_TRY(file_.truncate(0));
  return file_.write_at(fmt::format("{}\n", ::getpid()), 0);
}

}  // namespace kvingest
