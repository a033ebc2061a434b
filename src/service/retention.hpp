// retention.hpp -- drops the oldest arrivals of a store that is to hold no more than so many bytes, or nothing older
// than so long.
//
// What counts is the arrival: keys begin with the number, so the oldest records are the first in key order. The bytes
// held are counted as groups are written, and kept in the meta space in the same batch; where that count is missing or
// of another run, the store is counted once at the start. For ages the meta space has marks: "up to this number all had
// arrived by this time", sixty-four to an age. So a record lives at most a sixty-fourth longer than it should, and one
// that came in a run without retention counts as arrived when the next run with it began.
//
// A group that was refused stays built while others go for want of space; what it adds is counted when it is written.
//
// Threads: one at a time (the committer's lock).
// Errors:  as Store::scan() has them. A batch made here that is not written counts for nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "kvingest/ledger.hpp"
#include "kvingest/store.hpp"
#include "record/seq_in_key.hpp"

namespace kvingest {

struct RetentionOptions {
  std::uint64_t bytes_max = 0;       ///< Of keys and values; 0: no limit.
  std::chrono::milliseconds age{0};  ///< 0: for ever.
  SeqInKey seq_in_key;               ///< It leads, where one of the others is given.

  [[nodiscard]] bool enabled() const noexcept { return bytes_max != 0 || age.count() != 0; }
};

class Retention {
 public:
  using WallClock = std::chrono::system_clock;

  /// `seq`: the last number given. Walks the store where what it holds is not known. Fails with: unsupported (a store
  /// without order), corrupt, io_error.
  static Result<Retention> load(const Store& store, const RetentionOptions& options, std::uint64_t seq,
                                WallClock::time_point now);

  /// A group is to be written, whose last number is `seq`: counts its records and adds what is to be remembered.
  void add_group(WriteBatch& batch, std::uint64_t seq, WallClock::time_point now);
  /// It is in the store.
  void group_written();

  /// Adds erases of the oldest records that are to go, many but not without bound, to `batch`, with the counts that
  /// change by it; leaves it empty where nothing is due. Returns how many go.
  Result<std::uint64_t> expire_some(const Store& store, WriteBatch& batch, WallClock::time_point now);
  /// That batch is in the store.
  void expired();

  /// Records are to go now.
  [[nodiscard]] bool is_due(WallClock::time_point now) const noexcept;
  /// How long after nothing was due it may be worth to look again.
  [[nodiscard]] std::chrono::milliseconds look_every() const noexcept;
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return now_.held.bytes; }

 private:
  struct Mark {
    std::uint64_t seq;
    std::uint64_t time_ns;
  };
  struct State {
    HeldBytes held;
    RemovedTotals removed;
    std::string last_gone;       // Key of the newest record that has gone; the search for older ones begins behind it.
    std::size_t marks_gone = 0;  // From the front of marks_.
    bool held_is_stale = false;  // A group that was built before records went has written its older count.
    bool mark_is_unsaved = false;  // The newest one, made between groups.
  };

  explicit Retention(const RetentionOptions& options) : options_(options) {}

  Result<void> read_meta(const Store& store, bool& counted);
  Result<void> count_all(const Store& store);
  bool add_mark(std::uint64_t seq, WallClock::time_point now);
  [[nodiscard]] std::uint64_t old_up_to(WallClock::time_point now) const noexcept;
  Result<std::uint64_t> erase_page(const Store& store, WriteBatch& batch, std::uint64_t old_seq, bool& more);

  RetentionOptions options_;
  State now_;                    // As the store has it.
  State next_;                   // As it will be when records have gone.
  HeldBytes group_;              // What the group under way adds, up to which number; 0 between groups.
  bool went_meanwhile_ = false;  // Records have gone since the group was built.
  std::deque<Mark> marks_;       // Oldest first.
};

}  // namespace kvingest
