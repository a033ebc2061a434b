#include "service/committer.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace kvingest {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using WallClock = Retention::WallClock;

/// Why reading rests while commits go on: the queue is full.
constexpr std::string_view kStoreSlow = "store_slow";
constexpr std::chrono::milliseconds kRetryFirst = 20ms;
constexpr std::chrono::milliseconds kRetryLongest = 500ms;  // A feed goes on at most this long after space is back.
constexpr std::size_t kGroupBytesMax = kBatchBytesMax / 4;  // Beside one parcel more, and what its changes add.

/// Nothing was written, and the same group may be taken later.
bool is_refusal(const Error& error) {
  return error.code == Code::no_space || error.code == Code::busy;
}

}  // namespace

Result<std::unique_ptr<Committer>> Committer::start(Store& store, CommitterOptions options) {
  auto book = SourceBook::load(store);
  KV_TRY(book);
  std::optional<Retention> retention;
  if (options.retention.enabled()) {
    auto loaded = Retention::load(store, options.retention, book->seq(), WallClock::now());
    KV_TRY(loaded);
    retention = std::move(*loaded);
  }
  std::unique_ptr<Committer> committer(
      new Committer(store, std::move(*book), std::move(retention), std::move(options)));
  std::promise<Result<void>> ready;
  auto started = ready.get_future();
  committer->thread_ = std::thread([self = committer.get(), &ready] {
    name_this_thread("kv-commit");
    Result<void> pinned = self->options_.cpu ? pin_this_thread(*self->options_.cpu) : Result<void>();
    const bool go_on = pinned.has_value();
    ready.set_value(std::move(pinned));  // `ready` is gone from here on.
    if (go_on) self->run();
  });
  KV_TRY(started.get());
  return committer;
}

Committer::Committer(Store& store, SourceBook book, std::optional<Retention> retention, CommitterOptions options)
    : store_(store),
      capabilities_(store.capabilities()),
      options_(std::move(options)),
      // Where a write waits for the disk, the next batch is better cut meanwhile, on another thread.
      commits_inline_(capabilities_.given(options_.level) < Durability::disk && !capabilities_.syncs_each_write),
      book_(std::move(book)),
      retention_(std::move(retention)),
      view_(store_, batch_) {
  if (retention_) expire_due_ = Clock::now();
  const std::uint64_t seq = book_.seq();
  ledger_.first_seq = seq;
  ledger_.watermarks = {seq, seq, capabilities_.persistent ? seq : 0};
}

Committer::~Committer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = give_up_ = true;
  }
  queue_wakes_.notify_one();
  thread_.join();
}

std::unique_ptr<Parcel> Committer::submit(std::unique_ptr<Parcel> parcel) {
  parcel->charged_bytes = parcel->memory_bytes();
  queued_bytes_.fetch_add(parcel->charged_bytes, std::memory_order_relaxed);
  if (commits_inline_ && !(parcel->sync && capabilities_.persistent)) {
    auto back = commit_here(parcel);
    if (!parcel) return back;
  }
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(parcel));
  }
  queue_wakes_.notify_one();
  return nullptr;
}

/// Commits a group of one on the worker's thread. Leaves `parcel` alone where anything else is under way.
std::unique_ptr<Parcel> Committer::commit_here(std::unique_ptr<Parcel>& parcel) {
  const std::unique_lock held(commit_mutex_, std::try_to_lock);
  if (!held || !group_.empty() || !queue_is_empty()) return nullptr;
  group_.push_back(std::move(parcel));
  if (commit_group() == Attempt::refused) {
    queue_wakes_.notify_one();  // It stays the group; the committer's thread tries it again.
    return nullptr;
  }
  auto back = std::move(group_.front());
  group_.clear();
  return back;
}

bool Committer::has_room(Inbox& inbox) {
  if (queued_bytes_.load(std::memory_order_relaxed) < options_.queue_bytes) return true;
  const std::lock_guard lock(queue_mutex_);
  // Looked at again under the lock that answer_group() takes after it has lowered the count: no wake-up is lost.
  if (queued_bytes_.load(std::memory_order_relaxed) < options_.queue_bytes) return true;
  if (without_room_.empty()) full_since_ = Clock::now();
  without_room_.insert(&inbox);
  return false;
}

void Committer::attach(Inbox& inbox) {
  const std::lock_guard lock(queue_mutex_);
  inboxes_.push_back(&inbox);
}

