#include "service/retention.hpp"

#include <algorithm>
#include <utility>

#include "kvingest/codec/fixed.hpp"

namespace kvingest {
namespace {

constexpr std::uint64_t kMarksPerAge = 64;
constexpr std::size_t kPageRecords = 1'000;
constexpr std::size_t kPageBytes = std::size_t{1} << 20;
constexpr int kPagesMax = 256;  // As much as one group brings, so that what comes never outruns what goes.

std::uint64_t nanoseconds(Retention::WallClock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

/// What an entry of a batch adds to the bytes held.
std::uint64_t bytes_of(const BatchEntry& entry) {
  if (entry.kind == WriteBatch::Kind::put) return entry.key.size() + entry.value.size();
  if (entry.kind != WriteBatch::Kind::run) return 0;
  std::uint64_t bytes = entry.count * kSeqKeyBytes;
  RunReader values(entry.value);
  while (const auto value = values.next()) bytes += value->size();
  return bytes;
}

}  // namespace

Result<Retention> Retention::load(const Store& store, const RetentionOptions& options, std::uint64_t seq,
                                  WallClock::time_point now) {
  if (!store.capabilities().ordered) {
    return fail(Code::unsupported, "--retain-bytes and --retain-age: this store has no order, so no oldest record");
  }
  Retention retention(options);
  retention.now_.held.seq = seq;
  bool counted = false;
  KV_TRY(retention.read_meta(store, counted));
  if (!counted) KV_TRY(retention.count_all(store));
  // What came in runs without retention counts as arrived now.
  auto& marks = retention.marks_;
  if (options.age.count() != 0 && seq > (marks.empty() ? 0 : marks.back().seq)) {
    marks.push_back({seq, nanoseconds(now)});
    retention.now_.mark_is_unsaved = true;
  }
  return retention;
}

Result<void> Retention::read_meta(const Store& store, bool& counted) {
  Result<void> outcome;
  const auto note = [&outcome](const auto& decoded) {
    if (!decoded && outcome) outcome = tl::unexpected<Error>(decoded.error());
    return decoded.has_value();
  };
  KV_TRY(store.get(Space::meta, kMetaRemoved, [&](std::string_view value) {
    if (const auto removed = RemovedTotals::decode(value); note(removed)) now_.removed = *removed;
  }));
  KV_TRY(store.get(Space::meta, kMetaHeld, [&](std::string_view value) {
    const auto held = HeldBytes::decode(value);
    if (!note(held) || held->seq != now_.held.seq) return;
    counted = true;
    now_.held = *held;
  }));
  const std::string first(kMetaTimes);
  std::string last = first;
  ++last.back();  // '/' becomes '0': behind every number.
  KV_TRY(
      store.scan(Space::meta, Range{.first = first, .last = last}, [&](std::string_view key, std::string_view value) {
        const auto time = decode_number(value, kMetaTimes);
        if (!note(time) || key.size() != first.size() + kSeqKeyBytes) return outcome.has_value();
        marks_.push_back({codec::get_ordered<std::uint64_t>(key.data() + first.size()), *time});
        return true;
      }));
  return outcome;
}

Result<void> Retention::count_all(const Store& store) {
  std::string from;
  for (std::size_t visited = kPageRecords; visited == kPageRecords;) {
    const auto page =
        store.scan(Range{.first = from, .limit = kPageRecords}, [&](std::string_view key, std::string_view value) {
          now_.held.bytes += key.size() + value.size();
          from.assign(key).push_back('\0');
          return true;
        });
    KV_TRY(page);
    visited = *page;
  }
  return {};
}

void Retention::add_group(WriteBatch& batch, std::uint64_t seq, WallClock::time_point now) {
  BatchReader reader(batch.bytes());
  BatchEntry entry;
  group_ = {.seq = seq, .bytes = 0};
  for (auto more = reader.next(entry); more && *more; more = reader.next(entry)) group_.bytes += bytes_of(entry);
  batch.put_meta(kMetaHeld, HeldBytes{.seq = seq, .bytes = now_.held.bytes + group_.bytes}.encode());
  if (options_.age.count() == 0) return;
  if (add_mark(seq, now)) batch.put_meta(time_key(seq), encode_number(marks_.back().time_ns));
}

/// Whether a mark was due.
bool Retention::add_mark(std::uint64_t seq, WallClock::time_point now) {
  const Mark last = marks_.empty() ? Mark{0, 0} : marks_.back();
  const std::uint64_t time_ns = std::max(nanoseconds(now), last.time_ns);  // The wall clock may step back.
  const auto age_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.age).count());
  if (seq <= last.seq || time_ns - last.time_ns < age_ns / kMarksPerAge) return false;
  marks_.push_back({seq, time_ns});
  return true;
}

