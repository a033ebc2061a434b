// The committer: groups, numbers, refusals that are tried again, failures that latch, and a ledger that always
// balances.
#include "service/committer.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tests/service/scripted_store.hpp"
#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::chrono_literals;
using test::ScriptedStore;

constexpr auto kPatience = 10s;

/// A worker's inbox that keeps what comes back.
class TestInbox final : public Inbox {
 public:
  void deliver(std::vector<std::unique_ptr<Parcel>> parcels) override {
    const std::lock_guard lock(mutex_);
    for (auto& parcel : parcels) parcels_.push_back(std::move(parcel));
    wakes_.notify_all();
  }
  void room() override {
    const std::lock_guard lock(mutex_);
    ++rooms_;
    wakes_.notify_all();
  }
  void superseded(std::uint64_t connection) override {
    const std::lock_guard lock(mutex_);
    superseded_ = connection;
  }
  void paused(std::string_view reason) override {
    const std::lock_guard lock(mutex_);
    pauses_.emplace_back(reason);
  }
  std::uint64_t last_superseded() {
    const std::lock_guard lock(mutex_);
    return superseded_;
  }
  std::vector<std::string> pauses() {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }
  bool wait_for_parcels(std::size_t count) {
    std::unique_lock lock(mutex_);
    return wakes_.wait_for(lock, kPatience, [&] { return parcels_.size() >= count; });
  }
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    return wakes_.wait_for(lock, kPatience, [&] { return rooms_ > 0; });
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return parcels_.size();
  }
  const Parcel& at(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return *parcels_.at(i);
  }

 private:
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::unique_ptr<Parcel>> parcels_;
  int rooms_ = 0;
  std::uint64_t superseded_ = 0;
  std::vector<std::string> pauses_;
};

template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

struct World {
  explicit World(CommitterOptions options = {}, Capabilities capabilities = {}) : store(capabilities) {
    auto started = Committer::start(store, std::move(options));
    REQUIRE(started);
    committer = std::move(*started);
  }

  std::unique_ptr<Parcel> parcel(const std::vector<std::string>& lines, std::uint64_t blank = 0, bool sync = false) {
    auto made = std::make_unique<Parcel>();
    made->origin = std::make_shared<const Origin>(Origin{"test", "@", 1, &inbox});
    for (const std::string& line : lines) made->batch.put_next(line);
    made->tally = {.received = lines.size() + blank, .stored = lines.size(), .blank = blank};
    made->sync = sync;
    return made;
  }
  std::unique_ptr<Parcel> send(std::unique_ptr<Parcel> sent) const {
    committer->count_received(sent->tally.received, 0);
    return committer->submit(std::move(sent));
  }

  ScriptedStore store;
  TestInbox inbox;
  std::unique_ptr<Committer> committer;
};

std::string key(std::uint64_t number) {
  char bytes[8];
  codec::put_ordered(bytes, number);
  return std::string(bytes, sizeof bytes);
}

TEST_CASE("what waits while a group is written becomes one group, numbered in order") {
  World world;
  world.store.hold();
  world.send(world.parcel({"a"}));
  REQUIRE(eventually([&] { return world.store.attempts() == 1; }));
  world.send(world.parcel({"b", "c"}));
  world.send(world.parcel({"d"}));
  world.store.let_go();
  REQUIRE(world.inbox.wait_for_parcels(3));
  CHECK(world.store.attempts() == 2);
  CHECK(world.store.entries(Space::records) ==
        std::map<std::string, std::string, std::less<>>{{key(1), "a"}, {key(2), "b"}, {key(3), "c"}, {key(4), "d"}});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(world.inbox.at(i).outcome == Parcel::Outcome::committed);
    CHECK(world.inbox.at(i).level == Durability::disk);
  }
  CHECK(world.inbox.at(2).on_disk_seq == 4);
  CHECK(world.committer->stop());
}

TEST_CASE("progress and totals are in the same batch as the records") {
  World world;
  world.send(world.parcel({"a", "b"}, 3));
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.store.attempts() == 1);
  const auto meta = world.store.entries(Space::meta);
  REQUIRE(meta.contains("seq"));
  CHECK(decode_seq(meta.at("seq")) == 2u);
  const auto source = SourceRecord::decode(meta.at("source/@"));
  REQUIRE(source);
  CHECK(source->total == Tally{.received = 5, .stored = 2, .blank = 3});
  CHECK(world.committer->stop());
}

