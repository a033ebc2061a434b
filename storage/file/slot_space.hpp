// slot_space.hpp -- which slots may be written: the free ones, those behind the last one in use, and those that wait
// because a crash may still bring back a state that needs them.
//
// A record that batch N replaced waits until N is known to be on disk; then its slots are cleared and free. A tombstone
// waits longer: until the clearing of what it erased is on disk too, or a crash could leave the erased record there and
// the tombstone not.
//
//   in use --wait()--> waiting --clearable()--> (the store clears them) --cleared()--> free --allocate()--> in use
//
// Threads: one.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "storage/file/slot_format.hpp"

namespace kvingest::slots {

class SlotSpace {
 public:
  SlotSpace() = default;
  /// After recovery: `free` below `end`, nothing in use behind it.
  SlotSpace(const std::vector<Extent>& free, std::uint64_t end);

  /// Neighbouring slots for a record, from the best fitting free ones, else from the end.
  std::uint64_t allocate(std::uint64_t length);
  /// Makes slots free that are empty, or that nobody takes for a record.
  void add_free(Extent extent);
  /// Forgets all slots from `end` on, which are free or were allocated last.
  void cut(std::uint64_t end);

  /// Batch `batch` made the slots of `place` needless. Called in the order of batches.
  void wait(const Place& place, std::uint64_t batch);
  /// True when clearable() would name something.
  [[nodiscard]] bool may_clear(std::uint64_t synced, std::uint64_t syncs) const noexcept;
  /// What is to be cleared now, in the order of the file: waiting slots that a state of `synced` or later does not
  /// need. `syncs` counts the syncs so far: a clearing is on disk when it has grown.
  const std::vector<Extent>& clearable(std::uint64_t synced, std::uint64_t syncs);
  /// What clearable() named is cleared and free from now on.
  void cleared();

  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] std::uint64_t waiting_slots() const noexcept { return waiting_slots_; }
  [[nodiscard]] std::uint64_t free_slots() const noexcept { return free_slots_ + cursor_.length; }
  /// The free slots in the order of the file.
  [[nodiscard]] std::vector<Extent> free_extents() const;

 private:
  struct Waiting {
    Place place;
    std::uint64_t until;  // A batch; for a tombstone in its second wait, a number of syncs.
  };

  void forget(const Extent& extent);
  void start_at(std::uint64_t length);

  Extent cursor_;                                                       // Taken from next; in none of the two below.
  absl::btree_map<std::uint64_t, std::uint64_t> by_first_;              // First slot to length.
  absl::btree_set<std::pair<std::uint64_t, std::uint64_t>> by_length_;  // The same, as length and first slot.
  std::uint64_t free_slots_ = 0;                                        // Of these.
  std::uint64_t end_ = 0;

  std::deque<Waiting> waiting_;      // For a batch.
  std::deque<Waiting> tombstones_;   // For a sync.
  std::vector<Place> clearing_;      // Named by clearable(), not cleared yet.
  std::vector<Extent> extents_;      // The same in one piece each, as the store sees them.
  std::uint64_t waiting_slots_ = 0;  // Of all three.
};

}  // namespace kvingest::slots
