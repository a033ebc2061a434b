// compactor.hpp -- gives back the space of records that are dead: moves what is live out of full segments, those with
// the most dead bytes first, and drops them.
//
//   full segments take more than 1.5 times the live bytes   compaction runs, beside the writer and not above its rate
//   ... and the next one would take them to 1.75 times      the writer waits for it before it takes a new segment, and
//                                                           while the newest has room for what is to be moved
//
// So files take at most twice the live bytes and two segments, one that is written and one that is made ahead. It is
// exceeded only while something keeps compaction from its work: a scan that goes on, a backup, a full disk.
//
// A segment is dropped when all that was moved or written until it was empty is on disk, no reader has a place in it in
// hand, and the list of segments (segment_list.hpp) is on disk without it. A crash before leaves it as it is: its
// records are read again, and what came later replaces them.
//
// Where no segment is worth much, the oldest is next, although live: only there may erasures be forgotten.
//
// Threads:  `kv-mmap-compact` does the work; it takes turns with the writer, a step each. look(), wait_for_space() and
//           compact_all() are the writer's, who does not hold the turn; the rest on any thread.
// Lifetime: what the constructor gets outlives stop().
// Errors:   damage in a segment ends compaction until the store is opened again; verify() finds it as well.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "storage/mmap/background.hpp"
#include "storage/mmap/mover.hpp"

namespace kvingest::mmap_store {

class Compactor {
 public:
  struct Store {
    const SegmentHome& home;
    Log& log;
    SegmentSupply& supply;
    Index& index;
    const LogView& view;
    const Accounts& accounts;
    Turns& turns;
  };
  /// At most about `rate` bytes a second are moved while the writer does not wait.
  Compactor(const Store& store, std::uint64_t segment_bytes, std::uint64_t rate);

  /// Has the background look whether there is anything to do; also has the next segment made, if there is space for it.
  void look();
  /// Whether the next segment would take more space than there may be.
  [[nodiscard]] bool over_budget() const;
  /// Bytes that compaction may have to put into the newest segment, so that no other is made for them: at most a
  /// segment's; 0 where there is nothing to compact.
  [[nodiscard]] std::uint64_t bytes_to_move() const;
  /// Returns when it would not, or when compaction can do nothing about it.
  void wait_for_space();
  /// Compacts whatever holds an eighth of dead bytes. Fails with: corrupt, no_space, io_error, failed.
  Result<void> compact_all();
  /// Ends the work after the current step. Drops what is empty; for the writer, before the log is closed.
  void stop();

  /// While it is held no file of the log is removed.
  [[nodiscard]] std::shared_lock<std::shared_mutex> keep_files() const { return std::shared_lock(files_); }
  /// Whether empty segments wait for readers to end.
  [[nodiscard]] bool has_empty() const noexcept { return empty_count_.load(std::memory_order_relaxed) > 0; }

  [[nodiscard]] std::uint64_t moved_bytes() const noexcept { return moved_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t dropped_segments() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Empty {
    Segment* segment;
    std::uint64_t last_frame;  // Until then all had to be on disk,
    std::uint64_t readers;     // and these readers gone.
  };

  void run_in_background();
  Result<void> run(bool all);
  [[nodiscard]] Segment* choose(bool all, bool& oldest) const;
  [[nodiscard]] bool is_empty(const Segment* segment) const;
  Result<void> empty(Segment& segment, bool oldest);
  Result<void> drop_empty();
  Result<void> drop(const Empty& empty);
  Result<void> seal_if_worth_it();
  void prepare_next();
  void pace(std::uint64_t bytes);
  void count_empty();
  [[nodiscard]] bool is_due(const Log::Totals& totals) const;

  const Store store_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t rate_;
  Mover mover_;
  std::vector<Empty> empty_;  // The worker's.
  std::atomic<std::size_t> empty_count_{0};
  std::atomic<std::uint64_t> empty_bytes_{0};  // Of their files.
  mutable std::shared_mutex files_;

  std::atomic<bool> looking_{false};  // A look is posted and has not begun.
  std::atomic<bool> stopping_{false};
  std::atomic<bool> given_up_{false};
  std::atomic<std::uint64_t> moved_bytes_{0};
  std::atomic<std::uint64_t> dropped_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;  // Guarded by mutex_, as all below: rounds that have begun,
  std::uint64_t ended_ = 0;  // and ended.
  std::size_t waiting_ = 0;  // Whoever waits is not to wait for the pace.

  Background worker_{"kv-mmap-compact"};
};

}  // namespace kvingest::mmap_store
