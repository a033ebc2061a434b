// tmpfs.hpp -- a small file system of its own for a test, to be filled up.
#pragma once

#include <cstddef>
#include <filesystem>

#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

class Tmpfs {
 public:
  /// Mounts a tmpfs of so many bytes. Throws, saying why, where that is not allowed.
  explicit Tmpfs(std::size_t bytes);
  ~Tmpfs();
  Tmpfs(const Tmpfs&) = delete;
  Tmpfs& operator=(const Tmpfs&) = delete;

  /// Makes room, or takes it away.
  void resize(std::size_t bytes);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return dir_.path(); }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return dir_ / name; }

 private:
  TempDir dir_;
};

}  // namespace kvingest::test
