// loop_disk.hpp -- a small ext4 of a test's own, in a file, to be filled up, or to lose its power.
//
// Power loss is the kernel's own: FS_IOC_SHUTDOWN stops the file system at that moment, with what has not been written
// back lost, and its journal is replayed when it is mounted again.
//
// Threads: one at a time.
// Errors:  what cannot be done here is thrown with its reason; see loop_disk_missing().
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

class LoopDisk {
 public:
  explicit LoopDisk(std::size_t bytes);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return mount_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return mount_ / name; }

  /// Lets the kernel write a random part of a random file below it to the disk, ahead of its turn.
  void write_back_some(std::mt19937_64& random) const;
  /// From here on nothing reaches the disk any more.
  void cut_power();
  /// Mounts it anew. Nobody may have a file of it open.
  void restore_power();

 private:
  void mount();
  void unmount();

  TempDir dir_;
  std::filesystem::path image_;
  std::filesystem::path mount_;
  bool mounted_ = false;
};

/// Empty when a file may be mounted as an ext4 here; else why not.
[[nodiscard]] std::optional<std::string> loop_disk_missing();

}  // namespace kvingest::test
