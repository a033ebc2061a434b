// log.hpp -- appends frames to the newest segment and syncs what was appended.
//
// A frame is written by one pwritev: header, payload as it stands in the batch, commit record. (Storing into the
// mapping instead measured 1.5 to 1.8 times slower, because the first touch of each mapped page is a fault; write=map
// keeps that way for comparison.) A segment that is full is synced in the background, so that sync() has one segment to
// wait for.
//
// Threads:  append(), seal(), detach(), close() and what is said to be for them by one thread at a time; the owner sees
//           to it. sync_sealed() runs on a helper. The rest on any thread.
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
#include "storage/mmap/segment_list.hpp"
#include "storage/mmap/segment_supply.hpp"

namespace kvingest::mmap_store {

/// What is in the log when it is opened.
struct LogContent {
  std::vector<std::unique_ptr<Segment>> segments;  ///< In the order of their numbers; the last one takes frames.
  std::uint64_t last_frame = 0;
  std::uint64_t last_batch = 0;
  std::uint64_t synced_to = 0;       ///< Frames up to this number are known to be on disk.
  bool ends_in_mark = false;         ///< The last frame is a mark: a clean close.
  std::uint64_t replayed_bytes = 0;  ///< Of the frames that no checkpoint has.
};

class Log {
 public:
  /// `syncer` runs sync_sealed(); it is stopped before the log dies. A log that is read only is never changed.
  Log(const SegmentHome& home, SegmentSupply& supply, Background& syncer, LogContent content, bool read_only);

  /// Appends a frame and returns the place of its payload. Frames of kind `batch` count batches.
  /// Fails with: no_space (nothing was written), io_error, failed.
  Result<Place> append(FrameKind kind, std::string_view payload);
  /// Puts all that has been appended by now on disk, while the writer may go on. Fails with: io_error, then failed.
  Result<void> sync();
  /// Closes the newest segment to frames and takes the next one. Fails like append().
  Result<void> seal();
  /// Takes a full segment out of the log.
  [[nodiscard]] std::unique_ptr<Segment> detach(const Segment& full);
  /// Syncs, says so in the log itself, and cuts what the last segment has allocated and not used.
  Result<void> close();

  [[nodiscard]] std::uint64_t last_frame() const noexcept { return last_frame_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t last_batch() const noexcept { return last_batch_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t synced_to() const noexcept { return synced_to_.load(std::memory_order_acquire); }

  /// What a next opening would have to read, if there were no checkpoint but the one this opening found. Any thread.
  [[nodiscard]] std::uint64_t bytes_behind_checkpoint() const noexcept {
    return bytes_behind_checkpoint_.load(std::memory_order_relaxed);
  }
  /// For the thread that appends.
  [[nodiscard]] bool ends_in_mark() const noexcept { return ends_in_mark_; }

  /// Why the log takes nothing any more, if so.
  [[nodiscard]] std::optional<Error> failure() const;

  /// The files that make up the log now, each with its end.
  struct Extent {
    std::filesystem::path path;
    std::uint64_t number;
    std::uint64_t seed;
    std::uint64_t end;
    std::uint64_t frames_before;
  };
  [[nodiscard]] std::vector<Extent> extents() const;

  /// Calls `visit(segment)` for each, oldest first, while nobody adds or takes away one.
  template <class F>
  void for_each_segment(F&& visit) const {
    const std::scoped_lock lock(segments_mutex_);
    for (const auto& segment : segments_) visit(*segment);
  }
  /// Full segments, oldest first. They stay until they are detached.
  [[nodiscard]] std::vector<Segment*> full_segments() const;
  /// The list of segments as it will be without `dropped`; null: as it is. Only segments that have a frame on disk.
  [[nodiscard]] SegmentList list_without(const Segment* dropped) const;
  /// The number of the next segment, and whether appending so much begins it. For the thread that appends.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_number_; }
  [[nodiscard]] bool needs_segment(std::size_t payload_bytes) const noexcept {
    return active_ == nullptr || active_->free_bytes() < frame_bytes(payload_bytes);
  }
  /// Whether the newest segment has a frame yet, the number of its first one, and how much of it is not live.
  [[nodiscard]] bool newest_has_frame() const noexcept { return active_ != nullptr && active_->last_frame() != 0; }
  [[nodiscard]] std::uint64_t newest_first_frame() const noexcept { return active_->frames_before() + 1; }
  [[nodiscard]] std::uint64_t newest_dead_percent() const noexcept;

  struct Totals {
    std::uint64_t segments = 0;
    std::uint64_t log_bytes = 0;        ///< Headers and frames.
    std::uint64_t allocated_bytes = 0;  ///< Of the files.
    std::uint64_t full_bytes = 0;       ///< Of the files of full segments.
    std::uint64_t live_bytes = 0;       ///< Of records that can be read.
  };
  [[nodiscard]] Totals totals() const;

 private:
  Result<void> check_usable() const;
  Result<void> make_room(std::uint64_t frame_bytes);
  Result<void> take_segment(std::uint64_t frame_bytes);
  Result<void> write_frame(std::uint64_t offset, const char* header, std::string_view payload, const char* tail,
                           std::size_t tail_bytes);
  Result<void> undo_write(std::uint64_t offset, std::uint64_t bytes);
  Result<void> sync_sealed();
  Result<void> sync_sealed_locked();
  Result<void> sync_file(const File& file, std::uint64_t last_frame);
  void is_on_disk(std::uint64_t last_frame) noexcept;
  tl::unexpected<Error> latch(Error error);

  const SegmentHome& home_;
  SegmentSupply& supply_;
  Background& syncer_;

  mutable std::mutex segments_mutex_;
  std::vector<std::unique_ptr<Segment>> segments_;  // Guarded by segments_mutex_; changed by the writer only.
  std::deque<Segment*> unsynced_;                   // Guarded by segments_mutex_: full, oldest first.
  Segment* active_ = nullptr;                       // Changed by the writer, under segments_mutex_; null when new.
  std::uint64_t next_number_ = 1;                   // The writer's.

  std::mutex sync_mutex_;  // Held while full segments are synced, so that whoever waits for it hears of a failure.
  std::atomic<std::uint64_t> last_frame_;
  std::atomic<std::uint64_t> last_batch_;
  std::atomic<std::uint64_t> synced_to_;
  bool ends_in_mark_;  // The writer's.
  std::atomic<std::uint64_t> bytes_behind_checkpoint_;

  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::optional<Error> failure_;  // Guarded by failure_mutex_.
};

}  // namespace kvingest::mmap_store
