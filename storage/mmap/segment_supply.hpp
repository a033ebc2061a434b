// segment_supply.hpp -- has the next segment ready before the log needs it: made by a helper thread while the current
// one fills, so that the writer never waits for an allocation, two syncs and a rename.
//
// Threads: the writer calls; the helper makes segments.
// Errors:  take() reports; a failure of the helper alone is kept quiet until the writer really needs a segment.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kvingest/result.hpp"
#include "storage/mmap/background.hpp"
#include "storage/mmap/segment.hpp"

namespace kvingest::mmap_store {

class SegmentSupply {
 public:
  /// `home` and `helper` outlive the supply, and the helper is stopped before the supply dies.
  SegmentSupply(const SegmentHome& home, std::uint64_t segment_bytes, Background& helper)
      : home_(home), segment_bytes_(segment_bytes), helper_(helper) {}

  /// Has segment `number` made in the background.
  void prepare(std::uint64_t number);
  /// An empty segment with this number that holds a frame of `frame_bytes`. Where the disk is too full for a whole
  /// segment it is a smaller one. Fails with: no_space, io_error.
  Result<std::unique_ptr<Segment>> take(std::uint64_t number, std::uint64_t frame_bytes);
  /// An empty segment that was there already when the store was opened.
  void put_back(std::unique_ptr<Segment> segment);
  /// Removes a segment that was prepared and not taken.
  void discard();

 private:
  std::unique_ptr<Segment> wait_for_prepared();
  Result<std::unique_ptr<Segment>> create(std::uint64_t number, std::uint64_t bytes_min);
  void remove(std::unique_ptr<Segment> segment) const;

  const SegmentHome& home_;
  const std::uint64_t segment_bytes_;
  Background& helper_;
  std::mutex mutex_;
  std::condition_variable made_;
  bool pending_ = false;               // Guarded by mutex_: the helper is at it.
  std::unique_ptr<Segment> prepared_;  // Guarded by mutex_.
};

}  // namespace kvingest::mmap_store
