// Our own system calls fail, one after the other, and the power fails between any two of them.
//
// World: a store whose system calls go through the test's table; a workload of campaign batches at all levels. Where an
// engine has a library that makes its own calls (lmdb, rocksdb), those of the store directory around it fail.
#include <fmt/format.h>

#include <random>

#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"
#include "tests/support/posix_fault.hpp"

namespace kvingest::test {
namespace {

constexpr Campaign kFaultCampaign{11, true};
constexpr std::uint64_t kFaultBatches = 6;  // Of one workload: each level twice, one batch with a large value.

constexpr std::uint64_t kCallsMax = 1'000;  // One workload makes far fewer.

/// What the user of a store knows when a workload has ended.
struct Knowledge {
  std::uint64_t acknowledged = 0;  ///< The last batch whose write() returned without an error.
  std::uint64_t on_disk = 0;       ///< The last one that is to survive a power failure.
  std::uint64_t sent = 0;          ///< The last one given to write().
};

Durability level_of(std::uint64_t number) {
  return static_cast<Durability>(number % 3);
}

/// A batch that could not be written for want of space is tried again, as the service does.
Result<void> write_patiently(Store& store, std::uint64_t number) {
  Result<void> written;
  for (int attempt = 0; attempt < 3; ++attempt) {
    written = store.write(to_batch(campaign_batch(kFaultCampaign, number), campaign_first(number)), level_of(number));
    if (written || (written.error().code != Code::no_space && written.error().code != Code::busy)) break;
  }
  return written;
}

/// Once a write has ended in an unknown state, no later call may claim anything.
void check_latched(Store& store, const Error& first) {
  CAPTURE(to_string(first.code), first.text);
  if (first.code == Code::no_space || first.code == Code::busy) return;
  CHECK((first.code == Code::io_error || first.code == Code::failed));
  CHECK_CODE(store.write(to_batch({}), Durability::memory), Code::failed);
  CHECK_CODE(store.get("key/1", [](std::string_view) {}), Code::failed);
  CHECK_CODE(store.sync(), Code::failed);
}

/// Opens the store, writes batches, reads, syncs and closes it, as far as that goes.
Knowledge work(const Subject& subject, const Posix& posix, std::uint64_t known_before) {
  Knowledge knowledge{known_before, known_before, known_before};
  const auto store = subject.try_open({.posix = &posix});
  if (!store) return knowledge;
  const std::uint64_t first = (*store)->last_batch() + 1;
  for (std::uint64_t number = first; number < first + kFaultBatches; ++number) {
    knowledge.sent = number;
    const auto written = write_patiently(**store, number);
    if (!written) {
      check_latched(**store, written.error());
      return knowledge;
    }
    knowledge.acknowledged = number;
    if (level_of(number) == Durability::disk) knowledge.on_disk = number;
  }
  const auto found = (*store)->get("key/1", [](std::string_view) {});
  static_cast<void>(found);  // It may fail here; what is read is compared below.
  if ((*store)->sync()) knowledge.on_disk = knowledge.acknowledged;
  if ((*store)->close()) knowledge.on_disk = knowledge.acknowledged;
  return knowledge;
}

/// Opens the store with sound system calls and holds it against what is known; returns its last batch.
std::uint64_t check_after(const Subject& subject, std::uint64_t at_least, std::uint64_t at_most, CampaignModel& model) {
  std::string notices;
  auto store = subject.open({.notice = [&](std::string_view text) { notices += std::string(text) + "\n"; }});
  const std::uint64_t found = store->last_batch();
  CAPTURE(found, at_least, at_most, notices);
  REQUIRE(found >= at_least);
  REQUIRE(found <= at_most);
  check_equal(*store, model.after(found));
  REQUIRE_OK(store->verify());
  close(*store);
  return found;
}

struct Fault {
  int error;
  bool all_later;
};

/// A store with some history, closed properly, to begin each try from.
std::filesystem::path make_history(const Subject& subject) {
  auto template_dir = subject.temp() / "history";
  const Knowledge knowledge = work(subject, Posix::real(), 0);
  REQUIRE(knowledge.on_disk == kFaultBatches);
  std::filesystem::rename(subject.dir(), template_dir);
  return template_dir;
}

void begin_from(const Subject& subject, const std::filesystem::path& history) {
  std::filesystem::remove_all(subject.dir());
  std::filesystem::copy(history, subject.dir(), std::filesystem::copy_options::recursive);
}

/// Fails the n-th call of the same workload for n = 1, 2, 3 ... until none fails any more.
void fail_every_call_in_turn(Subject& subject, const Fault& fault) {
  subject.use_small_files();
  const auto history = make_history(subject);
  std::uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    CAPTURE(n, fault.error, fault.all_later);
    REQUIRE(n <= kCallsMax);
    begin_from(subject, history);
    Knowledge knowledge;
    {
      PosixFault posix;
      posix.fail_nth(n, fault.error, fault.all_later);
      knowledge = work(subject, posix.table(), kFaultBatches);
      failed = posix.has_failed();
    }
    // Nothing crashed, so whatever was acknowledged is there; a batch that failed may be.
    CampaignModel model(kFaultCampaign);
    const std::uint64_t found = check_after(subject, knowledge.acknowledged, knowledge.sent, model);
    if (!failed) CHECK(found == 2 * kFaultBatches);
  }
  print_rounds(n - 2, fmt::format("calls of {} failed in turn", subject.engine().name));
  CHECK(n > 5);
}

ENGINE_SCENARIO(persistent, "an I/O error of any one system call is reported, and nothing acknowledged is lost") {
  fail_every_call_in_turn(subject, {EIO, false});
}

ENGINE_SCENARIO(persistent,
                "a disk that is full at any one system call is reported, and nothing acknowledged is lost") {
  fail_every_call_in_turn(subject, {ENOSPC, false});
}

ENGINE_SCENARIO(persistent, "I/O errors from any system call on are reported, and nothing acknowledged is lost") {
  fail_every_call_in_turn(subject, {EIO, true});
}

ENGINE_SCENARIO(persistent, "a new store whose making failed at any system call can be made again") {
  std::uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    CAPTURE(n);
    REQUIRE(n <= kCallsMax);
    std::filesystem::remove_all(subject.dir());
    std::uint64_t acknowledged = 0;
    std::uint64_t sent = 0;
    {
      PosixFault posix;
      posix.fail_nth(n, ENOSPC, true);
      const Knowledge knowledge = work(subject, posix.table(), 0);
      failed = posix.has_failed() && knowledge.sent == 0;
      acknowledged = knowledge.acknowledged;
      sent = knowledge.sent;
    }
    CampaignModel model(kFaultCampaign);
    check_after(subject, acknowledged, sent, model);
  }
  CHECK(n > 3);
}

