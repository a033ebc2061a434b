// slot_file.hpp -- the system calls on a slot file: records are written with one seek and one write each, everything
// else at its offset.
//
// Threads: write_record() moves the file's position: one thread. The rest on any thread.
// Errors:  carry the path and the offset. What a failed write left in its place is unknown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

class SlotFile {
 public:
  SlotFile() = default;
  SlotFile(const Posix& posix, File file) : posix_(&posix), file_(std::move(file)) {}

  static Result<SlotFile> open(const Posix& posix, const std::filesystem::path& path, int flags);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return file_.path(); }
  [[nodiscard]] Result<std::uint64_t> size() const { return file_.size(); }

  /// Writes whole slots: one lseek and one write, unless the kernel takes less than all at once.
  Result<void> write_record(std::string_view slots, std::uint64_t offset) const;
  /// Overwrites with zeros.
  Result<void> clear(std::uint64_t offset, std::uint64_t bytes) const;
  /// Reads up to `bytes`, less where the file ends.
  Result<std::size_t> read_up_to(char* to, std::size_t bytes, std::uint64_t offset) const;
  Result<void> write_header(std::uint64_t copy, const CommitHeader& header) const;
  /// Makes a hole of zeros: its blocks are given back. Fails with: unsupported (by the file system), io_error.
  Result<void> punch(std::uint64_t offset, std::uint64_t bytes) const;
  Result<void> truncate(std::uint64_t bytes) const { return file_.truncate(bytes); }
  Result<void> sync() const { return file_.sync_data(); }
  void close() noexcept { file_.reset(); }

 private:
  const Posix* posix_ = nullptr;
  File file_;
};

}  // namespace kvingest::slots
