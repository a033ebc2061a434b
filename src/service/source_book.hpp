// source_book.hpp -- progress and totals of sources, as the store's meta space has them, and what the next group
// changes.
//
// A group works on a copy of what it touches: commit() makes it the book's, discard() forgets it, so that a group that
// was refused leaves no trace.
//
// Threads: one at a time (the committer's lock).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "kvingest/ledger.hpp"
#include "kvingest/store.hpp"

namespace kvingest {

class SourceBook {
 public:
  /// Reads what the store holds. Fails with: corrupt, io_error.
  static Result<SourceBook> load(const Store& store);

  /// The last arrival number given, by groups that are committed.
  [[nodiscard]] std::uint64_t seq() const noexcept { return seq_; }
  /// ... with the group being built.
  [[nodiscard]] std::uint64_t next_seq() const noexcept { return next_seq_; }
  /// Lifetime records by name, of groups that are committed.
  [[nodiscard]] const std::map<std::string, SourceRecord, std::less<>>& sources() const noexcept { return sources_; }

  /// The columns that a csv header named, as one csv line; empty: there was none.
  [[nodiscard]] const std::string& columns() const noexcept { return columns_; }

  /// Takes the next `puts` numbers for the group being built; returns the first of them.
  std::uint64_t take_numbers(std::uint64_t puts) noexcept;
  /// The source's record for the group being built, to be changed.
  SourceRecord& change(std::string_view source);
  /// The same, to be read: all zero for a source that is not known.
  [[nodiscard]] SourceRecord look_up(std::string_view source) const;
  /// Sources that are known, with those of the group being built.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Adds rejects to the group's batch; those beyond `kept_bytes_max` are counted only.
  void add_rejects(const std::vector<RejectRecord>& rejects, std::uint64_t kept_bytes_max, WriteBatch& batch);
  /// Keeps the columns for the store, with the group being built.
  void keep_columns(const std::string& columns) { next_columns_ = columns; }
  /// Counts records that the group being built erases.
  void count_erased(std::uint64_t erased, std::uint64_t unnumbered) noexcept {
    next_removed_.erased += erased;
    next_removed_.unnumbered += unnumbered;
  }
  /// Adds the changed entries to the group's batch.
  void write_changes(WriteBatch& batch) const;
  /// The group is in the store.
  void commit();
  /// The group is not in the store and will not be.
  void discard();

 private:
  std::map<std::string, SourceRecord, std::less<>> sources_;
  std::uint64_t seq_ = 0;
  RejectTotals rejects_;
  RemovedTotals removed_;  // Where retention is on, it has the newer ones, and nothing is erased here.
  std::string columns_;

  std::map<std::string, SourceRecord, std::less<>> changed_;
  std::uint64_t next_seq_ = 0;
  RejectTotals next_rejects_;
  RemovedTotals next_removed_;
  bool rejects_changed_ = false;
  std::string next_columns_;
};

}  // namespace kvingest