TEST_CASE("numbers and totals go on where the store says") {
  ScriptedStore store;
  TestInbox inbox;
  for (std::uint64_t run = 0; run < 2; ++run) {
    auto committer = Committer::start(store, {});
    REQUIRE(committer);
    auto parcel = std::make_unique<Parcel>();
    parcel->origin = std::make_shared<const Origin>(Origin{"test", "@", 1, &inbox});
    parcel->batch.put_next("x");
    parcel->tally = {.received = 1, .stored = 1};
    (*committer)->submit(std::move(parcel));
    REQUIRE(inbox.wait_for_parcels(run + 1));
    CHECK((*committer)->ledger().first_seq == run);
    CHECK((*committer)->stop());
  }
  CHECK(store.entries(Space::records).contains(key(2)));
  CHECK(SourceRecord::decode(store.entries(Space::meta).at("source/@"))->total.stored == 2);
}

TEST_CASE("a group that finds no space stays first and is stored once when there is space") {
  World world;
  world.store.fail_next({Code::no_space, Code::no_space, Code::busy});
  world.send(world.parcel({"first"}));
  REQUIRE(eventually([&] { return !world.committer->paused().empty(); }));
  world.send(world.parcel({"second"}));
  REQUIRE(world.inbox.wait_for_parcels(2));
  CHECK(world.store.entries(Space::records) ==
        std::map<std::string, std::string, std::less<>>{{key(1), "first"}, {key(2), "second"}});
  CHECK(world.inbox.at(0).outcome == Parcel::Outcome::committed);
  CHECK(world.committer->paused().empty());
  CHECK(world.committer->stop());
}

TEST_CASE("a service that must stop does not wait for space for ever") {
  World world;
  world.store.fail_next(std::vector<Code>(1'000'000, Code::no_space));
  world.send(world.parcel({"never"}));
  REQUIRE(eventually([&] { return !world.committer->paused().empty(); }));
  world.committer->give_up_refused();
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.inbox.at(0).outcome == Parcel::Outcome::given_up);
  const auto stopped = world.committer->stop();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == Code::no_space);
  CHECK_THAT(stopped.error().text, Catch::Contains("the pending messages are not stored, send them again"));
  CHECK(world.committer->ledger().pending == 1);
  CHECK(world.store.entries(Space::records).empty());
}

TEST_CASE("a failed write latches: nothing is acknowledged any more and the owner hears of it once") {
  std::atomic<int> told = 0;
  World world({.store_failed = [&](const Error& error) { told += error.code == Code::failed; }});
  world.store.fail_next({Code::failed});
  world.send(world.parcel({"lost"}));
  REQUIRE(world.inbox.wait_for_parcels(1));
  world.send(world.parcel({"later"}));
  REQUIRE(world.inbox.wait_for_parcels(2));
  CHECK(world.inbox.at(0).outcome == Parcel::Outcome::failed);
  CHECK(world.inbox.at(1).outcome == Parcel::Outcome::failed);
  CHECK(world.store.attempts() == 1);
  CHECK(told == 1);
  const auto stopped = world.committer->stop();
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == Code::failed);
}

TEST_CASE("at kernel a worker writes its own parcel and gets it back at once") {
  World world({.level = Durability::kernel});
  const auto back = world.send(world.parcel({"a"}));
  REQUIRE(back);
  CHECK(back->outcome == Parcel::Outcome::committed);
  CHECK(back->level == Durability::kernel);
  CHECK(back->on_disk_seq == 0);
  CHECK(world.store.levels() == std::vector<Durability>{Durability::kernel});
  CHECK(world.committer->stop());
  CHECK(world.committer->ledger().watermarks.on_disk == 1);
}

TEST_CASE("a sync asked for at kernel is written at disk and answers for all before it") {
  World world({.level = Durability::kernel});
  REQUIRE(world.send(world.parcel({"a"})));
  CHECK_FALSE(world.send(world.parcel({"b"}, 0, true)));
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.inbox.at(0).level == Durability::disk);
  CHECK(world.inbox.at(0).on_disk_seq == 2);
  CHECK(world.store.levels() == std::vector<Durability>{Durability::kernel, Durability::disk});
  CHECK(world.committer->stop());
}