FeedStatus Committer::status() const {
  Clock::time_point full_since{};
  {
    const std::lock_guard lock(queue_mutex_);
    if (!without_room_.empty()) full_since = full_since_;
  }
  const std::lock_guard lock(ledger_mutex_);
  const bool refused = !reason_.empty();
  const bool slow = !refused && full_since != Clock::time_point{};
  return {.received = ledger_.tally.received,
          .pending = ledger_.pending,
          .stored = ledger_.watermarks.stored,
          .durable = ledger_.watermarks.durable,
          .on_disk = ledger_.watermarks.on_disk,
          .queue_bytes = queued_bytes_.load(std::memory_order_relaxed),
          .paused = std::string(slow ? kStoreSlow : reason_),
          .paused_since = refused ? paused_since_ : full_since};
}

void Committer::count_received(std::uint64_t messages, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(ledger_mutex_);
  ledger_.tally.received += messages;
  ledger_.pending += messages;
  ledger_.bytes += bytes;
}

RunLedger Committer::ledger() const {
  const std::lock_guard lock(ledger_mutex_);
  return ledger_;
}

std::string Committer::paused() const {
  const std::lock_guard lock(ledger_mutex_);
  return paused_;
}

std::optional<std::map<std::string, SourceRecord, std::less<>>> Committer::sources(std::chrono::milliseconds patience) {
  // By the system's clock: the wait by a steady one is a call that ThreadSanitizer of g++ 12 takes for no locking.
  const std::unique_lock held(commit_mutex_, std::chrono::system_clock::now() + patience);
  if (!held) return std::nullopt;
  return book_.sources();
}

void Committer::give_up_refused() {
  {
    const std::lock_guard lock(queue_mutex_);
    give_up_ = true;
  }
  queue_wakes_.notify_one();
}

Result<void> Committer::stop() {
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = true;
  }
  queue_wakes_.notify_one();
  thread_.join();
  const std::lock_guard held(commit_mutex_);
  if (failure_) return tl::unexpected<Error>(*failure_);
  return sync_store();
}

bool Committer::queue_is_empty() const {
  const std::lock_guard lock(queue_mutex_);
  return queue_.empty();
}

void Committer::run() {
  while (wait_for_work()) {
    const std::lock_guard held(commit_mutex_);
    take_queue();
    if (!group_.empty() && commit_group() == Attempt::answered) deliver_group();
    if (retention_ && !failure_ && Clock::now() >= expire_due_) expire_some();
    if (Clock::now() >= sync_due_ && !failure_) {
      if (const auto synced = sync_store(); !synced) latch(synced.error());
    }
  }
}

/// Sleeps until something is to be done; false when the thread is to end.
bool Committer::wait_for_work() {
  std::unique_lock lock(queue_mutex_);
  while (true) {
    if (refused_) {
      if (!give_up_) queue_wakes_.wait_for(lock, retry_pause_, [this] { return give_up_; });
      return true;
    }
    const Clock::time_point due = std::min(sync_due_, expire_due_);
    if (!queue_.empty() || Clock::now() >= sync_due_) return true;
    if (stopping_) return false;
    if (Clock::now() >= due) return true;
    if (due == Clock::time_point::max()) {
      queue_wakes_.wait(lock);
    } else {
      queue_wakes_.wait_until(lock, due);
    }
  }
}

/// Makes a group of what waits, up to half the queue's budget: the other half is filled while this one is written.
void Committer::take_queue() {
  if (!group_.empty()) return;  // The refused one comes first.
  const std::lock_guard lock(queue_mutex_);
  std::size_t bytes = 0;
  std::size_t count = 0;
  const std::size_t enough = std::min(options_.queue_bytes / 2, kGroupBytesMax);
  while (count < queue_.size() && (count == 0 || bytes < enough)) bytes += queue_[count++]->charged_bytes;
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
  group_.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
}

Committer::Attempt Committer::commit_group() {
  if (failure_) {
    answer_group(gave_up_ ? Parcel::Outcome::given_up : Parcel::Outcome::failed, Durability::memory);
    return Attempt::answered;
  }
  if (!group_built_) build_group();
  const bool asked = std::any_of(group_.begin(), group_.end(), [](const auto& parcel) { return parcel->sync; });
  const bool sync = capabilities_.persistent && (asked || level() == Durability::disk);
  const Clock::time_point began = Clock::now();
  const Result<void> done = batch_.empty() ? (sync ? store_.sync() : Result<void>())
                                           : store_.write(batch_, sync ? Durability::disk : options_.level);
  if (done) {
    metrics_.group_committed(batch_.puts(), batch_.bytes().size(), Clock::now() - began, sync);
    on_committed(sync);
    return Attempt::answered;
  }
  if (is_refusal(done.error())) {
    if (take_back_changes()) return commit_group();
    if (group_.front()->changes) {
      answer_group(Parcel::Outcome::no_space, Durability::memory);
      return Attempt::answered;
    }
    if (on_refused(done.error())) return Attempt::refused;
    give_up(done.error());
    answer_group(Parcel::Outcome::given_up, Durability::memory);
    return Attempt::answered;
  }
  latch(done.error());
  answer_group(Parcel::Outcome::failed, Durability::memory);
  return Attempt::answered;
}

