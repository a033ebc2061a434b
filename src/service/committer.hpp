// committer.hpp -- turns parcels into groups, groups into one atomic write each, and answers the workers.
//
// All that waits becomes one group (group commit): it is numbered, its sources' progress and rejects are added, it is
// written and synced as the durability asks, the watermarks move, and the parcels go back to their workers. Where the
// level needs no sync and nothing waits, a worker runs the group itself: a queue and a wake-up cost more than the copy.
//
// A group that finds no space stays at the head of the queue and is tried again until there is; reading stops when the
// byte budget is used up. A group that fails for good latches: every later parcel comes back as failed.
//
// Threads:  submit, has_room, count_received and the getters on any thread; start and stop on the owner's. Three locks,
//           taken in this order: the commit lock, held while a group is written; the queue's and the ledger's, held for
//           moments. The committer's own thread is named kv-commit.
// Lifetime: the store and every inbox outlive it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kvingest/ingest.hpp"
#include "service/group_view.hpp"
#include "service/metrics.hpp"
#include "service/retention.hpp"
#include "service/run_ledger.hpp"
#include "service/source_book.hpp"

namespace kvingest {

struct CommitterOptions {
  Durability level = Durability::disk;
  std::chrono::milliseconds sync_interval{0};  ///< With level kernel: sync what is not on disk this often; 0: never.
  std::size_t queue_bytes = std::size_t{8} << 20;
  std::uint64_t rejects_bytes_max = std::uint64_t{256} << 20;
  std::size_t sources_max = 10'000;  ///< A hello for one more is refused.
  RetentionOptions retention;
  std::optional<int> cpu;                          ///< Pin the thread to it.
  std::function<void(const Error&)> store_failed;  ///< Called once, on the thread that saw it; must not block.
  std::function<void()> stored;  ///< A group is in the store; called on the thread that wrote it, must not block.
};

class Committer final : public ParcelSink {
 public:
  /// Fails with: corrupt, io_error (the store's meta space), invalid_argument (the CPU).
  static Result<std::unique_ptr<Committer>> start(Store& store, CommitterOptions options);
  ~Committer() override;

  std::unique_ptr<Parcel> submit(std::unique_ptr<Parcel> parcel) override;
  bool has_room(Inbox& inbox) override;
  void attach(Inbox& inbox) override;
  [[nodiscard]] FeedStatus status() const override;
  [[nodiscard]] bool persistent() const noexcept override { return capabilities_.persistent; }
  void count_received(std::uint64_t messages, std::uint64_t bytes) noexcept override;

  /// The level that is really given.
  [[nodiscard]] Durability level() const noexcept { return capabilities_.given(options_.level); }
  [[nodiscard]] RunLedger ledger() const;
  [[nodiscard]] const Metrics& metrics() const noexcept { return metrics_; }
  /// Lifetime records of all sources; nothing where a group is being written for longer than `patience`.
  [[nodiscard]] std::optional<std::map<std::string, SourceRecord, std::less<>>> sources(
      std::chrono::milliseconds patience);
  /// Why commits are impossible for now: the sentence of the refusal. Empty while they go on.
  [[nodiscard]] std::string paused() const;

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// Calls `work` while no group is being written: what the store's one writer does besides. Any thread.
  Result<void> while_at_rest(const std::function<Result<void>(Store& store)>& work);

  /// From now on a group that the store refuses is answered as given up and not tried again.
  void give_up_refused();
  /// Commits what waits, syncs, and ends the thread. The workers must have nothing more to hand over.
  /// Fails with: what the store failed with.
  Result<void> stop();

 private:
  enum class Attempt : std::uint8_t { answered, refused };

  Committer(Store& store, SourceBook book, std::optional<Retention> retention, CommitterOptions options);

  void run();
  bool wait_for_work();
  void take_queue();
  void expire_some();
  void plan_to_expire();
  bool queue_is_empty() const;
  std::unique_ptr<Parcel> commit_here(std::unique_ptr<Parcel>& parcel);
  Attempt commit_group();
  void build_group();
  void decide(Parcel& parcel);
  bool take_back_changes();
  bool judge(Parcel& parcel);
  void judge_hello(Parcel& parcel);
  void settle_source(const Parcel& parcel);
  void on_committed(bool synced);
  void say_rejected();
  bool on_refused(const Error& error);
  void give_up(const Error& error);
  void latch(const Error& error);
  void answer_group(std::optional<Parcel::Outcome> outcome, Durability level);
  void deliver_group();
  Result<void> sync_store();

  Store& store_;
  const Capabilities capabilities_;
  const CommitterOptions options_;
  const bool commits_inline_;

  // Guarded by commit_mutex_: the store's writing side, the books and the group.
  std::timed_mutex commit_mutex_;
  SourceBook book_;
  std::optional<Retention> retention_;
  std::vector<std::unique_ptr<Parcel>> group_;
  WriteBatch batch_;
  GroupView view_;
  bool group_built_ = false;  // batch_ holds group_: it was refused and is tried again.
  std::optional<Error> failure_;
  std::uint64_t rejects_unsaid_ = 0;
  std::chrono::steady_clock::time_point rejects_said_ = std::chrono::steady_clock::time_point::min();
  bool gave_up_ = false;  // failure_ is no failure of the store: it took no writes when the service was to stop.
  // Who has said hello last for each source; parcels of others are dropped. Bounded by sources_max.
  std::map<std::string, std::shared_ptr<const Origin>, std::less<>> owners_;

  // Guarded by queue_mutex_.
  mutable std::mutex queue_mutex_;
  std::condition_variable queue_wakes_;
  std::vector<std::unique_ptr<Parcel>> queue_;
  std::set<Inbox*> without_room_;
  std::chrono::steady_clock::time_point full_since_{};  // Since when one of them waits.
  std::vector<Inbox*> inboxes_;
  bool stopping_ = false;
  bool refused_ = false;  // A group waits to be tried again.
  bool give_up_ = false;
  std::chrono::milliseconds retry_pause_{0};
  std::chrono::steady_clock::time_point sync_due_ = std::chrono::steady_clock::time_point::max();
  std::chrono::steady_clock::time_point expire_due_ = std::chrono::steady_clock::time_point::max();

  // Guarded by ledger_mutex_.
  mutable std::mutex ledger_mutex_;
  RunLedger ledger_;
  std::string paused_;       // The refusal's sentence.
  std::string_view reason_;  // Its code.
  std::chrono::steady_clock::time_point paused_since_{};

  Metrics metrics_;
  std::atomic<bool> failed_{false};           // As failure_ is set.
  std::atomic<std::size_t> queued_bytes_{0};  // Of parcels handed over and not yet answered.
  std::thread thread_;
};

}  // namespace kvingest
