// merged_walk.hpp -- walks the keys of a container and of its older versions side by side, in either direction.
//
// Threads:  a reader of both; the latch that guards them is held from construction to the last use.
// Lifetime: refers to what it was made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/store.hpp"
#include "storage/index/older_versions.hpp"
#include "storage/index/sorted_map.hpp"

namespace kvingest {

template <class Container>
class MergedWalk {
 public:
  using Place = typename Container::Place;

  /// Begins with the first key of `range` that is not above `high`, or with the one behind `position` where given.
  MergedWalk(const Container& container, const OlderVersions<Place>& older, const Range& range, std::string_view high,
             const std::optional<std::string>& position)
      : range_(range),
        high_(high),
        newest_(start(container, position)),
        older_(start(older, position)),
        has_older_(!older.empty()) {
    look();
  }

  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] std::string_view key() const { return key_; }
  /// The place of key() as of batch `sequence`; absent if it was not there.
  [[nodiscard]] std::optional<Place> as_of(std::uint64_t sequence) const {
    if (at_older_) {
      if (const auto* version = OlderVersions<Place>::as_of(older_.place(), sequence)) return version->place;
    }
    return at_newest_ ? std::optional<Place>(newest_.place()) : std::nullopt;
  }

  void next() {
    if (at_newest_) step(newest_);
    if (at_older_) step(older_);
    look();
  }

 private:
  template <class Tree>
  typename Tree::Cursor start(const Tree& tree, const std::optional<std::string>& position) const {
    if (position) return range_.reverse ? seek_below(tree, *position) : seek_above(tree, *position);
    if (!range_.reverse) return range_.first ? tree.seek(*range_.first) : tree.first();
    return range_.last && *range_.last <= high_ ? seek_below(tree, *range_.last) : seek_at_most(tree, high_);
  }
  template <class Cursor>
  void step(Cursor& cursor) const {
    range_.reverse ? cursor.previous() : cursor.next();
  }
  [[nodiscard]] bool comes_first(std::string_view one, std::string_view other) const {
    return range_.reverse ? one > other : one < other;
  }
  [[nodiscard]] bool within(std::string_view key) const {
    if (range_.reverse) return !range_.first || key >= *range_.first;
    return key <= high_ && (!range_.last || key < *range_.last);
  }

  // Finds the key that comes next and which of the two cursors stand on it.
  void look() {
    at_newest_ = newest_.valid();
    at_older_ = has_older_ && older_.valid();
    if (at_newest_ && at_older_) {
      at_older_ = !comes_first(newest_.key(), older_.key());
      at_newest_ = !comes_first(older_.key(), newest_.key());
    }
    valid_ = at_newest_ || at_older_;
    if (!valid_) return;
    key_ = at_newest_ ? newest_.key() : older_.key();
    valid_ = within(key_);
  }

  const Range& range_;
  std::string_view high_;
  typename Container::Cursor newest_;
  typename OlderVersions<Place>::Cursor older_;
  bool has_older_;
  bool at_newest_ = false;
  bool at_older_ = false;
  bool valid_ = false;
  std::string_view key_;
};

}  // namespace kvingest
