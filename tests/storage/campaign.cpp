#include "tests/storage/campaign.hpp"

#include <charconv>
#include <random>

#include "base/check.hpp"

namespace kvingest::test {
namespace {

constexpr std::uint64_t kRunEvery = 5;  // Each 5th batch is a run of lines ...
constexpr std::uint64_t kLargeEvery = 7;

struct Sizes {
  std::uint64_t run_lines;
  std::uint64_t run_lifetime;  // ... and the run so many batches before it is erased.
  std::uint64_t keys;
  std::uint64_t updates_min;
  std::uint64_t updates_max;
  std::uint64_t value_bytes_max;
  std::uint64_t large_bytes;
};
constexpr Sizes kFull{300, 100, 2'000, 50, 250, 200, 200'000};
constexpr Sizes kSmall{5, 20, 20, 2, 8, 100, 3'000};

static_assert(kFull.run_lifetime % kRunEvery == 0 && kSmall.run_lifetime % kRunEvery == 0,
              "the batch that is taken away must have been a run");

void append_run(std::vector<Operation>& operations, const Sizes& sizes, std::uint64_t number) {
  for (std::uint64_t i = 0; i < sizes.run_lines; ++i) {
    operations.push_back({Operation::Kind::next, {}, "line " + std::to_string(i) + " of " + std::to_string(number)});
  }
  if (number <= sizes.run_lifetime) return;
  const std::uint64_t first = campaign_first(number - sizes.run_lifetime);
  for (std::uint64_t i = 0; i < sizes.run_lines; ++i) {
    operations.push_back({Operation::Kind::erase, seq_key(first + i), {}});
  }
}

void append_updates(std::vector<Operation>& operations, const Sizes& sizes, std::uint64_t number,
                    std::mt19937_64& random) {
  const std::uint64_t count = sizes.updates_min + random() % (sizes.updates_max - sizes.updates_min);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = "key/" + std::to_string(random() % sizes.keys);
    if (random() % 10 == 0) {
      operations.push_back({Operation::Kind::erase, key, {}});
      continue;
    }
    std::string value = std::to_string(number) + ":";
    value.resize(value.size() + random() % sizes.value_bytes_max, static_cast<char>('a' + random() % 26));
    operations.push_back({Operation::Kind::put, key, value});
  }
}

}  // namespace

std::vector<Operation> campaign_batch(const Campaign& campaign, std::uint64_t number) {
  const Sizes& sizes = campaign.small ? kSmall : kFull;
  std::mt19937_64 random(campaign.seed * 1'000'003 + number);
  std::vector<Operation> operations;
  if (number % kRunEvery == 0) {
    append_run(operations, sizes, number);
  } else {
    append_updates(operations, sizes, number, random);
  }
  if (number % kLargeEvery == 0) {
    operations.push_back({Operation::Kind::put, "large/" + std::to_string(number % 3),
                          std::string(sizes.large_bytes + random() % 1000, static_cast<char>(random()))});
  }
  operations.push_back({Operation::Kind::put_meta, "progress", std::to_string(number)});
  return operations;
}

void Reports::add(std::string_view line) {
  std::uint64_t number = 0;
  KV_ASSERT(line.size() > 2 && std::from_chars(line.data() + 2, line.data() + line.size(), number).ec == std::errc());
  (line.front() == 'a' ? acknowledged : sent) = number;
}

const Model& CampaignModel::after(std::uint64_t number) {
  KV_ASSERT(number >= applied_);
  while (applied_ < number) {
    ++applied_;
    model_.apply(campaign_batch(campaign_, applied_), campaign_first(applied_));
  }
  return model_;
}

}  // namespace kvingest::test
