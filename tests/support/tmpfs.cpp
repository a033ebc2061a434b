#include "tests/support/tmpfs.hpp"

#include <fmt/format.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace kvingest::test {

Tmpfs::Tmpfs(std::size_t bytes) {
  const std::string size = fmt::format("size={}", bytes);
  if (::mount("kvingest-test", dir_.path().c_str(), "tmpfs", 0, size.c_str()) != 0)
    throw std::runtime_error(fmt::format("a tmpfs cannot be mounted here: {}", std::strerror(errno)));
}

void Tmpfs::resize(std::size_t bytes) {
  const std::string size = fmt::format("size={}", bytes);
  if (::mount("kvingest-test", dir_.path().c_str(), "tmpfs", MS_REMOUNT, size.c_str()) != 0)
    throw std::runtime_error(fmt::format("a tmpfs cannot be resized: {}", std::strerror(errno)));
}

Tmpfs::~Tmpfs() {
  // Lazily: a process that is still ending may hold a file, and the directory must become removable at once.
  ::umount2(dir_.path().c_str(), MNT_DETACH);
}

}  // namespace kvingest::test
