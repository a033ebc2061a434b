// backup.cpp -- MmapStore::backup(): copies the log as of one moment. Frames do not change once written, so the copy is
// taken while the store goes on.
#include <algorithm>
#include <system_error>
#include <vector>

#include "storage/mmap/mmap_store.hpp"

namespace kvingest::mmap_store {
namespace {

constexpr std::uint64_t kCopyBytes = std::uint64_t{1} << 20;

Result<void> copy_file(const Posix& posix, const std::filesystem::path& from_path, std::uint64_t bytes,
                       const std::filesystem::path& to_path) {
  auto from = File::open(posix, from_path, O_RDONLY);
  KV_TRY(from);
  auto to = File::open(posix, to_path, O_WRONLY | O_CREAT | O_EXCL);
  KV_TRY(to);
  std::vector<char> buffer(std::min(bytes, kCopyBytes));
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t step = std::min<std::uint64_t>(bytes - at, buffer.size());
    KV_TRY(from->read_at(buffer.data(), step, at));
    KV_TRY(to->write_at(std::string_view(buffer.data(), step), at));
    at += step;
  }
  return to->sync_all();
}

}  // namespace

Result<void> MmapStore::backup(const std::filesystem::path& to) const {
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return fail(error.value(), "create {}", to.native());
  std::shared_lock<std::shared_mutex> files;
  if (compactor_) files = compactor_->keep_files();
  // The list first: a segment that is made behind it is none that is missing in the copy.
  const SegmentList list = log_->list_without(nullptr);
  for (const Log::Extent& extent : log_->extents()) {
    KV_TRY(copy_file(home_.posix, extent.path, extent.end, to / extent.path.filename()));
  }
  if (!list.segments.empty()) return write_segment_list(home_.posix, to, list);
  return sync_directory(home_.posix, to);
}

}  // namespace kvingest::mmap_store
