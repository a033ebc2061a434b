// sorted_map.hpp -- std::map and absl::btree_map as containers of a VersionedIndex, which says what it asks of one.
//
// Threads: like the map: one writer, or any number of readers.
// Lifetime: a cursor and the key it shows die with the next change.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace kvingest {

/// `Map` orders keys that are made from a std::string_view and convert to one, with a transparent comparison.
template <class Map>
class SortedMap {
 public:
  using Place = typename Map::mapped_type;

  class Cursor {
   public:
    Cursor(const Map& map, typename Map::const_iterator at) : map_(&map), at_(at) {}
    [[nodiscard]] bool valid() const { return at_ != map_->end(); }
    [[nodiscard]] std::string_view key() const { return at_->first; }
    [[nodiscard]] const Place& place() const { return at_->second; }
    void next() { ++at_; }
    void previous() { at_ = at_ == map_->begin() ? map_->end() : std::prev(at_); }

   private:
    const Map* map_;
    typename Map::const_iterator at_;
  };

  SortedMap() = default;
  /// An empty map with an allocator of its own.
  explicit SortedMap(Map map) : map_(std::move(map)) {}

  [[nodiscard]] std::size_t size() const { return map_.size(); }
  [[nodiscard]] std::optional<Place> find(std::string_view key) const {
    const auto at = map_.find(key);
    return at == map_.end() ? std::nullopt : std::optional<Place>(at->second);
  }
  [[nodiscard]] Cursor seek(std::string_view key) const { return {map_, map_.lower_bound(key)}; }
  [[nodiscard]] Cursor first() const { return {map_, map_.begin()}; }
  [[nodiscard]] Cursor last() const { return {map_, map_.empty() ? map_.end() : std::prev(map_.end())}; }

  std::optional<Place> put(std::string_view key, Place place) {
    auto at = map_.end();
    if (!map_.empty() && std::prev(at)->first >= key) {  // Keys that arrive in order need no search.
      at = map_.lower_bound(key);
      if (at->first == key) return std::exchange(at->second, std::move(place));
    }
    map_.emplace_hint(at, key, std::move(place));
    return std::nullopt;
  }

  std::optional<Place> erase(std::string_view key) {
    const auto at = map_.find(key);
    if (at == map_.end()) return std::nullopt;
    std::optional<Place> place = std::move(at->second);
    map_.erase(at);
    return place;
  }
  void clear() { map_.clear(); }
  /// Calls `visit(place)` for every entry.
  template <class F>
  void for_each_place(F&& visit) const {
    for (const auto& [key, place] : map_) visit(place);
  }

 private:
  Map map_;
};

/// The first entry behind `key`.
template <class Tree>
[[nodiscard]] typename Tree::Cursor seek_above(const Tree& tree, std::string_view key) {
  auto cursor = tree.seek(key);
  if (cursor.valid() && cursor.key() == key) cursor.next();
  return cursor;
}

/// The last entry before `key`.
template <class Tree>
[[nodiscard]] typename Tree::Cursor seek_below(const Tree& tree, std::string_view key) {
  auto cursor = tree.seek(key);
  if (!cursor.valid()) return tree.last();
  cursor.previous();
  return cursor;
}

/// The last entry up to and with `key`.
template <class Tree>
[[nodiscard]] typename Tree::Cursor seek_at_most(const Tree& tree, std::string_view key) {
  auto cursor = tree.seek(key);
  if (!cursor.valid()) return tree.last();
  if (cursor.key() != key) cursor.previous();
  return cursor;
}

}  // namespace kvingest