void Retention::group_written() {
  if (group_.seq != 0) now_.held = {.seq = group_.seq, .bytes = now_.held.bytes + group_.bytes};
  group_ = {};
  now_.held_is_stale = now_.held_is_stale || std::exchange(went_meanwhile_, false);
}

/// The newest number that is older than the age.
std::uint64_t Retention::old_up_to(WallClock::time_point now) const noexcept {
  if (options_.age.count() == 0) return 0;
  const std::uint64_t limit = nanoseconds(now - options_.age);
  std::uint64_t seq = 0;
  for (const Mark& mark : marks_) {
    if (mark.time_ns > limit || mark.seq > now_.held.seq) break;
    seq = mark.seq;
  }
  return seq;
}

bool Retention::is_due(WallClock::time_point now) const noexcept {
  const bool beyond = options_.bytes_max != 0 && now_.held.bytes > options_.bytes_max;
  return beyond || old_up_to(now) != 0 || now_.held_is_stale || now_.mark_is_unsaved;
}

std::chrono::milliseconds Retention::look_every() const noexcept {
  using std::chrono::milliseconds;
  if (options_.age.count() == 0) return std::chrono::hours(1);  // A group that goes beyond the bytes makes it due.
  return std::clamp(options_.age / static_cast<int>(kMarksPerAge), milliseconds(10), milliseconds(60'000));
}

Result<std::uint64_t> Retention::expire_some(const Store& store, WriteBatch& batch, WallClock::time_point now) {
  // The last records of a feed that rests have no mark behind them yet.
  if (options_.age.count() != 0 && add_mark(now_.held.seq, now)) now_.mark_is_unsaved = true;
  if (!is_due(now)) return 0;
  const std::uint64_t old_seq = old_up_to(now);
  next_ = now_;
  std::uint64_t gone = 0;
  bool more = true;
  for (int page = 0; page < kPagesMax && more; ++page) {
    const auto erased = erase_page(store, batch, old_seq, more);
    KV_TRY(erased);
    gone += *erased;
  }
  if (gone == 0 && !now_.held_is_stale && !now_.mark_is_unsaved && old_seq == 0) return 0;
  // Of the marks up to here no record is left.
  while (!more && next_.marks_gone < marks_.size() && marks_[next_.marks_gone].seq <= old_seq)
    batch.erase_meta(time_key(marks_[next_.marks_gone++].seq));
  if (now_.mark_is_unsaved && next_.marks_gone < marks_.size())
    batch.put_meta(time_key(marks_.back().seq), encode_number(marks_.back().time_ns));
  next_.held_is_stale = next_.mark_is_unsaved = false;
  next_.removed.expired += gone;
  batch.put_meta(kMetaRemoved, next_.removed.encode());
  batch.put_meta(kMetaHeld, next_.held.encode());
  return gone;
}

/// Of one page of the oldest records, erases those that are to go; `more`: there may be others behind it.
Result<std::uint64_t> Retention::erase_page(const Store& store, WriteBatch& batch, std::uint64_t old_seq, bool& more) {
  std::uint64_t erased = 0;
  std::size_t bytes = 0;
  more = false;
  const std::string from = next_.last_gone.empty() ? std::string() : next_.last_gone + '\0';
  const auto page =
      store.scan(Range{.first = from, .limit = kPageRecords}, [&](std::string_view key, std::string_view value) {
        const auto seq = options_.seq_in_key.find(key);
        // The newest record stays, however large it is; but not for longer than its age.
        const bool beyond =
            options_.bytes_max != 0 && next_.held.bytes > options_.bytes_max && seq.value_or(0) < next_.held.seq;
        more = seq && (beyond || *seq <= old_seq);
        if (!more) return false;
        batch.erase(key);
        next_.last_gone = key;
        next_.held.bytes -= std::min<std::uint64_t>(next_.held.bytes, key.size() + value.size());
        ++erased;
        bytes += key.size() + value.size();
        return bytes < kPageBytes;
      });
  KV_TRY(page);
  if (*page == 0 && from.empty()) next_.held.bytes = 0;  // Nothing is there, whatever was counted.
  return erased;
}

void Retention::expired() {
  for (; next_.marks_gone > 0; --next_.marks_gone) marks_.pop_front();
  now_ = next_;
  went_meanwhile_ = group_.seq != 0;
}

}  // namespace kvingest
