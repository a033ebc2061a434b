// run_table.hpp -- the records that are keyed by consecutive arrival numbers: one entry for a whole run of them,
// however many it holds and wherever its numbers lie, because their keys can be counted.
//
// A run is 48 bytes here; with a hundred records in it, that is nothing per record. Reading one of them takes a place
// in the middle of the run: offsets of every 64th record are noted when a run is first read inside. A record that is
// erased or put anew later is struck out by a bit. Runs never overlap: cut() makes room for a new one.
//
// Threads:  any number of readers, or one writer: the owner has a latch.
// Lifetime: a position is valid until the next change.
#pragma once

#include <absl/container/btree_map.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "storage/mmap/log_view.hpp"
#include "storage/mmap/record_place.hpp"

namespace kvingest::mmap_store {

class RunTable {
  struct Run {
    Run(Place payload_place, std::uint32_t record_count, std::uint32_t payload_bytes)
        : payload(payload_place), count(record_count), bytes(payload_bytes) {}
    Run(Run&& other) noexcept
        : payload(other.payload),
          count(other.count),
          struck_count(other.struck_count),
          bytes(other.bytes),
          struck_bytes(other.struck_bytes),
          offsets(other.offsets.exchange(nullptr, std::memory_order_relaxed)),
          struck(std::move(other.struck)) {}
    Run& operator=(Run&&) = delete;
    ~Run() { delete[] offsets.load(std::memory_order_relaxed); }

    Place payload;
    std::uint32_t count;
    std::uint32_t struck_count = 0;
    std::uint32_t bytes;                                   // Of all its records in the log.
    std::uint32_t struck_bytes = 0;                        // About those of the records struck out.
    mutable std::atomic<std::uint32_t*> offsets{nullptr};  // Of every 64th record; made by the first reader inside.
    std::unique_ptr<std::uint64_t[]> struck;               // One bit a record; absent while all live.

    [[nodiscard]] bool is_struck(std::uint32_t record) const noexcept {
      return struck && (struck[record / 64] >> record % 64 & 1) != 0;
    }
  };
  using Runs = absl::btree_map<std::uint64_t, Run>;  // By the number of the first record.

 public:
  /// A live record.
  struct Position {
    Runs::const_iterator run = {};
    std::uint32_t record = 0;
    std::uint32_t offset = 0;  // Of the record in the run's payload.
    bool valid = false;
  };
  /// Live neighbours that lie one behind the other in the log.
  struct Stretch {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    Place begin = 0;
    std::uint64_t bytes = 0;
  };

  explicit RunTable(const LogView& log) : log_(log) {}
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  /// Whether there are these numbers: counting them does not come round to zero.
  [[nodiscard]] static bool countable(std::uint64_t first, std::uint32_t count) noexcept {
    return count > 0 && first <= std::numeric_limits<std::uint64_t>::max() - (count - 1);
  }
  /// Whether any of these numbers has a live record here. The numbers are countable().
  [[nodiscard]] bool touches(std::uint64_t first, std::uint32_t count) const;
  /// Takes these numbers out, whatever they hold.
  void cut(std::uint64_t first, std::uint32_t count);
  /// Adds a run whose records take `bytes` from `payload` on; it takes the place of what was there.
  void insert(std::uint64_t first, std::uint32_t count, Place payload, std::uint32_t bytes);

  [[nodiscard]] std::optional<RecordPlace> find(std::uint64_t number) const;
  /// Takes one record out and returns its place.
  std::optional<RecordPlace> strike_out(std::uint64_t number);

  /// The first stretch of records numbered from `from` up to `last` that lie in the log between the places `low` and
  /// `high`: it ends behind `bytes_max`, or where it must. A count of 0: there is none.
  [[nodiscard]] Stretch stretch(std::uint64_t from, std::uint64_t last, Place low, Place high,
                                std::uint64_t bytes_max) const;

  /// The first record with this number or a greater one, the last one with a lesser, the very first and last.
  [[nodiscard]] Position lower_bound(std::uint64_t number) const;
  [[nodiscard]] Position before(std::uint64_t number) const;
  [[nodiscard]] Position first() const { return lower_bound(0); }
  [[nodiscard]] Position last() const;
  void next(Position& position) const;
  void previous(Position& position) const { position = before(number(position)); }
  [[nodiscard]] static std::uint64_t number(const Position& position) noexcept {
    return position.run->first + position.record;
  }
  [[nodiscard]] RecordPlace place(const Position& position) const {
    return place(position.run->second, position.offset);
  }

  /// A run as it stands, for whoever saves the table and makes it again.
  struct Saved {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    Place payload = 0;
    std::uint32_t bytes = 0;
    std::uint32_t struck_bytes = 0;
    std::vector<std::uint64_t> struck = {};  ///< One bit a record; empty while all live.
  };
  /// The first runs that begin at `from` or later, at most `runs_max`.
  [[nodiscard]] std::vector<Saved> save(std::uint64_t from, std::size_t runs_max) const;
  /// Puts a saved run behind all others. False when it is not behind them, or makes no sense.
  [[nodiscard]] bool restore(const Saved& saved);
  void clear() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return live_; }
  [[nodiscard]] std::size_t runs() const noexcept { return runs_.size(); }
  [[nodiscard]] bool empty() const noexcept { return live_ == 0; }
  /// About the memory that runs, offsets and struck-out bits take.
  [[nodiscard]] std::size_t used_bytes() const noexcept {
    return runs_.size() * sizeof(Runs::value_type) + detail_bytes_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kRecordsPerOffset = 64;

  [[nodiscard]] Runs::const_iterator run_for(std::uint64_t number) const;
  [[nodiscard]] std::uint32_t offset_of(const Run& run, std::uint32_t record) const;
  [[nodiscard]] const std::uint32_t* offsets(const Run& run) const;
  [[nodiscard]] std::uint32_t step_over(const Run& run, std::uint32_t offset) const;
  [[nodiscard]] RecordPlace place(const Run& run, std::uint32_t offset) const;
  [[nodiscard]] Position at(Runs::const_iterator run, std::uint32_t record) const {
    return {run, record, offset_of(run->second, record), true};
  }
  [[nodiscard]] Position at_or_behind(Runs::const_iterator run, std::uint32_t record) const;
  [[nodiscard]] Position before_in(Runs::const_iterator run, std::uint32_t end) const;
  void strike(Run& run, std::uint32_t record, std::uint64_t about_bytes);
  void keep_part(std::uint64_t first, const Run& run, std::uint32_t from, std::uint32_t end);
  void forget_details(const Run& run) noexcept;

  const LogView& log_;
  Runs runs_;  // Each has a live record.
  std::size_t live_ = 0;
  mutable std::atomic<std::size_t> detail_bytes_{0};
};

}  // namespace kvingest::mmap_store