/// Judges the group's parcels in order, numbers their records and puts them into one batch, with the progress and
/// totals of their sources.
void Committer::build_group() {
  const bool alone = group_.size() == 1;
  for (const auto& parcel : group_) {
    if (parcel->changes) {
      decide(*parcel);
      continue;
    }
    if (judge(*parcel)) {
      parcel->batch.number(book_.take_numbers(parcel->batch.puts()));
      if (alone) {
        std::swap(batch_, parcel->batch);  // Nothing is copied; the parcel takes the old batch's memory along.
      } else {
        batch_.append(parcel->batch);
      }
      book_.add_rejects(parcel->rejects, options_.rejects_bytes_max, batch_);
    }
    settle_source(*parcel);
  }
  book_.write_changes(batch_);
  if (retention_ && !batch_.empty()) retention_->add_group(batch_, book_.next_seq(), WallClock::now());
  group_built_ = true;
}

/// Whether what `parcel` holds goes into the store: not a hello's, nor a connection's that has been taken over from.
bool Committer::judge(Parcel& parcel) {
  parcel.outcome = Parcel::Outcome::committed;
  if (parcel.hello) judge_hello(parcel);
  if (!parcel.origin->named() || parcel.hello) return !parcel.hello;
  const auto owner = owners_.find(parcel.origin->source);
  if (owner != owners_.end() && owner->second == parcel.origin) return true;
  parcel.outcome = Parcel::Outcome::dropped;
  parcel.tally = {.received = parcel.tally.received, .duplicate = parcel.tally.received};
  return false;
}

/// From here on in the order of the queue the source is this connection's: what the older one had queued before is
/// committed, what comes behind is dropped, and so `next_line` is exact.
void Committer::judge_hello(Parcel& parcel) {
  parcel.next_line = 1;
  if (!parcel.origin->named()) return;
  const bool known = owners_.contains(parcel.origin->source) || book_.look_up(parcel.origin->source).total.received > 0;
  if (!known && std::max(owners_.size(), book_.size()) >= options_.sources_max) {
    parcel.outcome = Parcel::Outcome::refused;
    parcel.refusal = "too_many_sources";
    return;
  }
  auto& owner = owners_[parcel.origin->source];
  if (owner && owner != parcel.origin) owner->inbox->superseded(owner->connection);
  owner = parcel.origin;
  const SourceRecord record = book_.look_up(parcel.origin->source);
  parcel.next_line = record.line + 1;
  if (!record.columns.empty()) parcel.columns = record.columns;
}

void Committer::settle_source(const Parcel& parcel) {
  if (parcel.tally.received == 0 || parcel.hello) return;
  SourceRecord& record = book_.change(parcel.origin->source);
  record.total += parcel.tally;
  if (parcel.outcome == Parcel::Outcome::dropped) return;
  if (parcel.columns) book_.keep_columns(*parcel.columns);
  if (!parcel.origin->named()) return;
  record.line = std::max(record.line, parcel.last_line);
  if (parcel.columns) record.columns = *parcel.columns;
}

void Committer::on_committed(bool synced) {
  book_.commit();
  say_rejected();
  if (retention_) {
    retention_->group_written();
    plan_to_expire();
  }
  {
    const std::lock_guard lock(ledger_mutex_);
    for (const auto& parcel : group_) {
      Tally decided = parcel->tally;
      ledger_.pending -= decided.received;
      decided.received = 0;
      ledger_.tally += decided;
      ledger_.unterminated += parcel->unterminated;
    }
    const bool was_behind = ledger_.loss_records() > 0;
    ledger_.watermarks.stored = ledger_.watermarks.durable = book_.seq();
    ledger_.last_commit = Clock::now();
    if (synced) {
      ledger_.watermarks.on_disk = book_.seq();
    } else if (!was_behind) {
      ledger_.unsynced_since = ledger_.last_commit;
    }
    paused_.clear();
    reason_ = {};
    paused_since_ = {};
  }
  answer_group({}, synced ? Durability::disk : level());
  if (options_.stored) options_.stored();
  if (options_.sync_interval.count() == 0 || !capabilities_.persistent) return;
  const std::lock_guard lock(queue_mutex_);
  if (synced) {
    sync_due_ = Clock::time_point::max();
  } else if (sync_due_ == Clock::time_point::max()) {
    sync_due_ = Clock::now() + options_.sync_interval;
    queue_wakes_.notify_one();  // It may sleep without a bound.
  }
}

