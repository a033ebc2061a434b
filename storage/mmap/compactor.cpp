#include "storage/mmap/compactor.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/check.hpp"
#include "storage/mmap/segment_list.hpp"

namespace kvingest::mmap_store {
namespace {

// In quarters of the live bytes: where compaction begins, and where the writer waits for it.
constexpr std::uint64_t kBeginQuarters = 6;
constexpr std::uint64_t kWaitQuarters = 7;
static_assert(kBeginQuarters < kWaitQuarters && kWaitQuarters < 8, "twice the live bytes is what is promised");

constexpr std::uint64_t kWorthWhile = 4;  // A quarter of a segment must be dead to choose it for that.
constexpr std::uint64_t kWorthAtAll = 8;  // An eighth, where someone asks for compaction.

// A step holds the writer up: at most about a millisecond. A frame of moved records is to fit into any segment.
constexpr std::uint64_t kStepBytesMin = std::uint64_t{16} << 10;
constexpr std::uint64_t kStepBytesMax = std::uint64_t{256} << 10;

// What a segment's end brings: all but the live records and, unless it is the oldest, the erasures.
std::uint64_t reclaimable(Segment& segment, bool oldest) {
  std::uint64_t kept = segment.usage().live_bytes();
  if (!oldest) kept += segment.usage().erasure_bytes.load(std::memory_order_relaxed);
  const std::uint64_t bytes = segment.capacity_bytes();
  return kept < bytes ? bytes - kept : 0;
}

}  // namespace

Compactor::Compactor(const Store& store, std::uint64_t segment_bytes, std::uint64_t rate)
    : store_(store),
      segment_bytes_(segment_bytes),
      rate_(rate),
      mover_(store.log, store.index, store.view, store.accounts, store.turns,
             std::clamp<std::uint64_t>(segment_bytes / 4, kStepBytesMin, kStepBytesMax)) {}

// ---- the writer's side ----------------------------------------------------------------------------------------------

void Compactor::look() {
  if (given_up_.load(std::memory_order_relaxed) || looking_.exchange(true)) return;
  worker_.post([this] { run_in_background(); });
}

bool Compactor::over_budget() const {
  const Log::Totals totals = store_.log.totals();
  return totals.allocated_bytes > totals.live_bytes / 4 * kWaitQuarters + segment_bytes_;
}

bool Compactor::is_due(const Log::Totals& totals) const {
  return totals.full_bytes - std::min(empty_bytes_.load(std::memory_order_relaxed), totals.full_bytes) >
         totals.live_bytes / 4 * kBeginQuarters;
}

std::uint64_t Compactor::bytes_to_move() const {
  const Log::Totals totals = store_.log.totals();
  return is_due(totals) ? std::min(totals.live_bytes, segment_bytes_) : 0;
}

void Compactor::wait_for_space() {
  std::unique_lock lock(mutex_);
  const std::uint64_t enough = begun_ + 1;  // A round that begins now sees all there is.
  ++waiting_;
  changed_.notify_all();
  lock.unlock();
  look();
  lock.lock();
  changed_.wait(lock, [&] { return ended_ >= enough || stopping_ || given_up_ || !over_budget(); });
  --waiting_;
}

Result<void> Compactor::compact_all() {
  Result<void> result;
  bool done = false;
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  worker_.post([&] {
    Result<void> ran = run(true);
    const std::scoped_lock done_lock(mutex_);
    result = std::move(ran);
    done = true;
    changed_.notify_all();
  });
  changed_.wait(lock, [&] { return done; });
  --waiting_;
  return result;
}

void Compactor::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  worker_.stop();
  static_cast<void>(drop_empty());  // What stays is dropped another time.
}

// ---- the worker's side ----------------------------------------------------------------------------------------------

void Compactor::run_in_background() {
  looking_ = false;
  {
    const std::scoped_lock lock(mutex_);
    ++begun_;
  }
  const Result<void> done = run(false);
  if (!done && done.error().code == Code::corrupt) given_up_ = true;
  const std::scoped_lock lock(mutex_);
  ended_ = begun_;
  changed_.notify_all();
}

Result<void> Compactor::run(bool all) {
  if (all) KV_TRY(seal_if_worth_it());
  KV_TRY(drop_empty());
  // Each segment that is there now once: what is moved meanwhile is for another time.
  for (std::size_t left = store_.log.full_segments().size(); left > 0 && !stopping_; --left) {
    bool oldest = false;
    Segment* const segment = choose(all, oldest);
    if (segment == nullptr) break;
    KV_TRY(empty(*segment, oldest));
    KV_TRY(drop_empty());
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
  }
  prepare_next();
  return {};
}

