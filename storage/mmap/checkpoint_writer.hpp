// checkpoint_writer.hpp -- writes the index of a store that is in use to the file INDEX (checkpoint_format.hpp), so
// that opening need not read the whole log.
//
// The file says up to which frame, F, everything is in it. The writer goes on meanwhile: entries are copied some
// thousands at a time, under the latch, so some are newer than F. That does no harm. Opening applies all frames behind
// F to what it loads, in order, and whatever was changed behind F is set by them once more, to the same or to something
// newer. Entries that lie in a segment that compaction has dropped since are passed over: frames behind F have moved
// them or taken them away.
//
// The file gets its name when the log is on disk as far as any entry in it reaches, so that it never knows of records
// that the log has not.
//
// Threads:  write() on one thread at a time, while the writer and compaction go on; it takes turns with them at its
//           beginning and its end, for no longer than it takes to look at each segment.
// Lifetime: what the constructor gets outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "storage/mmap/checkpoint_format.hpp"
#include "storage/mmap/log.hpp"
#include "storage/mmap/store_index.hpp"
#include "storage/mmap/turns.hpp"

namespace kvingest::mmap_store {

class CheckpointWriter {
 public:
  CheckpointWriter(const SegmentHome& home, Log& log, Index& index, Turns& turns)
      : home_(home), log_(log), index_(index), turns_(turns) {}

  struct Written {
    std::uint64_t frame = 0;
    std::uint64_t file_bytes = 0;
  };
  /// Writes a checkpoint and puts it in the place of the last one; nothing when `stop` was set meanwhile.
  /// Fails with: no_space, io_error, failed. The last one is then still there.
  Result<std::optional<Written>> write(const std::atomic<bool>& stop);

 private:
  Result<void> write_entries(const std::atomic<bool>& stop);
  Result<bool> write_keys();
  Result<bool> write_runs();
  Result<bool> write_meta();
  Result<void> write_key_block();
  Result<void> write_block(BlockKind kind, std::string_view bytes, std::uint32_t entries, std::uint32_t leaves);
  Result<Written> publish();
  void look_at_segments(bool begin);
  void add(Segment& segment, bool begin);

  const SegmentHome& home_;
  Log& log_;
  Index& index_;
  Turns& turns_;

  // Of the checkpoint that is being written.
  File file_;
  std::uint64_t offset_ = 0;
  CheckpointTable table_;
  KeyBlockEncoder keys_;
  std::optional<std::string> next_key_;  // Where the next entries begin.
  std::optional<std::uint64_t> next_number_;
};

}  // namespace kvingest::mmap_store
