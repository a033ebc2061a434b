// checkpoint_reader.hpp -- reads the file INDEX (checkpoint_format.hpp) of a store that is opened, and makes its index
// of it, on several threads.
//
// It is used only where all of it is sound and it belongs to just this log: each segment of it that the log still has
// must be the same file, hold as much, and have the same frame where its last one was. Whatever is wrong with it, the
// log is read instead: it says everything that a checkpoint does.
//
// Threads: one, which load() shares its work out from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "kvingest/thread_pool.hpp"
#include "storage/mmap/checkpoint_format.hpp"
#include "storage/mmap/recovery.hpp"
#include "storage/mmap/store_index.hpp"

namespace kvingest::mmap_store {

class Checkpoint {
 public:
  /// The checkpoint in `dir`; nothing when there is none. Fails with: corrupt (why it cannot be used), io_error.
  static Result<std::optional<Checkpoint>> open(const Posix& posix, const std::filesystem::path& dir);

  /// Fails with: corrupt (it is not of this log, and why), io_error.
  Result<void> check_belongs_to(const LogFiles& files) const;
  /// Fills the index, which is empty, and counts what lives in `segments`, which are mapped. Should it fail, both are
  /// to be cleared. Fails with: corrupt (where), no_space (the index has no room), io_error.
  Result<void> load(ThreadPool& pool, std::span<const std::unique_ptr<Segment>> segments, RecordIndex& records,
                    MetaIndex& meta) const;

  [[nodiscard]] const CheckpointTable& table() const noexcept { return table_; }

 private:
  Checkpoint(const Posix& posix, File file, CheckpointTable table)
      : posix_(&posix), file_(std::move(file)), table_(std::move(table)) {}
  Result<void> check_segment(const SegmentFile& found, const CheckpointSegment& known) const;

  const Posix* posix_;
  File file_;
  CheckpointTable table_;
};

}  // namespace kvingest::mmap_store
