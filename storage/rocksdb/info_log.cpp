#include "storage/rocksdb/info_log.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace kvingest::rocks {

InfoLog::InfoLog(const Posix& posix, const std::filesystem::path& dir) : posix_(posix), path_(dir / "LOG") {
  open();
}

void InfoLog::open() {
  auto file = File::open(posix_, path_, O_WRONLY | O_CREAT | O_APPEND);
  if (!file) return;
  file_ = std::move(*file);
  bytes_ = file_.size().value_or(0);
}

void InfoLog::Logv(const char* format, std::va_list arguments) {
  char line[2048];  // A longer line is cut.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::size_t used = std::strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &parts);
  used += static_cast<std::size_t>(
      std::snprintf(line + used, sizeof line - used, ".%06ldZ %ld ", now.tv_nsec / 1000, syscall(SYS_gettid)));
  const std::size_t room = sizeof line - used - 1;  // The LF takes the place of the NUL.
  const int wanted = std::vsnprintf(line + used, room, format, arguments);
  if (wanted > 0) used += std::min(static_cast<std::size_t>(wanted), room - 1);
  if (line[used - 1] != '\n') line[used++] = '\n';

  const std::scoped_lock lock(mutex_);
  if (!file_.is_open()) return;
  // One call, and no second try: a line that does not fit on the disk is not worth more.
  if (const ssize_t written = posix_.write(file_.fd(), line, used); written > 0)
    bytes_ += static_cast<std::uint64_t>(written);
  if (bytes_ < kFileBytesMax) return;
  std::filesystem::path old = path_;
  old += ".old";
  file_.reset();
  posix_.rename(path_.c_str(), old.c_str());
  open();
}

std::size_t InfoLog::GetLogFileSize() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace kvingest::rocks
