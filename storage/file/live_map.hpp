// live_map.hpp -- the ordered container of the file engine: a sorted map that keeps the fingerprint of the slots it
// holds, and counts the memory it takes.
//
// Threads: like the map: one writer, or any number of readers. The sums are the writer's.
#pragma once

#include <absl/container/btree_map.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/file/compact_key.hpp"
#include "storage/file/slot_format.hpp"
#include "storage/index/sorted_map.hpp"

namespace kvingest::slots {

/// Counts the bytes it has given out. The count outlives what was allocated.
template <class T>
class CountingAllocator {
 public:
  using value_type = T;

  explicit CountingAllocator(std::size_t& bytes) noexcept : bytes_(&bytes) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) noexcept : bytes_(other.bytes()) {}  // Implicit: rebinding.

  [[nodiscard]] T* allocate(std::size_t count) {
    *bytes_ += count * sizeof(T);
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* at, std::size_t count) noexcept {
    *bytes_ -= count * sizeof(T);
    std::allocator<T>().deallocate(at, count);
  }
  [[nodiscard]] std::size_t* bytes() const noexcept { return bytes_; }
  friend bool operator==(const CountingAllocator& a, const CountingAllocator& b) noexcept {
    return a.bytes_ == b.bytes_;
  }

 private:
  std::size_t* bytes_;
};

using LiveTree =
    absl::btree_map<CompactKey, Place, CompactKeyLess, CountingAllocator<std::pair<const CompactKey, Place>>>;

/// Stands before the tree among the bases of LiveMap, so that it outlives it.
struct TreeBytes {
  std::unique_ptr<std::size_t> tree_bytes = std::make_unique<std::size_t>(0);
};

class LiveMap : private TreeBytes, public SortedMap<LiveTree> {
  using Base = SortedMap<LiveTree>;

 public:
  LiveMap() : Base(LiveTree(CompactKeyLess(), LiveTree::allocator_type(*tree_bytes))) {}
  LiveMap(LiveMap&& other) noexcept = default;
  LiveMap& operator=(LiveMap&& other) = delete;  // Two trees would have to agree on whose count it is.

  std::optional<Place> put(std::string_view key, const Place& place) {
    live_.add(place);
    const auto replaced = Base::put(key, place);
    if (replaced) {
      live_.remove(*replaced);
    } else {
      key_bytes_ += CompactKey::heap_bytes(key.size());
    }
    return replaced;
  }
  std::optional<Place> erase(std::string_view key) {
    const auto erased = Base::erase(key);
    if (erased) {
      live_.remove(*erased);
      key_bytes_ -= CompactKey::heap_bytes(key.size());
    }
    return erased;
  }

  [[nodiscard]] const LiveSum& live() const noexcept { return live_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return *tree_bytes + key_bytes_; }

 private:
  std::size_t key_bytes_ = 0;  // Of keys that do not fit into their entry.
  LiveSum live_;
};

}  // namespace kvingest::slots
