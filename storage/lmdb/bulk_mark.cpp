#include "storage/lmdb/bulk_mark.hpp"

#include <cerrno>
#include <string>

namespace kvingest::lmdb {
namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t kMarkBytesMax = 64;

std::filesystem::path mark_path(const std::filesystem::path& dir) {
  return dir / "BULK";
}

// Empty where the system does not tell: then no mark is of the same boot.
std::string boot_id(const Posix& posix) {
  auto file = File::open(posix, kBootId, O_RDONLY);
  if (!file) return {};
  char text[kMarkBytesMax];
  const ssize_t got = posix.pread(file->fd(), text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

Result<BulkState> read_bulk_mark(const Posix& posix, const std::filesystem::path& dir) {
  auto mark = read_file(posix, mark_path(dir), kMarkBytesMax);
  if (!mark && mark.error().sys_errno == ENOENT) return BulkState::none;
  KV_TRY(mark);
  return !mark->empty() && *mark == boot_id(posix) ? BulkState::same_boot : BulkState::other_boot;
}

Result<void> set_bulk_mark(const Posix& posix, const std::filesystem::path& dir) {
  return replace_file(posix, mark_path(dir), boot_id(posix));
}

Result<void> clear_bulk_mark(const Posix& posix, const std::filesystem::path& dir) {
  const std::filesystem::path path = mark_path(dir);
  if (posix.unlink(path.c_str()) != 0 && errno != ENOENT) return fail(errno, "unlink {}", path.native());
  return sync_directory(posix, dir);
}

}  // namespace kvingest::lmdb
