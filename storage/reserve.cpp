#include "storage/reserve.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvingest {
namespace {

constexpr std::chrono::seconds kTryEvery{1};
constexpr std::uint64_t kBytesMin = std::uint64_t{64} << 10;

/// Fills the file `fd`, which has fewer blocks, as far as there are blocks.
void allocate(int fd) {
  // In small steps, so that a reserve that was used in part comes back nearly whole, start after start.
  for (std::uint64_t bytes = kReserveBytes; bytes >= kBytesMin; bytes -= bytes / 8) {
    if (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return;
  }
}

}  // namespace

void Reserve::take_sometimes() {
  if (!taken_ && Clock::now() >= next_try_) take();
}

void Reserve::take() {
  next_try_ = Clock::now() + kTryEvery;
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;
  struct stat found {};
  const auto whole = static_cast<blkcnt_t>(kReserveBytes / 512);
  if (::fstat(fd, &found) == 0 && found.st_blocks < whole) {
    allocate(fd);
    taken_ = ::fstat(fd, &found) == 0 && found.st_blocks >= whole;
  } else {
    taken_ = true;
  }
  ::close(fd);
}

bool Reserve::give_up() {
  taken_ = false;
  next_try_ = Clock::now() + kTryEvery;  // Not at once, or it would take what it has just given.
  return ::unlink(path_.c_str()) == 0;
}

}  // namespace kvingest
