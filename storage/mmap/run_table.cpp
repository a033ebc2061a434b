#include "storage/mmap/run_table.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "kvingest/codec/varint.hpp"

namespace kvingest::mmap_store {

bool RunTable::can_append(std::uint64_t first, std::uint32_t count) const noexcept {
  if (first > std::numeric_limits<std::uint64_t>::max() - count) return false;
  return runs_.empty() || first >= runs_.back().first + runs_.back().count;
}

void RunTable::append(std::uint64_t first, std::uint32_t count, Place payload) {
  KV_ASSERT(count > 0 && can_append(first, count));
  runs_.emplace_back(first, count, payload);
  live_ += count;
}

// The last run that begins at or before `number`; runs_.size() when there is none.
std::size_t RunTable::run_for(std::uint64_t number) const noexcept {
  if (runs_.empty()) return 0;
  if (runs_.back().first <= number) return runs_.size() - 1;
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), number,
                                      [](std::uint64_t wanted, const Run& run) { return wanted < run.first; });
  return after == runs_.begin() ? runs_.size() : static_cast<std::size_t>(after - runs_.begin()) - 1;
}

// ---- inside a run ---------------------------------------------------------------------------------------------------

// Offset of the record behind the one at `offset`. The run was checked when it was written or read; should memory have
// been damaged since, the walk stays inside the segment and the record's own reading reports it.
std::uint32_t RunTable::step_over(const Run& run, std::uint32_t offset) const {
  const auto record = log_.record(RecordPlace(run.payload + offset, true, 0));
  if (!record) return offset;
  return static_cast<std::uint32_t>(record->value.data() + record->value.size() - log_.at(run.payload));
}

const std::uint32_t* RunTable::offsets(const Run& run) const {
  if (const std::uint32_t* known = run.offsets.load(std::memory_order_acquire)) return known;
  const std::uint32_t blocks = (run.count + kRecordsPerOffset - 1) / kRecordsPerOffset;
  std::unique_ptr<std::uint32_t[]> made(new std::uint32_t[blocks]);
  std::uint32_t offset = 0;
  for (std::uint32_t record = 0; record < run.count; ++record) {
    if (record % kRecordsPerOffset == 0) made[record / kRecordsPerOffset] = offset;
    offset = step_over(run, offset);
  }
  // Readers may do this at the same time; the first one wins.
  std::uint32_t* expected = nullptr;
  auto& slot = const_cast<std::atomic<std::uint32_t*>&>(run.offsets);
  if (!slot.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return expected;
  detail_bytes_.fetch_add(blocks * sizeof(std::uint32_t), std::memory_order_relaxed);
  return made.release();
}

std::uint32_t RunTable::offset_of(const Run& run, std::uint32_t record) const {
  if (record == 0) return 0;
  std::uint32_t offset = offsets(run)[record / kRecordsPerOffset];
  for (std::uint32_t i = 0; i < record % kRecordsPerOffset; ++i) offset = step_over(run, offset);
  return offset;
}

RecordPlace RunTable::place(const Run& run, std::uint32_t offset) const {
  return RecordPlace(run.payload + offset, true, step_over(run, offset) - offset);
}

RecordPlace RunTable::place(const Position& position) const {
  return place(runs_[position.run], position.offset);
}

// ---- single records -------------------------------------------------------------------------------------------------

std::optional<RecordPlace> RunTable::find(std::uint64_t number) const {
  const std::size_t index = run_for(number);
  if (index == runs_.size()) return std::nullopt;
  const Run& run = runs_[index];
  if (number - run.first >= run.count) return std::nullopt;
  const auto record = static_cast<std::uint32_t>(number - run.first);
  if (run.is_struck(record)) return std::nullopt;
  return place(run, offset_of(run, record));
}

std::optional<RecordPlace> RunTable::strike_out(std::uint64_t number) {
  const auto found = find(number);
  if (!found) return std::nullopt;
  Run& run = runs_[run_for(number)];
  const auto record = static_cast<std::uint32_t>(number - run.first);
  if (!run.struck) {
    run.struck = std::make_unique<std::vector<std::uint64_t>>((run.count + 63) / 64);
    detail_bytes_.fetch_add(run.struck->size() * sizeof(std::uint64_t), std::memory_order_relaxed);
  }
  (*run.struck)[record / 64] |= std::uint64_t{1} << record % 64;
  --live_;
  if (++run.struck_count < run.count) return found;
  detail_bytes_.fetch_sub(run.struck->size() * sizeof(std::uint64_t), std::memory_order_relaxed);
  run.struck.reset();
  run.count = 0;
  while (!runs_.empty() && runs_.front().count == 0) runs_.pop_front();
  while (!runs_.empty() && runs_.back().count == 0) runs_.pop_back();
  return found;
}

std::size_t RunTable::used_bytes() const noexcept {
  return runs_.size() * sizeof(Run) + detail_bytes_.load(std::memory_order_relaxed);
}

// ---- walking --------------------------------------------------------------------------------------------------------

RunTable::Position RunTable::at(std::size_t run, std::uint32_t record) const {
  return {run, record, offset_of(runs_[run], record), true};
}

RunTable::Position RunTable::first() const {
  return runs_.empty() ? Position{} : lower_bound(runs_.front().first);
}

RunTable::Position RunTable::last() const {
  return before(std::numeric_limits<std::uint64_t>::max());
}

RunTable::Position RunTable::lower_bound(std::uint64_t number) const {
  std::size_t index = run_for(number);
  std::uint32_t record = 0;
  if (index == runs_.size()) {
    index = 0;
  } else if (number - runs_[index].first < runs_[index].count) {
    record = static_cast<std::uint32_t>(number - runs_[index].first);
  } else {
    ++index;
  }
  for (; index < runs_.size(); ++index, record = 0) {
    const Run& run = runs_[index];
    while (record < run.count && run.is_struck(record)) ++record;
    if (record < run.count) return at(index, record);
  }
  return {};
}

RunTable::Position RunTable::before(std::uint64_t number) const {
  if (number == 0) return {};
  std::size_t index = run_for(number - 1);
  if (index == runs_.size()) return {};
  auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(number - runs_[index].first, runs_[index].count));
  while (true) {
    const Run& run = runs_[index];
    while (end > 0 && run.is_struck(end - 1)) --end;
    if (end > 0) return at(index, end - 1);
    if (index == 0) return {};
    end = runs_[--index].count;
  }
}

void RunTable::next(Position& position) const {
  const Run& run = runs_[position.run];
  position.offset = step_over(run, position.offset);
  if (++position.record < run.count && !run.is_struck(position.record)) return;
  position = lower_bound(run.first + position.record);
}

void RunTable::previous(Position& position) const {
  position = before(number(position));
}

}  // namespace kvingest::mmap_store
