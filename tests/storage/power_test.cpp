// The power fails under a real file system, on every persistent engine, with its real library and the real kernel.
//
// World: an ext4 in a file. A child process writes campaign batches there and reports through a pipe which it is about
// to write and which were acknowledged; meanwhile random parts of its files are written back out of turn. Then the file
// system is shut down, the child is killed, and the file system is mounted again, which replays its journal. The store
// opens with exactly the first N batches; at disk, N is at least the last acknowledged one.
#include <fmt/format.h>

#include <random>

#include "tests/storage/campaign.hpp"
#include "tests/storage/scenario.hpp"
#include "tests/support/loop_disk.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

constexpr std::size_t kRounds = 2;
constexpr std::size_t kDiskBytes = std::size_t{192} << 20;

/// Lets a child write until some batches were acknowledged, cuts the power and brings it back.
Reports write_and_cut(const Subject& subject, LoopDisk& disk, Durability level, std::uint64_t seed,
                      std::mt19937_64& random) {
  Process child({program("test_store_tool"), "campaign", subject.spec_text(), (disk / "store").native(),
                 std::string(to_string(level)), std::to_string(seed)},
                {.pipe_output = true});
  Reports reports;
  const std::uint64_t wanted = 1 + random() % 60;
  for (std::uint64_t seen = 0; seen < wanted;) {
    const auto line = child.output().read_line();
    if (!line) throw std::runtime_error("the child ended by itself: " + child.err_text());
    reports.add(*line);
    if (line->front() != 'a') continue;
    ++seen;
    if (random() % 4 == 0) disk.write_back_some(random);
  }
  disk.cut_power();
  child.kill();
  while (const auto line = child.output().read_line()) reports.add(*line);
  disk.restore_power();
  return reports;
}

void power_campaign(Subject& subject, Durability level) {
  if (const auto reason = loop_disk_missing()) KV_SKIP(*reason);
  subject.use_small_files();
  const std::uint64_t seed = test_seed();
  const std::size_t rounds = torture_rounds(kRounds);
  CAPTURE(seed, to_string(level), rounds);
  std::mt19937_64 random(seed);
  LoopDisk disk(kDiskBytes);
  std::uint64_t lost = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const Reports reports = write_and_cut(subject, disk, level, seed, random);
    std::string notices;
    const StoreOptions here{.dir = disk / "store",
                            .notice = [&](std::string_view text) { notices += std::string(text) + "\n"; }};
    auto store = subject.open(here);
    const std::uint64_t found = store->last_batch();
    CAPTURE(found, reports.acknowledged, reports.sent, notices);
    if (level == Durability::disk) REQUIRE(found >= reports.acknowledged);
    REQUIRE(found <= reports.sent);
    lost += reports.sent - found;
    CampaignModel model({seed});
    check_equal(*store, model.after(found));
    REQUIRE_OK(store->verify());
    close(*store);
  }
  print_rounds(rounds,
               fmt::format("power failures of {} at {} on ext4, {} batches lost that were not promised, seed {}",
                           subject.engine().name, to_string(level), lost, seed));
}

ENGINE_SCENARIO(persistent, "a power failure under ext4 takes nothing that was acknowledged at disk") {
  power_campaign(subject, Durability::disk);
}

ENGINE_SCENARIO(persistent, "a power failure under ext4 leaves an exact prefix at kernel") {
  power_campaign(subject, Durability::kernel);
}

}  // namespace
}  // namespace kvingest::test
