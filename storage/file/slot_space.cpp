#include "storage/file/slot_space.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace kvingest::slots {
namespace {

// Of a longer run only the first slots are cleared: the head is gone then, and what is left of a value is no record.
constexpr std::uint64_t kClearedSlotsMax = 64;

}  // namespace

SlotSpace::SlotSpace(const std::vector<Extent>& free, std::uint64_t end) : end_(end) {
  for (const Extent& extent : free) add_free(extent);
}

std::uint64_t SlotSpace::allocate(std::uint64_t length) {
  if (cursor_.length < length) start_at(length);
  const std::uint64_t first = cursor_.first;
  cursor_.first += length;
  cursor_.length -= length;
  return first;
}

// Makes the cursor at least `length` long. Where nothing free fits, the slots come from the end, for this record only.
void SlotSpace::start_at(std::uint64_t length) {
  if (cursor_.length > 0) add_free(std::exchange(cursor_, {}));
  const auto best = by_length_.lower_bound({length, 0});
  if (best != by_length_.end()) {
    cursor_ = {best->second, best->first};
    forget(cursor_);
    return;
  }
  cursor_ = {end_, length};
  end_ += length;
}

void SlotSpace::add_free(Extent extent) {
  if (extent.length == 0) return;
  auto next = by_first_.lower_bound(extent.first);
  KV_ASSERT(next == by_first_.end() || extent.end() <= next->first);
  if (next != by_first_.end() && next->first == extent.end()) {
    const Extent behind{next->first, next->second};
    forget(behind);
    extent.length += behind.length;
    next = by_first_.lower_bound(extent.first);
  }
  if (next != by_first_.begin()) {
    const auto before = std::prev(next);
    const Extent front{before->first, before->second};
    KV_ASSERT(front.end() <= extent.first);
    if (front.end() == extent.first) {
      forget(front);
      extent = {front.first, front.length + extent.length};
    }
  }
  by_first_.emplace(extent.first, extent.length);
  by_length_.emplace(extent.length, extent.first);
  free_slots_ += extent.length;
}

void SlotSpace::forget(const Extent& extent) {
  by_first_.erase(extent.first);
  by_length_.erase({extent.length, extent.first});
  free_slots_ -= extent.length;
}

void SlotSpace::cut(std::uint64_t end) {
  if (end >= end_) return;
  if (cursor_.length > 0) add_free(std::exchange(cursor_, {}));
  while (!by_first_.empty()) {
    const auto last = std::prev(by_first_.end());
    const Extent extent{last->first, last->second};
    if (extent.end() <= end) break;
    forget(extent);
    if (extent.first < end) add_free({extent.first, end - extent.first});
  }
  end_ = end;
}

void SlotSpace::wait(const Place& place, std::uint64_t batch) {
  KV_ASSERT(waiting_.empty() || waiting_.back().until <= batch);
  waiting_.push_back({place, batch});
  waiting_slots_ += place.length;
}

bool SlotSpace::may_clear(std::uint64_t synced, std::uint64_t syncs) const noexcept {
  return !clearing_.empty() || (!waiting_.empty() && waiting_.front().until <= synced) ||
         (!tombstones_.empty() && tombstones_.front().until <= syncs);
}

const std::vector<Extent>& SlotSpace::clearable(std::uint64_t synced, std::uint64_t syncs) {
  for (; !tombstones_.empty() && tombstones_.front().until <= syncs; tombstones_.pop_front()) {
    clearing_.push_back(tombstones_.front().place);
  }
  for (; !waiting_.empty() && waiting_.front().until <= synced; waiting_.pop_front()) {
    const Place& place = waiting_.front().place;
    if (place.tombstone) {
      tombstones_.push_back({place, syncs + 1});
    } else {
      clearing_.push_back(place);
    }
  }
  std::sort(clearing_.begin(), clearing_.end(), [](const Place& a, const Place& b) { return a.slot < b.slot; });
  extents_.clear();
  for (const Place& place : clearing_) {
    const std::uint64_t length = std::min<std::uint64_t>(place.length, kClearedSlotsMax);
    if (!extents_.empty() && extents_.back().end() == place.slot) {
      extents_.back().length += length;
    } else {
      extents_.push_back({place.slot, length});
    }
  }
  return extents_;
}

void SlotSpace::cleared() {
  for (const Place& place : clearing_) {
    add_free({place.slot, place.length});
    waiting_slots_ -= place.length;
  }
  clearing_.clear();
}

std::vector<Extent> SlotSpace::free_extents() const {
  std::vector<Extent> extents;
  extents.reserve(by_first_.size() + 1);
  for (const auto& [first, length] : by_first_) extents.push_back({first, length});
  if (cursor_.length > 0) extents.push_back(cursor_);
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.first < b.first; });
  return extents;
}

}  // namespace kvingest::slots
