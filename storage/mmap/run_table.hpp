// run_table.hpp -- the records that are keyed by consecutive arrival numbers: one entry for a whole run of them,
// however many it holds, because their keys can be counted.
//
// A run is 40 bytes here; with a thousand records in it, that is nothing per record. Reading one of them takes a place
// in the middle of the run: offsets of every 64th record are noted when a run is first read inside. A record that is
// erased or put anew later is struck out by a bit.
//
// Threads:  any number of readers, or one writer: the owner has a latch.
// Lifetime: a position is valid until the next change.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "storage/mmap/log_view.hpp"
#include "storage/mmap/record_place.hpp"

namespace kvingest::mmap_store {

class RunTable {
 public:
  /// A live record.
  struct Position {
    std::size_t run = 0;
    std::uint32_t record = 0;
    std::uint32_t offset = 0;  // Of the record in the run's payload.
    bool valid = false;
  };

  explicit RunTable(const LogView& log) : log_(log) {}
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  /// Whether a run of these numbers lies behind all others.
  [[nodiscard]] bool can_append(std::uint64_t first, std::uint32_t count) const noexcept;
  /// Adds a run whose records begin at `payload`. can_append() is true.
  void append(std::uint64_t first, std::uint32_t count, Place payload);

  [[nodiscard]] std::optional<RecordPlace> find(std::uint64_t number) const;
  /// Takes one record out and returns its place.
  std::optional<RecordPlace> strike_out(std::uint64_t number);

  /// The first record with this number or a greater one, the last one with a lesser, the very first and last.
  [[nodiscard]] Position lower_bound(std::uint64_t number) const;
  [[nodiscard]] Position before(std::uint64_t number) const;
  [[nodiscard]] Position first() const;
  [[nodiscard]] Position last() const;
  void next(Position& position) const;
  void previous(Position& position) const;
  [[nodiscard]] std::uint64_t number(const Position& position) const noexcept {
    return runs_[position.run].first + position.record;
  }
  [[nodiscard]] RecordPlace place(const Position& position) const;

  [[nodiscard]] std::size_t size() const noexcept { return live_; }
  [[nodiscard]] bool empty() const noexcept { return live_ == 0; }
  /// About the memory that runs, offsets and struck-out bits take.
  [[nodiscard]] std::size_t used_bytes() const noexcept;

 private:
  static constexpr std::uint32_t kRecordsPerOffset = 64;

  struct Run {
    Run(std::uint64_t first_number, std::uint32_t record_count, Place payload_place)
        : first(first_number), payload(payload_place), count(record_count) {}
    ~Run() { delete[] offsets.load(std::memory_order_relaxed); }

    std::uint64_t first;
    Place payload;
    std::atomic<std::uint32_t*> offsets{nullptr};        // Of every 64th record; made by the first reader inside.
    std::unique_ptr<std::vector<std::uint64_t>> struck;  // One bit a record; absent while all live.
    std::uint32_t count;
    std::uint32_t struck_count = 0;

    [[nodiscard]] bool is_struck(std::uint32_t record) const noexcept {
      return struck && ((*struck)[record / 64] >> record % 64 & 1) != 0;
    }
  };

  [[nodiscard]] std::size_t run_for(std::uint64_t number) const noexcept;
  [[nodiscard]] std::uint32_t offset_of(const Run& run, std::uint32_t record) const;
  [[nodiscard]] const std::uint32_t* offsets(const Run& run) const;
  [[nodiscard]] std::uint32_t step_over(const Run& run, std::uint32_t offset) const;
  [[nodiscard]] RecordPlace place(const Run& run, std::uint32_t offset) const;
  [[nodiscard]] Position at(std::size_t run, std::uint32_t record) const;

  const LogView& log_;
  std::deque<Run> runs_;  // By rising numbers; a run without live records stays only between others.
  std::size_t live_ = 0;
  mutable std::atomic<std::size_t> detail_bytes_{0};
};

}  // namespace kvingest::mmap_store
