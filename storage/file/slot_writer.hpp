// slot_writer.hpp -- puts batches into a slot file: every record with one seek and one write, then the commit header
// that makes them valid.
//
// A batch that could not be written leaves records behind that no header names. They are cleared, and the clearing is
// synced, before the number of that batch is given again (settle()), so that a crash cannot mix the two. The same is
// done about what recovery found behind the last whole batch, and not before: opening a store changes nothing.
//
// Threads: one.
// Errors:  as said at each function; `failed` means that the outcome is unknown and nothing may be written any more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvingest/result.hpp"
#include "kvingest/write_batch.hpp"
#include "storage/file/recovery.hpp"
#include "storage/file/slot_file.hpp"
#include "storage/file/slot_format.hpp"
#include "storage/file/slot_space.hpp"

namespace kvingest::slots {

class SlotWriter {
 public:
  /// Goes on where recovery ended; `file` outlives the writer.
  SlotWriter(const SlotFile& file, Recovered& recovered);

  /// Writes `batch` as number committed() + 1 and returns the place of each of its operations, in order, valid until
  /// the next call. settle() comes first.
  /// Fails with: no_space, io_error (nothing was written), failed.
  Result<std::span<const Place>> commit(const WriteBatch& batch);

  /// Puts all committed batches on disk. `live` are the live slots as of the last one.
  /// Fails with: io_error (what is on disk is unknown), no_space (the commit header: on disk nothing has changed).
  Result<void> sync(const LiveSum& live);

  /// Clears what failed batches left behind. Fails like sync(), and may be called again.
  Result<void> settle(const LiveSum& live);

  /// The slots of `place` became needless through batch `batch`. In the order of batches.
  void release(const Place& place, std::uint64_t batch);
  /// Too many slots wait for a sync to become free.
  [[nodiscard]] bool wants_sync(const LiveSum& live) const noexcept;
  /// Clears the slots that no later state of the store can need: they are free then. Fails with: io_error, no_space.
  Result<void> clear_waiting();
  /// Gives free blocks back to the file system. Fails with: io_error.
  Result<void> trim();

  [[nodiscard]] bool settled() const noexcept { return settled_; }
  [[nodiscard]] bool may_clear() const noexcept { return space_.may_clear(header_.synced, syncs_); }
  [[nodiscard]] std::uint64_t committed() const noexcept { return committed_; }
  [[nodiscard]] std::uint64_t synced() const noexcept { return header_.synced; }
  [[nodiscard]] std::uint64_t syncs() const noexcept { return syncs_; }
  [[nodiscard]] const SlotSpace& space() const noexcept { return space_; }

 private:
  Result<void> write_records(const WriteBatch& batch);
  Result<void> write_record(RecordHead& head, std::string_view key, std::string_view value);
  Result<void> write_header(const CommitHeader& header);
  void abandon(std::uint64_t end_before);

  const SlotFile& file_;
  CommitHeader header_;        // As it was written last.
  std::uint64_t header_copy_;  // Where.
  std::uint64_t committed_;    // Below what the header says where recovery dropped a torn tail.
  SlotSpace space_;
  std::vector<Place> residue_;
  bool settled_;
  std::uint64_t syncs_ = 0;
  std::uint64_t released_since_sync_ = 0;  // Slots.

  std::vector<Place> places_;  // Of the batch at hand; like the buffer kept, so that writing allocates nothing.
  std::string buffer_;
};

}  // namespace kvingest::slots
