// older_versions.hpp -- what keys were before recent batches changed them, for readers that began earlier.
//
// An entry says: batch `sequence` changed the key, which until then had this place, or none. As of batch S a key is
// what its earliest entry above S says, and what the index itself says where there is none.
//
// Threads: one writer, or any number of readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/index/sorted_map.hpp"

namespace kvingest {

template <class Place>
class OlderVersions {
 public:
  struct Version {
    std::uint64_t sequence;      ///< The batch that ended it.
    std::optional<Place> place;  ///< Absent: the key was not there.
  };
  using Versions = std::vector<Version>;  ///< Rising.
  using Table = std::map<std::string, Versions, std::less<>>;
  using Cursor = typename SortedMap<Table>::Cursor;

  [[nodiscard]] bool empty() const noexcept { return table_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  [[nodiscard]] Cursor seek(std::string_view key) const { return {table_, table_.lower_bound(key)}; }
  [[nodiscard]] Cursor first() const { return {table_, table_.begin()}; }
  [[nodiscard]] Cursor last() const { return {table_, table_.empty() ? table_.end() : std::prev(table_.end())}; }

  /// Batch `sequence` changes `key` from `before`. Of several changes in one batch the first counts.
  void record(std::string_view key, std::uint64_t sequence, const std::optional<Place>& before) {
    auto at = table_.lower_bound(key);
    if (at == table_.end() || at->first != key) at = table_.emplace_hint(at, key, Versions{});
    if (!at->second.empty() && at->second.back().sequence == sequence) return;
    at->second.push_back({sequence, before});
    order_.push_back(at);
  }

  /// The version of a table entry as of batch `sequence`; null where no later batch is known to have changed it.
  [[nodiscard]] static const Version* as_of(const Versions& versions, std::uint64_t sequence) noexcept {
    for (const Version& version : versions) {
      if (version.sequence > sequence) return &version;
    }
    return nullptr;
  }
  [[nodiscard]] const Version* as_of(std::string_view key, std::uint64_t sequence) const {
    if (table_.empty()) return nullptr;
    const auto at = table_.find(key);
    return at == table_.end() ? nullptr : as_of(at->second, sequence);
  }

  /// Forgets at most `count` entries that nobody needs who reads as of batch `oldest` or later.
  void forget(std::uint64_t oldest, std::size_t count) {
    for (; count > 0 && !order_.empty(); --count) {
      const auto at = order_.front();
      if (at->second.front().sequence > oldest) return;
      at->second.erase(at->second.begin());
      if (at->second.empty()) table_.erase(at);
      order_.pop_front();
    }
  }

 private:
  Table table_;
  std::deque<typename Table::iterator> order_;  // One per entry, in the order of their batches.
};

}  // namespace kvingest