bool Compactor::is_empty(const Segment* segment) const {
  return std::any_of(empty_.begin(), empty_.end(), [&](const Empty& one) { return one.segment == segment; });
}

void Compactor::count_empty() {
  std::uint64_t bytes = 0;
  for (const Empty& one : empty_) bytes += one.segment->capacity_bytes();
  empty_bytes_ = bytes;
  empty_count_ = empty_.size();
}

// The segment to take next; null when there is none.
Segment* Compactor::choose(bool all, bool& oldest) const {
  const std::vector<Segment*> full = store_.log.full_segments();
  const Log::Totals totals = store_.log.totals();
  if (!all && !is_due(totals)) return nullptr;
  Segment* best = nullptr;
  std::uint64_t best_percent = 0;
  for (Segment* const segment : full) {
    if (is_empty(segment)) continue;
    const std::uint64_t percent = reclaimable(*segment, segment == full.front()) * 100 / segment->capacity_bytes();
    if (all && percent >= 100 / kWorthAtAll) return oldest = segment == full.front(), segment;
    if (!all && (best == nullptr || percent > best_percent)) best = segment, best_percent = percent;
  }
  if (best != nullptr && best_percent < 100 / kWorthWhile && !is_empty(full.front())) best = full.front();
  oldest = best != nullptr && best == full.front();
  return best;
}

Result<void> Compactor::empty(Segment& segment, bool oldest) {
  KV_TRY(mover_.begin(segment, oldest));
  for (Mover::Step step; step.more;) {
    if (stopping_) return {};
    auto done = mover_.step();
    KV_TRY(done);
    step = *done;
    moved_bytes_.fetch_add(step.moved_bytes, std::memory_order_relaxed);
    pace(step.moved_bytes);
  }
  const std::scoped_lock turn(store_.turns);
  empty_.push_back({&segment, store_.log.last_frame(), store_.index.reader_count()});
  count_empty();
  return {};
}

Result<void> Compactor::drop_empty() {
  if (empty_.empty()) return {};
  {
    // The list needs a frame on disk in the newest segment, so that those behind it have no gap.
    const std::scoped_lock turn(store_.turns);
    if (!store_.log.newest_has_frame()) KV_TRY(store_.log.append(FrameKind::mark, {}));
    for (Empty& one : empty_) one.last_frame = std::max(one.last_frame, store_.log.newest_first_frame());
  }
  for (std::size_t i = 0; i < empty_.size();) {
    const Empty one = empty_[i];
    const std::unique_lock files(files_, std::try_to_lock);
    if (!files.owns_lock() || store_.index.readers_before(one.readers)) {
      ++i;
      continue;
    }
    KV_TRY(drop(one));
    empty_.erase(empty_.begin() + static_cast<std::ptrdiff_t>(i));
    count_empty();
  }
  return {};
}

Result<void> Compactor::drop(const Empty& empty) {
  if (store_.log.synced_to() < empty.last_frame) KV_TRY(store_.log.sync());
  KV_TRY(write_segment_list(store_.home.posix, store_.home.dir, store_.log.list_without(empty.segment)));
  // Before it leaves the log: what the log has not counts for nothing, and others may take its room at once.
  store_.home.posix.unlink(empty.segment->path().c_str());  // Should the file stay, the next opening removes it.
  std::unique_ptr<Segment> dropped;
  {
    const std::scoped_lock turn(store_.turns);
    // Places in it that were replaced before it was empty: its readers are gone, so all of them are named here.
    store_.index.release([this](RecordPlace place, std::uint64_t) { store_.accounts.dead(place); });
    dropped = store_.log.detach(*empty.segment);
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> Compactor::seal_if_worth_it() {
  const std::scoped_lock turn(store_.turns);
  return store_.log.newest_dead_percent() >= 100 / kWorthAtAll ? store_.log.seal() : Result<void>();
}

void Compactor::prepare_next() {
  const std::scoped_lock turn(store_.turns);
  const Log::Totals totals = store_.log.totals();
  if (totals.full_bytes <= totals.live_bytes / 4 * kWaitQuarters) store_.supply.prepare(store_.log.next_number());
}

// Waits as long as so many bytes may take, unless somebody waits for their end.
void Compactor::pace(std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(bytes * 1'000'000'000 / rate_),
                    [&] { return stopping_ || waiting_ > 0; });
}

}  // namespace kvingest::mmap_store
