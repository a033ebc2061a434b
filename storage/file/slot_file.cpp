#include "storage/file/slot_file.hpp"

#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kvingest::slots {

Result<SlotFile> SlotFile::open(const Posix& posix, const std::filesystem::path& path, int flags) {
  auto file = File::open(posix, path, flags);
  KV_TRY(file);
  return SlotFile(posix, *std::move(file));
}

Result<void> SlotFile::write_record(std::string_view slots, std::uint64_t offset) const {
  if (posix_->lseek(file_.fd(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    return fail(errno, "lseek {} to {}", path().native(), offset);
  }
  while (!slots.empty()) {
    const ssize_t written = posix_->write(file_.fd(), slots.data(), slots.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;  // Zero would loop for ever.
      return fail(error, "write {} at {}", path().native(), offset);
    }
    slots.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> SlotFile::clear(std::uint64_t offset, std::uint64_t bytes) const {
  static constexpr std::array<char, 64 * 1024> kZeros{};
  while (bytes > 0) {
    const std::size_t part = std::min<std::uint64_t>(bytes, kZeros.size());
    if (auto written = file_.write_at({kZeros.data(), part}, offset); !written) {
      // A hole that compact() made needs a block to hold zeros; where the disk is full it can stay a hole.
      if (written.error().code != Code::no_space || !punch(offset, part)) return written;
    }
    offset += part;
    bytes -= part;
  }
  return {};
}

Result<std::size_t> SlotFile::read_up_to(char* to, std::size_t bytes, std::uint64_t offset) const {
  std::size_t read = 0;
  while (read < bytes) {
    const ssize_t got = posix_->pread(file_.fd(), to + read, bytes - read, static_cast<off_t>(offset + read));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno, "pread {} at {}", path().native(), offset + read);
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  return read;
}

Result<void> SlotFile::write_header(std::uint64_t copy, const CommitHeader& header) const {
  char bytes[kCommitHeaderBytes];
  encode_commit_header(bytes, header);
  return file_.write_at({bytes, sizeof bytes}, copy * kCommitHeaderStrideBytes);
}

Result<void> SlotFile::punch(std::uint64_t offset, std::uint64_t bytes) const {
  constexpr int kMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  int done = -1;
  do {
    done = posix_->fallocate(file_.fd(), kMode, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (done != 0 && errno == EINTR);
  if (done == 0) return {};
  if (errno == EOPNOTSUPP || errno == ENOSYS) return fail(Code::unsupported, "{} cannot have holes", path().native());
  return fail(errno, "fallocate (punch hole) {} at {}", path().native(), offset);
}

}  // namespace kvingest::slots
