// live_map.hpp -- the ordered container of the file engine: a sorted map that keeps the fingerprint of the slots it
// holds.
//
// Threads: like the map: one writer, or any number of readers.
#pragma once

#include <absl/container/btree_map.h>

#include <optional>
#include <string_view>

#include "storage/file/compact_key.hpp"
#include "storage/file/slot_format.hpp"
#include "storage/index/sorted_map.hpp"

namespace kvingest::slots {

class LiveMap : public SortedMap<absl::btree_map<CompactKey, Place, CompactKeyLess>> {
  using Base = SortedMap<absl::btree_map<CompactKey, Place, CompactKeyLess>>;

 public:
  std::optional<Place> put(std::string_view key, const Place& place) {
    live_.add(place);
    return counted(Base::put(key, place));
  }
  std::optional<Place> erase(std::string_view key) { return counted(Base::erase(key)); }

  [[nodiscard]] const LiveSum& live() const noexcept { return live_; }

 private:
  std::optional<Place> counted(std::optional<Place> replaced) {
    if (replaced) live_.remove(*replaced);
    return replaced;
  }

  LiveSum live_;
};

}  // namespace kvingest::slots
