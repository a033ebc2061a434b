// mmap_power.hpp -- power failures at random system calls of a store of the mmap engine that is being written.
#pragma once

#include <cstdint>
#include <random>

#include "tests/storage/mmap_fixture.hpp"
#include "tests/support/disk_model.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/posix_fault.hpp"

namespace kvingest::test {

struct PowerCampaign {
  EngineOptions options;
  int rounds = 0;
  std::uint64_t calls = 0;       ///< Power fails at one of so many system calls, the first 20 aside.
  std::uint64_t batches = 0;     ///< Written in a round, if power lasts.
  std::uint64_t sync_every = 0;  ///< One batch of so many goes to disk.
};

/// After each power failure the log is an exact prefix of what was sent, with all that was synced in it.
inline void check_power_failures(const PowerCampaign& campaign) {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < campaign.rounds; ++round) {
    PosixFault fault;
    MmapDir dir(campaign.options, fault.table());
    DiskModel& disk = fault.watch_disk();
    fault.cut_power_at(20 + random() % campaign.calls);
    std::uint64_t sent = 0;
    std::uint64_t safe = 0;
    if (auto opened = dir.try_open()) {
      auto store = std::move(*opened);
      for (; sent < campaign.batches; ++sent) {
        const bool to_disk = random() % campaign.sync_every == 0;
        if (!store->write(lines(1 + 1000 * sent, 1000), to_disk ? Durability::disk : Durability::kernel)) break;
        if (to_disk) safe = sent + 1;
      }
    }
    disk.lose(random());
    fault.heal();
    auto store = dir.open();
    INFO("round " << round);
    CHECK(store->last_batch() >= safe);
    CHECK(store->last_batch() <= sent + 1);
    CHECK(store->count().value() == 1000 * store->last_batch());
    CHECK(store->verify());
  }
}

}  // namespace kvingest::test
