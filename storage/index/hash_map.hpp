// hash_map.hpp -- absl::flat_hash_map as an unordered container of a VersionedIndex.
//
// Threads: like the map: one writer, or any number of readers.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <xxhash.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kvingest {

template <class P>
class HashMap {
 public:
  using Place = P;

  [[nodiscard]] std::size_t size() const { return map_.size(); }
  [[nodiscard]] std::optional<Place> find(std::string_view key) const {
    const auto at = map_.find(key);
    return at == map_.end() ? std::nullopt : std::optional<Place>(at->second);
  }
  std::optional<Place> put(std::string_view key, Place place) {
    const auto [at, inserted] = map_.try_emplace(key, place);
    if (inserted) return std::nullopt;
    return std::exchange(at->second, std::move(place));
  }
  std::optional<Place> erase(std::string_view key) {
    const auto at = map_.find(key);
    if (at == map_.end()) return std::nullopt;
    std::optional<Place> place = std::move(at->second);
    map_.erase(at);
    return place;
  }
  /// Calls `visit(place)` for every entry, in no order.
  template <class F>
  void for_each_place(F&& visit) const {
    for (const auto& [key, place] : map_) visit(place);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept { return XXH3_64bits(key.data(), key.size()); }
  };
  absl::flat_hash_map<std::string, Place, Hash, std::equal_to<>> map_;
};

}  // namespace kvingest
