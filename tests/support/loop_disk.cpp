#include "tests/support/loop_disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/support/process.hpp"

namespace kvingest::test {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long kShutdown = _IOR('X', 125, __u32);
constexpr __u32 kWithoutLogFlush = 2;  // What is in the journal's memory is lost, too.
constexpr std::size_t kLeastBytes = std::size_t{8} << 20;

void must_run(std::vector<std::string> command) {
  const std::string name = command.front();
  const Finished done = run(std::move(command));
  if (done.exit != Exit{0}) throw std::runtime_error(fmt::format("{} failed: {}", name, done.err));
}

dev_t device_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) throw std::runtime_error("stat " + path.native());
  return found.st_dev;
}

}  // namespace

LoopDisk::LoopDisk(std::size_t bytes) : image_(dir_ / "disk"), mount_(dir_ / "mounted") {
  fs::create_directory(mount_);
  write_text(image_, {});
  fs::resize_file(image_, bytes);
  must_run({"/usr/sbin/mkfs.ext4", "-q", "-F", image_.native()});
  mount();
}

LoopDisk::~LoopDisk() {
  // Lazily: a process that is still ending may hold a file, and the directory must become removable at once.
  if (mounted_) ::umount2(mount_.c_str(), MNT_DETACH);
}

void LoopDisk::mount() {
  must_run({"mount", "-t", "ext4", "-o", "loop", image_.native(), mount_.native()});
  mounted_ = true;
  if (device_of(mount_) == device_of(dir_.path())) throw std::runtime_error("the mount is no file system of its own");
}

void LoopDisk::unmount() {
  // A process that was killed gives its files back a moment later.
  const bool done = eventually([&] { return ::umount2(mount_.c_str(), 0) == 0; });
  if (!done) throw std::runtime_error(fmt::format("umount {}: {}", mount_.native(), std::strerror(errno)));
  mounted_ = false;
}

void LoopDisk::write_back_some(std::mt19937_64& random) const {
  std::vector<fs::path> files;
  std::error_code error;  // The store makes and removes files meanwhile.
  for (fs::recursive_directory_iterator at(mount_, error), end; !error && at != end; at.increment(error)) {
    if (at->is_regular_file(error)) files.push_back(at->path());
  }
  if (files.empty()) return;
  const fs::path& file = files[random() % files.size()];
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  struct stat found {};
  if (::fstat(fd, &found) == 0 && found.st_size > 0) {
    const auto from = static_cast<off64_t>(random() % static_cast<std::uint64_t>(found.st_size)) & ~off64_t{4095};
    const auto bytes = static_cast<off64_t>(4096 * (1 + random() % 16));
    ::sync_file_range(fd, from, bytes, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }
  ::close(fd);
}

void LoopDisk::cut_power() {
  const int fd = ::open(mount_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("open " + mount_.native());
  const int done = ::ioctl(fd, kShutdown, &kWithoutLogFlush);
  const int error = errno;
  ::close(fd);
  if (done != 0) throw std::runtime_error(fmt::format("FS_IOC_SHUTDOWN: {}", std::strerror(error)));
}

void LoopDisk::restore_power() {
  unmount();
  mount();
}

std::optional<std::string> loop_disk_missing() {
  try {
    const LoopDisk tried(kLeastBytes);
    return std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace kvingest::test
