// replay.hpp -- makes an index of what frames do, on several threads: what a segment's frames change is gathered and
// sorted by key, segment by segment, at the same time; then the lists are merged, the last change of each key is
// applied, in the order of keys, and what it replaces is counted as dead. Keys in order find their leaf in the cache,
// where those of a log would miss it each time.
//
// Runs of numbers and meta entries are applied in the order of the log, and so are single numbers where there are runs,
// since they are the same keys.
//
// Threads:  gather() and sort() on any, each Gathered on one; apply() on one, which shares work out.
// Lifetime: what is gathered refers to the mapped log.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"
#include "kvingest/thread_pool.hpp"
#include "storage/index/bplus_tree.hpp"
#include "storage/mmap/accounts.hpp"
#include "storage/mmap/log_view.hpp"
#include "storage/mmap/store_index.hpp"

namespace kvingest::mmap_store {

/// A change of one key: its first bytes, and its size class and the place of the operation as the tree keeps them. In a
/// place that takes the key away, the bit is set that says elsewhere that it is in a run.
struct KeyChange {
  BplusTree::Prefix prefix = 0;
  std::uint64_t word = 0;

  [[nodiscard]] std::uint8_t key_class() const noexcept { return BplusTree::class_of(word); }
  [[nodiscard]] RecordPlace place() const noexcept { return RecordPlace::from_word(word & BplusTree::kValueMask); }
  [[nodiscard]] bool erases() const noexcept { return place().in_run(); }
};

/// What the frames of one segment do, and what they hold.
struct Gathered {
  struct Run {
    Place payload = 0;
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;
  };
  struct Meta {
    Place place = 0;         // Of the operation.
    std::uint64_t word = 0;  // Of its RecordPlace; 0 where it takes an entry away.
    bool erases = false;
  };

  std::vector<KeyChange> keys;     // But numbers.
  std::vector<KeyChange> numbers;  // In the order of the log, as all below.
  std::vector<Run> runs;
  std::vector<Meta> meta;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t erasure_bytes = 0;
};

class Replay {
 public:
  /// `index_full` says why there is no room for a key.
  Replay(const LogView& view, Index& index, const Accounts& accounts, std::function<Error()> index_full)
      : view_(view),
        records_(index.records()),
        meta_(index.meta()),
        accounts_(accounts),
        index_full_(std::move(index_full)) {}

  /// Adds what the payload at `at` does. Fails with: corrupt.
  static Result<void> gather(std::string_view payload, Place at, Gathered& to);
  /// Brings the keys into their order.
  void sort(std::vector<KeyChange>& changes) const;

  /// Applies what was gathered of segments that follow each other, whose keys have been sorted; each is empty then.
  /// Fails with: no_space.
  Result<void> apply(ThreadPool& pool, std::span<Gathered> segments);

 private:
  class Merge;
  [[nodiscard]] std::string_view key_of(const KeyChange& change, BplusTree::KeyBuffer& buffer) const;
  [[nodiscard]] std::string_view key_in_log(Place operation) const;
  [[nodiscard]] int compare_keys(const KeyChange& left, const KeyChange& right) const;
  [[nodiscard]] bool is_before(const KeyChange& left, const KeyChange& right) const;
  void set_append_limit(const KeyChange& change);
  Result<void> apply_last(const KeyChange& change);
  Result<void> apply_merged(std::span<const std::span<const KeyChange>> lists);
  Result<void> apply_in_order(const Gathered& segment, bool runs);
  void apply_run(const Gathered::Run& run);
  void apply_meta(const Gathered::Meta& meta);
  Result<void> apply_number(const KeyChange& change);

  const LogView& view_;
  RecordIndex& records_;
  MetaIndex& meta_;
  const Accounts& accounts_;
  std::function<Error()> index_full_;
  Place last_place_ = 0;       // Of the key applied last,
  std::uint32_t in_turn_ = 0;  // and how many in a row lay behind the one before.
};

}  // namespace kvingest::mmap_store
