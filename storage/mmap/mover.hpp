// mover.hpp -- copies what is live of a full segment to the end of the log, a step at a time, and tells the index.
//
// What is copied: records that the index names, byte by byte, in frames of their own kind; erasures, unless the segment
// is the oldest, of keys that are not there: without them an older segment's record would come back at the next
// opening. A step is one turn: between its look at the index and the end of its frame nothing else is written, so the
// order of the log stays the order of what happened.
//
// Threads:  one; it takes the turns itself.
// Lifetime: what the constructor gets outlives it; the segment stays mapped until the last step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "kvingest/write_batch.hpp"
#include "storage/mmap/accounts.hpp"
#include "storage/mmap/log.hpp"
#include "storage/mmap/log_view.hpp"
#include "storage/mmap/store_index.hpp"
#include "storage/mmap/turns.hpp"

namespace kvingest::mmap_store {

class Mover {
 public:
  /// A step moves about `step_bytes`.
  Mover(Log& log, Index& index, const LogView& view, const Accounts& accounts, Turns& turns, std::size_t step_bytes)
      : log_(log), index_(index), view_(view), accounts_(accounts), turns_(turns), step_bytes_(step_bytes) {}

  /// Checks every frame of a full segment and stands before the first. `oldest`: there is no segment before it.
  /// Fails with: corrupt.
  Result<void> begin(Segment& full, bool oldest);

  struct Step {
    bool more = true;  ///< false: nothing in the segment is live any more.
    std::uint64_t moved_bytes = 0;
  };
  /// Fails with: no_space (nothing has changed), io_error, failed.
  Result<Step> step();

 private:
  static constexpr std::size_t kOperationsPerStep = 16384;  // Some milliseconds, where all of them are dead.
  static constexpr std::size_t kNoRun = ~std::size_t{0};

  bool gather();
  bool next_operation();
  void take_operation();
  void take_run();
  void append_stretch(const RunTable::Stretch& stretch);
  [[nodiscard]] bool is_live(Space space, std::string_view key, Place place) const;

  Log& log_;
  Index& index_;
  const LogView& view_;
  const Accounts& accounts_;
  Turns& turns_;
  const std::size_t step_bytes_;

  Segment* segment_ = nullptr;
  bool keep_erasures_ = true;
  std::uint64_t offset_ = 0;           // Of the next frame.
  Place payload_at_ = 0;               // Of the current one.
  std::optional<BatchReader> reader_;  // In the current frame.
  BatchEntry entry_;
  std::uint64_t run_from_ = 0;  // Of the run in entry_, so many numbers from here on are still to be looked at.
  std::uint32_t run_left_ = 0;
  std::string moved_;                // The payload of the next frame.
  std::size_t open_run_ = kNoRun;    // Offset in moved_ of the run that ends it.
  std::uint64_t open_run_next_ = 0;  // The number behind that run; 0: there is none.
};

}  // namespace kvingest::mmap_store
