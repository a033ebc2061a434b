// Changes that depend on what the store holds: decided in the order of the queue, taken back when there is no space,
// and counted so that the ledger balances.
//
// World: a committer on a store in memory whose answers the test decides.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/check.hpp"
#include "service/committer.hpp"
#include "tests/service/scripted_store.hpp"
#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::chrono_literals;
using test::ScriptedStore;

/// SETNX, and what it found.
class PutIfAbsent final : public Changes {
 public:
  PutIfAbsent(std::string key, std::string value) : key_(std::move(key)), value_(std::move(value)) {}
  ChangeCounts decide(const RecordView& records, WriteBatch& batch) override {
    found.clear();
    const auto there = records.get(key_, [this](std::string_view value) { found = value; });
    if (there && *there) return {.not_put = 1};
    batch.put(key_, value_);
    return {.put = 1};
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return key_.size() + value_.size(); }

  std::string found;

 private:
  std::string key_;
  std::string value_;
};

/// DEL of every key that there is.
class EraseAll final : public Changes {
 public:
  ChangeCounts decide(const RecordView& records, WriteBatch& batch) override {
    std::vector<std::string> keys;
    const auto walked = records.keys([&](std::string_view key) {
      keys.emplace_back(key);
      return true;
    });
    KV_ASSERT(walked.has_value());
    for (const std::string& key : keys) batch.erase(key);
    return {.erased = keys.size(), .unnumbered = 1};
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept override { return 0; }
};

/// Keeps the parcels that come back, in their order.
class KeepingInbox final : public Inbox {
 public:
  void deliver(std::vector<std::unique_ptr<Parcel>> parcels) override {
    const std::lock_guard lock(mutex_);
    for (auto& parcel : parcels) parcels_.push_back(std::move(parcel));
    wakes_.notify_all();
  }
  void room() override {}
  void superseded(std::uint64_t) override {}
  void paused(std::string_view) override {}
  const Parcel& wait_for(std::size_t index) {
    std::unique_lock lock(mutex_);
    if (!wakes_.wait_for(lock, 60s, [&] { return parcels_.size() > index; })) throw std::runtime_error("no answer");
    return *parcels_[index];
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return parcels_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::unique_ptr<Parcel>> parcels_;
};

struct ChangesWorld {
  ChangesWorld() {
    auto started = Committer::start(store, {});
    REQUIRE(started);
    committer = std::move(*started);
  }
  void change(std::unique_ptr<Changes> changes, std::uint64_t puts) {
    auto parcel = std::make_unique<Parcel>();
    parcel->origin = std::make_shared<const Origin>(Origin{"test", std::string(kRespSource), 0, &inbox});
    parcel->changes = std::move(changes);
    parcel->tally.received = puts;
    send(std::move(parcel));
  }
  void feed(const std::string& key, const std::string& value) {
    auto parcel = std::make_unique<Parcel>();
    parcel->origin = std::make_shared<const Origin>(Origin{"test", std::string(kUnnamedSource), 1, &inbox});
    parcel->batch.put(key, value);
    parcel->tally = {.received = 1, .stored = 1};
    send(std::move(parcel));
  }
  void send(std::unique_ptr<Parcel> parcel) {
    committer->count_received(parcel->tally.received, 0);
    REQUIRE(committer->submit(std::move(parcel)) == nullptr);
  }
  /// The store is held inside of a write, so that what is sent now becomes one group.
  void hold() {
    store.hold();
    feed("first", "1");
    while (store.attempts() == 0) std::this_thread::yield();
  }
  void check_balance() {
    const RunLedger ledger = committer->ledger();
    const Tally& tally = ledger.tally;
    CHECK(tally.received == tally.stored + tally.rejected + tally.blank + tally.duplicate + ledger.pending);
    CHECK(ledger.pending == 0);
  }

  ScriptedStore store;
  KeepingInbox inbox;
  std::unique_ptr<Committer> committer;
};

TEST_CASE("changes: a condition sees what is ahead of it in its own group, from feeds and from other changes") {
  ChangesWorld world;
  world.hold();
  world.feed("a", "fed");
  world.change(std::make_unique<PutIfAbsent>("a", "x"), 1);
  world.change(std::make_unique<PutIfAbsent>("b", "mine"), 1);
  world.change(std::make_unique<PutIfAbsent>("b", "late"), 1);
  world.feed("b", "fed");
  world.store.let_go();
  CHECK(static_cast<PutIfAbsent&>(*world.inbox.wait_for(2).changes).found == "fed");
  CHECK(static_cast<PutIfAbsent&>(*world.inbox.wait_for(3).changes).found.empty());
  CHECK(static_cast<PutIfAbsent&>(*world.inbox.wait_for(4).changes).found == "mine");
  CHECK(world.inbox.wait_for(5).outcome == Parcel::Outcome::committed);
  CHECK(world.store.entries(Space::records).at("b") == "fed");
  world.check_balance();
  CHECK(world.committer->ledger().tally.stored == 4);
  CHECK(world.committer->ledger().tally.blank == 2);
  CHECK(world.committer->ledger().watermarks.stored == 4);  // Each put has taken a number.
  CHECK(world.committer->stop());
}

TEST_CASE("changes: what is erased is counted in the same batch, also keys that the group has put") {
  ChangesWorld world;
  world.hold();
  world.feed("a", "1");
  world.change(std::make_unique<EraseAll>(), 0);
  world.feed("b", "1");
  world.store.let_go();
  world.inbox.wait_for(3);
  CHECK(world.store.entries(Space::records).size() == 1);
  const auto removed = RemovedTotals::decode(world.store.entries(Space::meta).at(std::string(kMetaRemoved)));
  REQUIRE(removed);
  CHECK(removed->erased == 2);
  CHECK(removed->unnumbered == 1);
  CHECK(world.committer->stop());
}

TEST_CASE("changes: without space they are answered at once, and the feed's messages wait") {
  ChangesWorld world;
  world.hold();
  world.change(std::make_unique<PutIfAbsent>("a", "1"), 1);
  world.feed("b", "1");
  world.change(std::make_unique<PutIfAbsent>("c", "1"), 1);
  world.store.fail_next({Code::no_space, Code::no_space}, 1);
  world.store.let_go();
  CHECK(world.inbox.wait_for(0).outcome == Parcel::Outcome::committed);
  CHECK(world.inbox.wait_for(1).outcome == Parcel::Outcome::no_space);
  CHECK(world.inbox.wait_for(2).outcome == Parcel::Outcome::no_space);
  CHECK(world.inbox.wait_for(3).outcome == Parcel::Outcome::committed);
  CHECK(world.inbox.wait_for(3).origin->source == kUnnamedSource);
  CHECK(world.store.entries(Space::records).contains("b"));
  world.check_balance();
  CHECK(world.committer->stop());
}

TEST_CASE("changes: of a group that is refused nothing is written and nothing counted") {
  ChangesWorld world;
  world.store.fail_next({Code::no_space});
  world.change(std::make_unique<PutIfAbsent>("a", "1"), 1);
  CHECK(world.inbox.wait_for(0).outcome == Parcel::Outcome::no_space);
  CHECK(world.store.entries(Space::records).empty());
  world.check_balance();
  CHECK(world.committer->ledger().tally.received == 0);
  world.change(std::make_unique<PutIfAbsent>("a", "1"), 1);
  CHECK(world.inbox.wait_for(1).outcome == Parcel::Outcome::committed);
  CHECK(world.committer->stop());
}

}  // namespace
}  // namespace kvingest
