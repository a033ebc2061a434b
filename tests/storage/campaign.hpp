// campaign.hpp -- the batches that a crash campaign writes: number N of a seed is always the same, so that what is
// found after a crash can be held against what was sent without keeping it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/storage/model.hpp"

namespace kvingest::test {

/// Which batches: all that is not said here follows from the seed.
struct Campaign {
  std::uint64_t seed = 0;
  bool small = false;  ///< Some ten records a batch instead of hundreds, for a test that tries every one.
};

/// Batch `number` (from 1). It overwrites, erases, adds runs and takes old runs away, and holds a large value now and
/// then; its meta entry "progress" is its number. A store that has taken them all stays within some 20 MiB.
[[nodiscard]] std::vector<Operation> campaign_batch(const Campaign& campaign, std::uint64_t number);

/// The arrival number of its first put.
[[nodiscard]] constexpr std::uint64_t campaign_first(std::uint64_t number) noexcept {
  constexpr std::uint64_t kPutsPerBatchMax = 10'000;
  return number * kPutsPerBatchMax;
}

/// What a child that writes batches has reported: the log outside the store.
struct Reports {
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;

  /// "s N": batch N is about to be written; "a N": it is acknowledged.
  void add(std::string_view line);
};

/// What a store holds after batches 1 to N, kept up to date as N rises.
class CampaignModel {
 public:
  explicit CampaignModel(const Campaign& campaign) : campaign_(campaign) {}

  /// The model after batch `number`, which is not below that of the last call.
  const Model& after(std::uint64_t number);

 private:
  Campaign campaign_;
  std::uint64_t applied_ = 0;
  Model model_;
};

}  // namespace kvingest::test