TEST_CASE("a sync of a connection that sent nothing new still waits for the disk") {
  World world({.level = Durability::kernel});
  REQUIRE(world.send(world.parcel({"a"})));
  world.send(world.parcel({}, 0, true));
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.store.syncs() == 1);
  CHECK(world.inbox.at(0).on_disk_seq == 1);
  CHECK(world.committer->stop());
}

TEST_CASE("an engine in memory answers a sync at once and never claims the disk") {
  World world({.level = Durability::disk},
              {.persistent = false, .weakest = Durability::memory, .strongest = Durability::memory});
  const auto back = world.send(world.parcel({"a"}, 0, true));
  REQUIRE(back);
  CHECK(back->level == Durability::memory);
  CHECK(back->on_disk_seq == 0);
  CHECK(world.committer->stop());
  CHECK(world.committer->ledger().watermarks.on_disk == 0);
}

TEST_CASE("with an interval what was written is on disk after it") {
  World world({.level = Durability::kernel, .sync_interval = 20ms});
  REQUIRE(world.send(world.parcel({"a"})));
  CHECK(eventually([&] { return world.committer->ledger().watermarks.on_disk == 1; }));
  CHECK(world.store.syncs() == 1);
  CHECK(world.committer->stop());
}

TEST_CASE("a sync of the interval that fails latches") {
  World world({.level = Durability::kernel, .sync_interval = 5ms});
  world.store.fail_syncs();
  REQUIRE(world.send(world.parcel({"a"})));
  REQUIRE(eventually([&] { return world.store.syncs() > 0; }));
  REQUIRE(eventually([&] {
    const auto back = world.send(world.parcel({"b"}));
    return back ? back->outcome == Parcel::Outcome::failed : world.inbox.size() > 0;
  }));
  CHECK_FALSE(world.committer->stop());
}

TEST_CASE("beyond the queue's budget there is no room until a group is answered") {
  World world({.queue_bytes = 1000});
  world.store.hold();
  CHECK(world.committer->has_room(world.inbox));
  world.send(world.parcel({std::string(2000, 'x')}));
  CHECK_FALSE(world.committer->has_room(world.inbox));
  world.store.let_go();
  CHECK(world.inbox.wait_for_room());
  CHECK(world.committer->has_room(world.inbox));
  CHECK(world.committer->stop());
}

struct Sources : World {
  using World::World;

  std::shared_ptr<const Origin> origin(const std::string& name, std::uint64_t connection) {
    return std::make_shared<const Origin>(Origin{"test", name, connection, &inbox});
  }
  void hello(const std::shared_ptr<const Origin>& from) {
    auto made = std::make_unique<Parcel>();
    made->origin = from;
    made->hello = true;
    send(std::move(made));
  }
  void line(const std::shared_ptr<const Origin>& from, std::uint64_t number) {
    auto made = parcel({"line " + std::to_string(number)});
    made->origin = from;
    made->last_line = number;
    send(std::move(made));
  }
};

TEST_CASE("a hello is told the line behind the last one committed, whatever is queued before it") {
  Sources world;
  const auto first = world.origin("feed", 1);
  world.hello(first);
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.inbox.at(0).next_line == 1);
  world.store.hold();
  world.line(first, 1);
  world.line(first, 2);
  const auto second = world.origin("feed", 2);
  world.hello(second);
  world.line(first, 3);
  world.line(second, 3);
  world.store.let_go();
  REQUIRE(world.inbox.wait_for_parcels(6));
  CHECK(world.inbox.at(3).next_line == 3);
  CHECK(world.inbox.last_superseded() == 1);
  CHECK(world.inbox.at(4).outcome == Parcel::Outcome::dropped);
  CHECK(world.inbox.at(4).tally == Tally{.received = 1, .duplicate = 1});
  CHECK(world.inbox.at(5).outcome == Parcel::Outcome::committed);
  CHECK(world.store.entries(Space::records).size() == 3);
  const auto source = SourceRecord::decode(world.store.entries(Space::meta).at("source/feed"));
  REQUIRE(source);
  CHECK(source->line == 3);
  CHECK(source->total == Tally{.received = 4, .stored = 3, .duplicate = 1});
  CHECK(world.committer->stop());
}

TEST_CASE("a connection that never said hello last cannot write for a source") {
  Sources world;
  const auto stranger = world.origin("feed", 7);
  world.line(stranger, 1);
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.inbox.at(0).outcome == Parcel::Outcome::dropped);
  CHECK(world.store.entries(Space::records).empty());
  CHECK(world.committer->stop());
}

