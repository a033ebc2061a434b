#include "storage/mmap/run_table.hpp"

#include <algorithm>
#include <iterator>

#include "base/check.hpp"

namespace kvingest::mmap_store {
namespace {

// Of 64-bit words with one bit a record.
std::size_t bit_words(std::uint32_t records) {
  return (std::size_t{records} + 63) / 64;
}

}  // namespace

// The last run that begins at or before `number`; the end when there is none.
RunTable::Runs::const_iterator RunTable::run_for(std::uint64_t number) const {
  if (runs_.empty()) return runs_.end();
  const auto last = std::prev(runs_.end());
  if (last->first <= number) return last;
  const auto after = runs_.upper_bound(number);
  return after == runs_.begin() ? runs_.end() : std::prev(after);
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
  if (!run.offsets.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) return expected;
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

// ---- whole runs -----------------------------------------------------------------------------------------------------

bool RunTable::touches(std::uint64_t first, std::uint32_t count) const {
  const Position at = lower_bound(first);
  return at.valid && number(at) - first < count;
}

void RunTable::insert(std::uint64_t first, std::uint32_t count, Place payload, std::uint32_t bytes) {
  KV_ASSERT(countable(first, count));
  if (!runs_.empty() && run_for(first + count - 1) != runs_.end()) cut(first, count);
  runs_.emplace_hint(runs_.end(), first, Run(payload, count, bytes));
  live_ += count;
}

void RunTable::cut(std::uint64_t first, std::uint32_t count) {
  const std::uint64_t last = first + count - 1;
  while (true) {
    const auto at = run_for(last);
    if (at == runs_.end() || (at->first < first && first - at->first >= at->second.count)) return;
    const std::uint64_t begin = at->first;
    const Run whole = std::move(const_cast<Run&>(at->second));
    runs_.erase(at);
    live_ -= whole.count - whole.struck_count;
    if (begin + whole.count - 1 > last) {
      keep_part(begin, whole, static_cast<std::uint32_t>(last + 1 - begin), whole.count);
    }
    if (begin < first) keep_part(begin, whole, 0, static_cast<std::uint32_t>(first - begin));
    forget_details(whole);
  }
}

// Keeps the records [from, end) of a run that began at `first` as a run of their own, if any of them is live.
void RunTable::keep_part(std::uint64_t first, const Run& run, std::uint32_t from, std::uint32_t end) {
  while (from < end && run.is_struck(from)) ++from;
  while (from < end && run.is_struck(end - 1)) --end;
  if (from == end) return;
  const std::uint32_t begin = offset_of(run, from);
  Run part(run.payload + begin, end - from, (end == run.count ? run.bytes : offset_of(run, end)) - begin);
  for (std::uint32_t record = from; run.struck && record < end; ++record) {
    if (run.is_struck(record)) strike(part, record - from, place(run, offset_of(run, record)).about_bytes());
  }
  live_ += part.count - part.struck_count;
  runs_.emplace(first + from, std::move(part));
}

void RunTable::forget_details(const Run& run) noexcept {
  std::size_t bytes = 0;
  if (run.offsets.load(std::memory_order_relaxed) != nullptr) {
    bytes += (run.count + kRecordsPerOffset - 1) / kRecordsPerOffset * sizeof(std::uint32_t);
  }
  if (run.struck) bytes += bit_words(run.count) * sizeof(std::uint64_t);
  detail_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

RunTable::Stretch RunTable::stretch(std::uint64_t from, std::uint64_t last, Place low, Place high,
                                    std::uint64_t bytes_max) const {
  auto run = run_for(from);
  if (run == runs_.end()) {
    run = runs_.begin();
  } else if (from - run->first >= run->second.count) {
    ++run;
  }
  for (; run != runs_.end() && run->first <= last; ++run) {
    const Run& here = run->second;
    if (here.payload < low || here.payload >= high) continue;  // Newer records with these numbers, elsewhere.
    auto record = static_cast<std::uint32_t>(from > run->first ? from - run->first : 0);
    while (record < here.count && here.is_struck(record)) ++record;
    if (record == here.count) continue;
    std::uint32_t offset = offset_of(here, record);
    Stretch found{run->first + record, 0, here.payload + offset, 0};
    for (; record < here.count && !here.is_struck(record) && found.bytes < bytes_max; ++record, ++found.count) {
      const std::uint32_t next = step_over(here, offset);
      found.bytes += next - offset;
      offset = next;
    }
    return found;
  }
  return {};
}

std::vector<RunTable::Saved> RunTable::save(std::uint64_t from, std::size_t runs_max) const {
  std::vector<Saved> saved;
  for (auto at = runs_.lower_bound(from); at != runs_.end() && saved.size() < runs_max; ++at) {
    const Run& run = at->second;
    saved.push_back({at->first, run.count, run.payload, run.bytes, run.struck_bytes});
    if (run.struck) saved.back().struck.assign(run.struck.get(), run.struck.get() + bit_words(run.count));
  }
  return saved;
}

bool RunTable::restore(const Saved& saved) {
  if (!countable(saved.first, saved.count) ||
      (!saved.struck.empty() && saved.struck.size() != bit_words(saved.count))) {
    return false;
  }
  if (!runs_.empty()) {
    const auto last = std::prev(runs_.end());
    if (saved.first <= last->first || saved.first - last->first < last->second.count) return false;
  }
  Run run(saved.payload, saved.count, saved.bytes);
  for (std::uint32_t record = 0; !saved.struck.empty() && record < saved.count; ++record) {
    if ((saved.struck[record / 64] >> record % 64 & 1) != 0) strike(run, record, 0);
  }
  if (run.struck_count == run.count) return false;
  run.struck_bytes = saved.struck_bytes;
  live_ += run.count - run.struck_count;
  runs_.emplace_hint(runs_.end(), saved.first, std::move(run));
  return true;
}

void RunTable::clear() noexcept {
  runs_.clear();
  live_ = 0;
  detail_bytes_ = 0;
}

// ---- single records -------------------------------------------------------------------------------------------------

std::optional<RecordPlace> RunTable::find(std::uint64_t number) const {
  const auto run = run_for(number);
  if (run == runs_.end() || number - run->first >= run->second.count) return std::nullopt;
  const auto record = static_cast<std::uint32_t>(number - run->first);
  if (run->second.is_struck(record)) return std::nullopt;
  return place(run->second, offset_of(run->second, record));
}

void RunTable::strike(Run& run, std::uint32_t record, std::uint64_t about_bytes) {
  if (!run.struck) {
    run.struck.reset(new std::uint64_t[bit_words(run.count)]());
    detail_bytes_.fetch_add(bit_words(run.count) * sizeof(std::uint64_t), std::memory_order_relaxed);
  }
  run.struck[record / 64] |= std::uint64_t{1} << record % 64;
  ++run.struck_count;
  run.struck_bytes += static_cast<std::uint32_t>(about_bytes);
}

std::optional<RecordPlace> RunTable::strike_out(std::uint64_t number) {
  const auto found = find(number);
  if (!found) return std::nullopt;
  const auto at = run_for(number);
  auto& run = const_cast<Run&>(at->second);
  strike(run, static_cast<std::uint32_t>(number - at->first), found->about_bytes());
  --live_;
  if (run.struck_count < run.count) return found;
  forget_details(run);
  runs_.erase(at);
  return found;
}

// ---- walking --------------------------------------------------------------------------------------------------------

// The first live record in `run` from `record` on, or in a later run.
RunTable::Position RunTable::at_or_behind(Runs::const_iterator run, std::uint32_t record) const {
  for (; run != runs_.end(); ++run, record = 0) {
    while (record < run->second.count && run->second.is_struck(record)) ++record;
    if (record < run->second.count) return at(run, record);
  }
  return {};
}

// The last live record in `run` before record `end`, or in an earlier run.
RunTable::Position RunTable::before_in(Runs::const_iterator run, std::uint32_t end) const {
  while (true) {
    while (end > 0 && run->second.is_struck(end - 1)) --end;
    if (end > 0) return at(run, end - 1);
    if (run == runs_.begin()) return {};
    end = (--run)->second.count;
  }
}

RunTable::Position RunTable::lower_bound(std::uint64_t number) const {
  const auto run = run_for(number);
  if (run == runs_.end()) return at_or_behind(runs_.begin(), 0);
  if (number - run->first >= run->second.count) return at_or_behind(std::next(run), 0);
  return at_or_behind(run, static_cast<std::uint32_t>(number - run->first));
}

RunTable::Position RunTable::before(std::uint64_t number) const {
  if (number == 0) return {};
  const auto run = run_for(number - 1);
  if (run == runs_.end()) return {};
  return before_in(run, static_cast<std::uint32_t>(std::min<std::uint64_t>(number - run->first, run->second.count)));
}

RunTable::Position RunTable::last() const {
  if (runs_.empty()) return {};
  const auto run = std::prev(runs_.end());
  return before_in(run, run->second.count);
}

void RunTable::next(Position& position) const {
  const Run& run = position.run->second;
  position.offset = step_over(run, position.offset);
  if (++position.record < run.count && !run.is_struck(position.record)) return;
  position = at_or_behind(position.run, position.record);
}

}  // namespace kvingest::mmap_store
