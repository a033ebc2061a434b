// accounts.hpp -- counts, segment by segment, what records it holds and how many of them are dead.
//
// Threads:  one at a time, which the owner sees to; the counts are read on any thread.
// Lifetime: places lie in segments that are mapped.
#pragma once

#include <cstdint>
#include <optional>

#include "storage/mmap/address_space.hpp"
#include "storage/mmap/record_place.hpp"
#include "storage/mmap/segment.hpp"

namespace kvingest::mmap_store {

class Accounts {
 public:
  explicit Accounts(const AddressSpace& space) : space_(space) {}

  void record(RecordPlace place) const {
    Segment::Usage& usage = usage_at(place.place());
    add(usage.records, 1);
    add(usage.bytes, place.about_bytes());
  }
  void run(Place payload, std::uint32_t count, std::uint64_t bytes) const {
    Segment::Usage& usage = usage_at(payload);
    add(usage.records, count);
    add(usage.bytes, bytes);
  }
  void erasure(Place at, std::uint64_t bytes) const { add(usage_at(at).erasure_bytes, bytes); }
  /// A record that nobody reaches any more.
  void dead(RecordPlace place) const {
    Segment::Usage& usage = usage_at(place.place());
    add(usage.dead_records, 1);
    add(usage.dead_bytes, place.about_bytes());
  }
  void dead(const std::optional<RecordPlace>& place) const {
    if (place) dead(*place);
  }
  void dead_run(Place payload, std::uint32_t count, std::uint64_t bytes) const {
    Segment::Usage& usage = usage_at(payload);
    add(usage.dead_records, count);
    add(usage.dead_bytes, bytes);
  }

 private:
  [[nodiscard]] Segment::Usage& usage_at(Place place) const { return space_.owner(place)->usage(); }
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t count) {
    counter.fetch_add(count, std::memory_order_relaxed);
  }

  const AddressSpace& space_;
};

}  // namespace kvingest::mmap_store