TEST_CASE("progress survives a refusal: the group is judged once and written when there is space") {
  Sources world;
  const auto from = world.origin("feed", 1);
  world.hello(from);
  REQUIRE(world.inbox.wait_for_parcels(1));
  world.store.fail_next({Code::no_space});
  world.line(from, 1);
  REQUIRE(world.inbox.wait_for_parcels(2));
  CHECK(world.inbox.at(1).outcome == Parcel::Outcome::committed);
  CHECK(SourceRecord::decode(world.store.entries(Space::meta).at("source/feed"))->line == 1);
  CHECK(eventually([&] { return world.committer->status().paused.empty(); }));
  CHECK(world.committer->stop());
}

TEST_CASE("beyond the most sources a new one is refused and a known one is not") {
  Sources world({.sources_max = 2});
  world.hello(world.origin("a", 1));
  world.hello(world.origin("b", 2));
  world.hello(world.origin("c", 3));
  world.hello(world.origin("a", 4));
  REQUIRE(world.inbox.wait_for_parcels(4));
  CHECK(world.inbox.at(1).outcome == Parcel::Outcome::committed);
  CHECK(world.inbox.at(2).outcome == Parcel::Outcome::refused);
  CHECK(world.inbox.at(2).refusal == "too_many_sources");
  CHECK(world.inbox.at(3).outcome == Parcel::Outcome::committed);
  CHECK(world.committer->stop());
}

TEST_CASE("inboxes hear when commits pause and when they go on") {
  World world;
  world.committer->attach(world.inbox);
  world.store.fail_next({Code::no_space, Code::no_space});
  world.send(world.parcel({"a"}));
  REQUIRE(world.inbox.wait_for_parcels(1));
  CHECK(world.inbox.pauses() == std::vector<std::string>{"no_space", ""});
  CHECK(world.committer->stop());
}

TEST_CASE("rejects are kept up to their budget and counted beyond it") {
  World world({.rejects_bytes_max = 10});
  auto parcel = world.parcel({"good"});
  parcel->tally.received += 2;
  parcel->tally.rejected += 2;
  parcel->rejects.push_back({.source = "@", .line = 2, .reason = "bad", .length = 8, .bytes = "8 bytes."});
  parcel->rejects.push_back({.source = "@", .line = 3, .reason = "bad", .length = 8, .bytes = "8 more.."});
  world.send(std::move(parcel));
  REQUIRE(world.inbox.wait_for_parcels(1));
  const auto meta = world.store.entries(Space::meta);
  REQUIRE(meta.contains(reject_key(1)));
  CHECK_FALSE(meta.contains(reject_key(2)));
  CHECK(RejectRecord::decode(meta.at(reject_key(1)))->bytes == "8 bytes.");
  const auto totals = RejectTotals::decode(meta.at("rejects"));
  REQUIRE(totals);
  CHECK(totals->kept_bytes == 8);
  CHECK(totals->unkept == 1);
  CHECK(world.committer->stop());
}

TEST_CASE("the ledger balances at every look while several workers feed") {
  for (const Durability level : {Durability::kernel, Durability::disk}) {
    World world({.level = level, .queue_bytes = 1 << 20});
    std::atomic<bool> done = false;
    std::atomic<int> out_of_balance = 0;
    std::vector<std::thread> workers;
    for (int w = 0; w < 3; ++w) {
      workers.emplace_back([&] {
        for (int i = 0; i < 500; ++i) world.send(world.parcel({"one", "two"}, 1));
      });
    }
    std::thread looker([&] {
      while (!done) {
        const RunLedger look = world.committer->ledger();
        const Tally& tally = look.tally;
        if (tally.received != tally.stored + tally.rejected + tally.blank + tally.duplicate + look.pending) {
          ++out_of_balance;
        }
      }
    });
    for (std::thread& worker : workers) worker.join();
    done = true;
    looker.join();
    CHECK(out_of_balance == 0);
    CHECK(world.committer->stop());
    const RunLedger end = world.committer->ledger();
    CHECK(end.pending == 0);
    CHECK(end.tally == Tally{.received = 4500, .stored = 3000, .blank = 1500});
    CHECK(world.store.entries(Space::records).size() == 3000);
  }
}

}  // namespace
}  // namespace kvingest