ENGINE_SCENARIO(persistent, "short and interrupted transfers change nothing") {
  subject.use_small_files();
  CampaignModel model(kFaultCampaign);
  std::uint64_t known = 0;
  for (const std::size_t bytes_max : {4093u, 100'000u}) {
    PosixFault posix;
    posix.shorten(bytes_max);
    const Knowledge knowledge = work(subject, posix.table(), known);
    CHECK(knowledge.on_disk == known + kFaultBatches);
    known = knowledge.sent;
    auto store = subject.open({.posix = &posix.table()});
    check_equal(*store, model.after(known));
    close(*store);
  }
}

/// Which stores can be tried with a power failure of the test's own making.
bool is_tried_with_power_failures(const Subject& subject) {
  if (makes_our_calls(subject.engine())) return true;
  fmt::print("store {}: its library's own calls are not seen by the test's disk\n", subject.engine().name);
  return false;
}

ENGINE_SCENARIO(persistent, "a power failure at any moment leaves an exact prefix with all that was on disk") {
  if (!is_tried_with_power_failures(subject)) return;
  subject.use_small_files();
  const std::uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  CampaignModel model(kFaultCampaign);
  std::uint64_t known = 0;
  std::uint64_t calls = 0;  // Of one workload.
  std::size_t losses = 0;
  const std::size_t rounds = torture_rounds(40);
  for (std::size_t round = 0; round <= rounds; ++round) {
    CAPTURE(round, seed);
    Knowledge knowledge;
    {
      PosixFault posix;
      DiskModel& disk = posix.watch_disk();
      if (round > 0) posix.cut_power_at(1 + random() % calls);
      knowledge = work(subject, posix.table(), known);
      if (round == 0) calls = posix.count();
      losses += disk.unsynced() > 0 ? 1 : 0;
      disk.lose(random(), std::size_t{512} << (random() % 4));
    }
    known = check_after(subject, knowledge.on_disk, knowledge.sent, model);
  }
  print_rounds(rounds, fmt::format("power failures of {}, {} of them with something to lose, seed {}",
                                   subject.engine().name, losses, seed));
  CHECK(losses * 2 > rounds);
}

ENGINE_SCENARIO(persistent, "batches behind a hole do not come back, not even when later ones fill it") {
  if (!is_tried_with_power_failures(subject)) return;
  const auto small_batch = [](std::uint64_t number, std::string_view generation) {
    WriteBatch batch;
    for (int i = 0; i < 3; ++i) batch.put(fmt::format("{}/{}/{}", generation, number, i), "value");
    batch.put(fmt::format("changed {}", number), generation);
    return batch;
  };
  // All of the second batch's records do not reach the disk, or one of them; all that is written beside them does.
  for (const std::string_view lost : {"first/2/", "first/2/0"}) {
    CAPTURE(lost);
    std::filesystem::remove_all(subject.dir());
    {
      PosixFault posix;
      DiskModel& disk = posix.watch_disk();
      auto store = subject.open({.posix = &posix.table()});
      write(*store, small_batch(1, "first"), Durability::disk);
      for (const std::uint64_t number : {2u, 3u, 4u}) write(*store, small_batch(number, "first"), Durability::kernel);
      posix.cut_power_at(1);
      store.reset();
      std::size_t dropped = 0;
      disk.lose([&](std::string_view written) {
        const bool is_lost = written.find(lost) != std::string_view::npos;
        dropped += is_lost ? 1 : 0;
        return !is_lost;
      });
      REQUIRE(dropped > 0);
    }
    {
      auto store = subject.open();
      CHECK(store->last_batch() == 1);
      CHECK(count(*store) == 4);
      CHECK(get(*store, "changed 3") == std::nullopt);
      write(*store, small_batch(2, "second"), Durability::kernel);
    }
    auto store = subject.open();
    CHECK(store->last_batch() == 2);
    CHECK(count(*store) == 8);
    CHECK(get(*store, "changed 2") == "second");
    CHECK(get(*store, "changed 3") == std::nullopt);
    CHECK(get(*store, "first/4/0") == std::nullopt);
    CHECK_OK(store->verify());
  }
}

}  // namespace
}  // namespace kvingest::test
