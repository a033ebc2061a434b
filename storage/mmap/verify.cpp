// verify.cpp -- MmapStore::verify(): reads every frame from the files again and holds the index against the log.
#include <utility>
#include <vector>

#include "kvingest/thread_pool.hpp"
#include "storage/mmap/bus_guard.hpp"
#include "storage/mmap/frame_scanner.hpp"
#include "storage/mmap/mmap_store.hpp"

namespace kvingest::mmap_store {
namespace {

// Checks the frames of one file up to `extent.end`; returns the bytes read.
Result<std::uint64_t> verify_segment(const Posix& posix, const Log::Extent& extent) {
  std::uint64_t last_frame = extent.frames_before;
  auto file = File::open(posix, extent.path, O_RDONLY);
  KV_TRY(file);
  KV_TRY(read_segment_header(*file));
  FrameScanner scanner(posix, *file, extent.seed, extent.end);
  while (true) {
    auto step = scanner.next();
    KV_TRY(step);
    if (*step == FrameScanner::Step::end && scanner.offset() == extent.end) return extent.end;
    if (*step != FrameScanner::Step::frame) {
      return fail(Code::corrupt, "{}: damaged at offset {}: the frame there is not sound", extent.path.native(),
                  scanner.offset());
    }
    if (scanner.header().number != last_frame + 1) {
      return fail(Code::corrupt, "{}: damaged at offset {}: frame {} behind frame {}", extent.path.native(),
                  scanner.offset(), scanner.header().number, last_frame);
    }
    last_frame = scanner.header().number;
  }
}

}  // namespace

Result<std::uint64_t> MmapStore::verify_frames() const {
  std::shared_lock<std::shared_mutex> files;
  if (compactor_) files = compactor_->keep_files();
  const std::vector<Log::Extent> extents = log_->extents();
  auto pool = ThreadPool::start(
      {.workers = extents.size() > 1 ? ThreadPool::kOtherCpus : 0, .pinned = false, .name = "kv-mmap-verify"});
  KV_TRY(pool);
  std::vector<Result<std::uint64_t>> checked(extents.size());
  (*pool)->parallel_for(extents.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) checked[i] = verify_segment(home_.posix, extents[i]);
  });
  std::uint64_t bytes = 0;
  for (const auto& one : checked) {  // The first damaged place is the one that is named.
    KV_TRY(one);
    bytes += *one;
  }
  return bytes;
}

// Every entry of the index must name a record with its own key.
Result<std::uint64_t> MmapStore::verify_index(Space space) const {
  std::optional<Error> error;
  const std::uint64_t entries = index_.scan(space, {}, [&](std::string_view key, RecordPlace place) {
    bool same = false;
    const bool whole = guarded_from_bus_errors([&] {
      const auto record = view_.record(place);
      same = record && (place.in_run() ? key.size() == kSeqKeyBytes : record->key == key);
    });
    if (whole && same) return true;
    error = damaged(place).value();
    return false;
  });
  if (error) return tl::unexpected<Error>(std::move(*error));
  return entries;
}

Result<VerifyReport> MmapStore::verify() const {
  VerifyReport report;
  auto bytes = verify_frames();
  KV_TRY(bytes);
  auto records = verify_index(Space::records);
  KV_TRY(records);
  KV_TRY(verify_index(Space::meta));
  report.records = *records;
  report.bytes_checked = *bytes;
  report.torn_tail = torn_tail_;
  return report;
}

}  // namespace kvingest::mmap_store
