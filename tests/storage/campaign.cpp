#include "tests/storage/campaign.hpp"

#include <random>

#include "base/check.hpp"

namespace kvingest::test {
namespace {

constexpr std::uint64_t kRunEvery = 5;  // Each 5th batch is a run of lines ...
constexpr std::uint64_t kRunLines = 300;
constexpr std::uint64_t kRunLifetime = 100;  // ... and the run so many batches before it is erased.
constexpr std::uint64_t kLargeEvery = 7;
constexpr std::size_t kLargeBytes = 200'000;
constexpr std::uint64_t kKeys = 2'000;

static_assert(kRunLifetime % kRunEvery == 0, "the batch that is taken away must have been a run");

void append_run(std::vector<Operation>& operations, std::uint64_t number) {
  for (std::uint64_t i = 0; i < kRunLines; ++i) {
    operations.push_back({Operation::Kind::next, {}, "line " + std::to_string(i) + " of " + std::to_string(number)});
  }
  if (number <= kRunLifetime) return;
  const std::uint64_t first = campaign_first(number - kRunLifetime);
  for (std::uint64_t i = 0; i < kRunLines; ++i) {
    operations.push_back({Operation::Kind::erase, seq_key(first + i), {}});
  }
}

void append_updates(std::vector<Operation>& operations, std::uint64_t number, std::mt19937_64& random) {
  const std::uint64_t count = 50 + random() % 200;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = "key/" + std::to_string(random() % kKeys);
    if (random() % 10 == 0) {
      operations.push_back({Operation::Kind::erase, key, {}});
      continue;
    }
    std::string value = std::to_string(number) + ":";
    value.resize(value.size() + random() % 200, static_cast<char>('a' + random() % 26));
    operations.push_back({Operation::Kind::put, key, value});
  }
}

}  // namespace

std::vector<Operation> campaign_batch(std::uint64_t seed, std::uint64_t number) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  std::vector<Operation> operations;
  if (number % kRunEvery == 0) {
    append_run(operations, number);
  } else {
    append_updates(operations, number, random);
  }
  if (number % kLargeEvery == 0) {
    operations.push_back({Operation::Kind::put, "large/" + std::to_string(number % 3),
                          std::string(kLargeBytes + random() % 1000, static_cast<char>(random()))});
  }
  operations.push_back({Operation::Kind::put_meta, "progress", std::to_string(number)});
  return operations;
}

const Model& CampaignModel::after(std::uint64_t number) {
  KV_ASSERT(number >= applied_);
  while (applied_ < number) {
    ++applied_;
    model_.apply(campaign_batch(seed_, applied_), campaign_first(applied_));
  }
  return model_;
}

}  // namespace kvingest::test