/// A feed that is rejected must not look like success to whoever reads the log; once a minute is enough to see it.
void Committer::say_rejected() {
  constexpr std::chrono::minutes kInterval{1};
  for (const auto& parcel : group_) {
    rejects_unsaid_ += parcel->tally.rejected;
    if (parcel->rejects.empty() || Clock::now() < rejects_said_ + kInterval) continue;
    const RejectRecord& reject = parcel->rejects.front();
    log_warning(
        "rejected {} message(s) since the last such line, as line {} of {} from {}: {}; kvq rejects list shows them",
        std::exchange(rejects_unsaid_, 0), reject.line, parcel->origin->source, parcel->origin->peer, reject.reason);
    rejects_said_ = Clock::now();
  }
}

/// Keeps the group for another try; false when there is to be none.
bool Committer::on_refused(const Error& error) {
  {
    const std::lock_guard lock(ledger_mutex_);  // First: who hears of the pause may look at once.
    if (paused_.empty()) paused_since_ = Clock::now();
    paused_ = error.text;
    reason_ = to_string(error.code);
  }
  const std::lock_guard lock(queue_mutex_);
  if (give_up_) return false;
  retry_pause_ = refused_ ? std::min(retry_pause_ * 2, kRetryLongest) : kRetryFirst;
  if (std::exchange(refused_, true)) return true;
  log_error("reading stops until the store takes writes again: {}", error.text);
  for (Inbox* inbox : inboxes_) inbox->paused(to_string(error.code));
  return true;
}

/// Ends without what the store would not take. The store itself is sound.
void Committer::give_up(const Error& error) {
  gave_up_ = true;
  failure_ = error;
  failure_->text = fmt::format(
      "stopped while the store takes no writes; the pending messages are not stored, send them again: {}", error.text);
}

void Committer::latch(const Error& error) {
  if (failure_) return;
  failure_ = error;
  failed_ = true;
  log_error("the store has failed; what of the last group it holds is unknown: {}", error.text);
  if (options_.store_failed) options_.store_failed(error);
}

/// Puts the answer into the group's parcels: `outcome`, or the one they were judged to have.
void Committer::answer_group(std::optional<Parcel::Outcome> outcome, Durability level) {
  std::size_t bytes = 0;
  const std::uint64_t on_disk = ledger().watermarks.on_disk;
  for (const auto& parcel : group_) {
    bytes += parcel->charged_bytes;
    if (outcome) parcel->outcome = *outcome;
    parcel->level = level;
    parcel->on_disk_seq = on_disk;
  }
  batch_.clear();
  view_.forget();
  group_built_ = false;
  queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  const std::lock_guard lock(queue_mutex_);
  if (std::exchange(refused_, false) && !outcome) {
    log_info("the store takes writes again; reading goes on");
    for (Inbox* inbox : inboxes_) inbox->paused({});
  }
  for (Inbox* inbox : without_room_) inbox->room();
  without_room_.clear();
}

/// Hands every parcel of the group back to its worker, in order.
void Committer::deliver_group() {
  std::map<Inbox*, std::vector<std::unique_ptr<Parcel>>> by_worker;
  for (auto& parcel : group_) by_worker[parcel->origin->inbox].push_back(std::move(parcel));
  group_.clear();
  for (auto& [inbox, parcels] : by_worker) inbox->deliver(std::move(parcels));
}

Result<void> Committer::sync_store() {
  {
    const std::lock_guard lock(queue_mutex_);
    sync_due_ = Clock::time_point::max();
  }
  const Clock::time_point began = Clock::now();
  KV_TRY(store_.sync());
  metrics_.store_synced(Clock::now() - began);
  if (!capabilities_.persistent) return {};
  const std::lock_guard lock(ledger_mutex_);
  ledger_.watermarks.on_disk = ledger_.watermarks.stored;
  return {};
}

}  // namespace kvingest
