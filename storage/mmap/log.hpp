// log.hpp -- appends frames to the newest segment and syncs what was appended.
//
// A frame is written by one pwritev: header, payload as it stands in the batch, commit record. (Storing into the
// mapping instead measured 1.5 to 1.8 times slower, because the first touch of each mapped page is a fault; write=map
// keeps that way for comparison.) A segment that is full is synced in the background, so that sync() has one segment to
// wait for.
//
// Threads:  one writer: append, sync, close. sync_sealed() runs on a helper. The rest on any thread.
// Lifetime: what the constructor gets outlives the log.
// Errors:   after a failed sync, or a failed write that could not be undone, every call fails with `failed`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"
#include "storage/mmap/background.hpp"
#include "storage/mmap/segment.hpp"
#include "storage/mmap/segment_supply.hpp"

namespace kvingest::mmap_store {

/// What is in the log when it is opened.
struct LogContent {
  std::vector<std::unique_ptr<Segment>> segments;  ///< In the order of their numbers; the last one takes frames.
  std::uint64_t last_frame = 0;
  std::uint64_t last_batch = 0;
  std::uint64_t synced_to = 0;  ///< Frames up to this number are known to be on disk.
  bool ends_in_mark = false;    ///< The last frame is a mark: a clean close.
};

class Log {
 public:
  /// `syncer` runs sync_sealed(); it is stopped before the log dies. A log that is read only is never changed.
  Log(const SegmentHome& home, SegmentSupply& supply, Background& syncer, LogContent content, bool read_only);

  /// Appends a frame and returns the place of its payload. Frames of kind `batch` count batches.
  /// Fails with: no_space (nothing was written), io_error, failed.
  Result<Place> append(FrameKind kind, std::string_view payload);
  /// Puts all that was appended on disk. Fails with: io_error, then failed.
  Result<void> sync();
  /// Syncs, says so in the log itself, and cuts what the last segment has allocated and not used.
  Result<void> close();

  [[nodiscard]] std::uint64_t last_frame() const noexcept { return last_frame_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t last_batch() const noexcept { return last_batch_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t synced_to() const noexcept { return synced_to_.load(std::memory_order_acquire); }

  /// Why the log takes nothing any more, if so.
  [[nodiscard]] std::optional<Error> failure() const;

  /// The files that make up the log now, each with its end.
  struct Extent {
    std::filesystem::path path;
    std::uint64_t number;
    std::uint64_t seed;
    std::uint64_t end;
  };
  [[nodiscard]] std::vector<Extent> extents() const;

  struct Totals {
    std::uint64_t segments = 0;
    std::uint64_t log_bytes = 0;        ///< Headers and frames.
    std::uint64_t allocated_bytes = 0;  ///< Of the files.
    std::uint64_t record_bytes = 0;
    std::uint64_t dead_bytes = 0;
  };
  [[nodiscard]] Totals totals() const;

 private:
  Result<void> check_usable() const;
  Result<void> make_room(std::uint64_t frame_bytes);
  Result<void> write_frame(std::uint64_t offset, const char* header, std::string_view payload, const char* tail,
                           std::size_t tail_bytes);
  Result<void> undo_write(std::uint64_t offset, std::uint64_t bytes);
  Result<void> sync_sealed();
  Result<void> sync_active();
  tl::unexpected<Error> latch(Error error);

  const SegmentHome& home_;
  SegmentSupply& supply_;
  Background& syncer_;

  mutable std::mutex segments_mutex_;
  std::vector<std::unique_ptr<Segment>> segments_;  // Guarded by segments_mutex_; changed by the writer only.
  std::deque<Segment*> unsynced_;                   // Guarded by segments_mutex_: full, oldest first.
  Segment* active_ = nullptr;                       // The writer's; null in a new store.

  std::mutex sync_mutex_;  // Held while full segments are synced, so that whoever waits for it hears of a failure.
  std::atomic<std::uint64_t> last_frame_;
  std::atomic<std::uint64_t> last_batch_;
  std::atomic<std::uint64_t> synced_to_;
  bool ends_in_mark_;  // The writer's.

  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;  // Guarded by failure_mutex_.
};

}  // namespace kvingest::mmap_store
