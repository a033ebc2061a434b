// disk_model.hpp -- remembers what was changed in files and directories and not synced since, and takes it back, as a
// power failure would: any part of it may have reached the disk, in any order, sector by sector.
//
// The changes are made to real files at once. Undoing them needs the bytes that were there before, so every change is
// recorded with its before and after. The rules, which are those of POSIX and no file system's own kindness:
//
//   bytes and size of a file     durable by fdatasync or fsync of that file
//   a name made, moved, removed  durable by fsync of its directory, in the order they were done
//
// Threads:  one at a time (PosixFault holds its mutex).
// Lifetime: keeps a descriptor of its own for every file it saw opened for writing.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

class DiskModel {
 public:
  DiskModel() = default;
  ~DiskModel();
  DiskModel(const DiskModel&) = delete;
  DiskModel& operator=(const DiskModel&) = delete;

  // What is about to be done, and what was done. Only changes that succeed are reported as done.

  void before_open(const char* path, int flags);
  void after_open(const char* path, int fd);
  void after_close(int fd);
  /// Bytes [offset, offset + bytes) of a file are about to change, or its size is.
  void before_change(int fd, off_t offset, std::size_t bytes);
  void after_change(std::size_t bytes);
  void after_sync(int fd);
  void before_rename(const char* from, const char* to);
  void after_rename();
  void before_unlink(const char* path);
  void after_unlink();

  /// The changes that a power failure may take back now.
  [[nodiscard]] std::size_t unsynced() const noexcept { return changes_.size() + names_.size(); }

  /// The power fails: of the changes of names a random prefix is kept, of those of bytes, for each sector, a random
  /// number of the first ones. Call it when nobody has the files open any more.
  void lose(std::uint64_t seed, std::size_t sector_bytes = 512);
  /// The power fails, and of the changes of bytes exactly those are kept for which `kept` says so, given the bytes that
  /// were written; all names are kept.
  void lose(const std::function<bool(std::string_view written)>& kept);

 private:
  using FileKey = std::pair<dev_t, ino_t>;
  struct Change {
    FileKey file;
    off_t offset = 0;
    std::string before;  // May be shorter than `after` where the file ended.
    std::string after;
    off_t size_before = 0;
    off_t size_after = 0;
  };
  struct NameChange {
    std::filesystem::path dir;
    std::filesystem::path made;      // Empty for an unlink.
    std::filesystem::path from;      // Where `made` was before, for a rename.
    std::filesystem::path replaced;  // A link to what `made` or the unlinked name was, or empty.
    std::filesystem::path name;      // The unlinked name.
  };

  [[nodiscard]] bool watch(int fd, FileKey& key);
  [[nodiscard]] std::filesystem::path set_aside(const std::filesystem::path& path);
  void undo_names(std::size_t kept);
  void undo_changes();
  void forget();

  TempDir aside_;
  std::uint64_t links_ = 0;
  std::map<FileKey, int> files_;  // Our own descriptors.
  std::map<int, FileKey> open_;   // The program's.
  std::map<int, std::filesystem::path> directories_;
  std::vector<Change> changes_;
  std::vector<NameChange> names_;
  Change pending_;
  NameChange pending_name_;
  bool pending_ok_ = false;
  bool created_ = false;
};

}  // namespace kvingest::test
