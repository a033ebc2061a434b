#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "service/committer.hpp"

// The parts of the committer that not every group needs: changes that depend on what the store holds, records that
// expire, and what is done between groups.

namespace kvingest {
namespace {

bool is_refused(const Error& error) {
  return error.code == Code::no_space || error.code == Code::busy;
}

}  // namespace

/// Conditions are looked at here, where all that is ahead in the queue is in the store or in the batch.
void Committer::decide(Parcel& parcel) {
  const std::uint64_t puts = batch_.puts();
  const ChangeCounts counts = parcel.changes->decide(view_, batch_);
  KV_ASSERT(batch_.puts() - puts == counts.put);
  static_cast<void>(book_.take_numbers(counts.put));
  book_.count_erased(counts.erased, counts.unnumbered);
  parcel.outcome = Parcel::Outcome::committed;
  parcel.tally = {.received = parcel.tally.received, .stored = counts.put, .blank = counts.not_put};
  if (parcel.tally.received > 0) book_.change(parcel.origin->source).total += parcel.tally;
}

/// The store takes no writes just now. Who asked for changes is told so and may free space, as with Redis; the messages
/// of feeds wait. Returns true where the group was made of both, and is of messages alone now; where there are only
/// changes they stay, to be answered.
bool Committer::take_back_changes() {
  const auto changes =
      std::stable_partition(group_.begin(), group_.end(), [](const auto& parcel) { return !parcel->changes; });
  if (changes == group_.end()) return false;
  book_.discard();
  batch_.clear();
  view_.forget();
  group_built_ = false;
  std::uint64_t puts = 0;
  for (auto at = changes; at != group_.end(); ++at) puts += std::exchange((*at)->tally, {}).received;
  {
    const std::lock_guard lock(ledger_mutex_);
    ledger_.pending -= puts;  // As if they had never come.
    ledger_.tally.received -= puts;
  }
  if (changes == group_.begin()) return false;
  std::vector<std::unique_ptr<Parcel>> feeds(std::make_move_iterator(group_.begin()), std::make_move_iterator(changes));
  group_.erase(group_.begin(), changes);
  answer_group(Parcel::Outcome::no_space, Durability::memory);
  deliver_group();
  group_ = std::move(feeds);
  return true;
}

Result<void> Committer::while_at_rest(const std::function<Result<void>(Store& store)>& work) {
  const std::lock_guard held(commit_mutex_);
  if (failure_) return tl::unexpected<Error>(*failure_);
  return work(store_);
}

/// Drops the oldest records that are to go, in a batch of their own. At `kernel`, for what a power cut brings back is
/// dropped again; its count comes back with it.
void Committer::expire_some() {
  {
    const std::lock_guard lock(queue_mutex_);
    expire_due_ = std::chrono::steady_clock::now() + retention_->look_every();
  }
  WriteBatch batch;
  const auto expired = retention_->expire_some(store_, batch, Retention::WallClock::now());
  if (!expired) return latch(expired.error());
  if (batch.empty()) return;
  if (const auto written = store_.write(batch, Durability::kernel); !written) {
    if (!is_refused(written.error())) latch(written.error());
    return;  // Refused for want of space: the next look tries again.
  }
  retention_->expired();
  {
    const std::lock_guard lock(ledger_mutex_);
    ledger_.expired += *expired;
  }
  plan_to_expire();
}

/// More is to go already: at once, but groups have their turn between.
void Committer::plan_to_expire() {
  if (!retention_->is_due(Retention::WallClock::now())) return;
  const std::lock_guard lock(queue_mutex_);
  expire_due_ = std::chrono::steady_clock::now();
  queue_wakes_.notify_one();
}

}  // namespace kvingest
