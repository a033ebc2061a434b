#include "bench/selftest.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/clock.hpp"
#include "bench/compare.hpp"
#include "bench/statistics.hpp"
#include "bench/ycsb_ops.hpp"
#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {
namespace {

constexpr double kOverheadNsMax = 15;

/// Time that this thread was on a CPU: what others do beside it is no overhead of ours.
double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

SelfCheck check_clock() {
  constexpr int kReadings = 1'000'000;
  const auto start = Clock::now();
  auto before = start;
  int backwards = 0;
  for (int i = 0; i < kReadings; ++i) {
    const auto now = Clock::now();
    backwards += now < before ? 1 : 0;
    before = now;
  }
  const double ns_each = ns_since(start) / kReadings;
  return {"the clock never runs backwards and takes less than a microsecond", backwards == 0 && ns_each < 1'000,
          fmt::format("{:.1f} ns a reading, {} backwards", ns_each, backwards)};
}

/// The 99.9th percentile of chi-square with many degrees of freedom, and the 0.1th, by Wilson and Hilferty.
std::pair<double, double> chi_square_bounds(double freedom) {
  constexpr double kDeviations = 3.09;
  const double part = 2 / (9 * freedom);
  const auto at = [&](double z) { return freedom * std::pow(1 - part + z * std::sqrt(part), 3); };
  return {at(-kDeviations), at(kDeviations)};
}

SelfCheck check_generator(std::uint64_t seed) {
  constexpr std::size_t kKinds = 128;
  std::vector<std::uint64_t> counts(kKinds);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1'000'000; ++i) ++counts[random() & (kKinds - 1)];
  const double statistic = chi_square(counts);
  const auto [least, most] = chi_square_bounds(kKinds - 1);
  return {fmt::format("random values are even (seed {})", seed), statistic > least && statistic < most,
          fmt::format("chi-square {:.1f}, within {:.1f} and {:.1f}", statistic, least, most)};
}

/// Draws of the zipfian distribution against its probabilities: the popular ranks one by one, all others together.
SelfCheck check_zipf() {
  constexpr std::uint64_t kRanks = 100'000;
  constexpr std::size_t kAlone = 100;
  constexpr int kDraws = 1'000'000;
  const Zipf zipf(kRanks);
  std::vector<double> counts(kAlone + 1);
  std::mt19937_64 random(1);
  for (int i = 0; i < kDraws; ++i) ++counts[std::min<std::uint64_t>(zipf(random), kAlone)];
  double all = 0;
  std::vector<double> weights(kAlone + 1);
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
    weights[std::min<std::uint64_t>(rank, kAlone)] += zipf.weight(rank);
    all += zipf.weight(rank);
  }
  double statistic = 0;
  for (std::size_t i = 0; i <= kAlone; ++i) {
    const double expected = kDraws * weights[i] / all;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  // The slope of the logarithms, between the first rank and those from 30 to 100, many of them for a sure figure.
  double far = 0;
  double far_expected = 0;
  for (std::size_t rank = 30; rank < kAlone; ++rank) {
    far += counts[rank];
    far_expected += std::pow(static_cast<double>(rank + 1), -kYcsbExponent);
  }
  const double slope = kYcsbExponent + std::log(counts[0] * far_expected / far) / std::log(65);
  const auto [least, most] = chi_square_bounds(kAlone);
  return {"the zipfian generator draws with its probabilities",
          statistic > least && statistic < most && std::abs(slope - kYcsbExponent) < 0.01,
          fmt::format("chi-square {:.1f}, within {:.1f} and {:.1f}; slope {:.3f}", statistic, least, most, slope)};
}

/// Every record can be reached, and none by two ranks.
SelfCheck check_shuffled() {
  constexpr std::uint64_t kRanks = 100'000;
  const ShuffledRanks shuffled(kRanks);
  std::vector<bool> seen(kRanks);
  std::uint64_t reached = 0;
  std::uint64_t neighbours = 0;
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) {
    const std::uint64_t number = shuffled(rank);
    reached += seen[number] ? 0 : 1;
    seen[number] = true;
    if (rank > 0 && number == shuffled(rank - 1) + 1) ++neighbours;
  }
  return {"shuffled ranks reach every record, and rarely a neighbour", reached == kRanks && neighbours < kRanks / 100,
          fmt::format("{} of {} reached, {} neighbours", reached, kRanks, neighbours)};
}

SelfCheck check_coverage() {
  constexpr std::size_t kCovered = 100'000;
  std::vector<std::uint32_t> keys(kCovered);
  for (std::uint32_t i = 0; i < kCovered; ++i) keys[i] = i;
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(1));
  std::vector<bool> seen(kCovered);
  std::size_t missing = kCovered;
  for (const std::uint32_t key : keys) {
    missing -= seen[key] ? 0 : 1;
    seen[key] = true;
  }
  return {"a shuffled order has every key once", missing == 0 && !std::is_sorted(keys.begin(), keys.end()),
          fmt::format("{} of {} are missing", missing, kCovered)};
}

/// What the interface and the loop around it cost, per put of a batch: no engine is measured to be faster.
Result<SelfCheck> check_null_store() {
  constexpr int kPuts = 1'000'000;
  constexpr int kGroup = 1'000;
  auto spec = parse_store_spec("null");
  KV_TRY(spec);
  auto store = open_store(*spec, {});
  KV_TRY(store);
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    WriteBatch batch;
    const double start = cpu_ns();
    for (int i = 0; i < kPuts; i += kGroup) {
      for (int k = 0; k < kGroup; ++k) batch.put_next("value");
      batch.number(1);
      KV_TRY((*store)->write(batch, Durability::memory));
      batch.clear();
    }
    rounds.push_back((cpu_ns() - start) / kPuts);
  }
  KV_TRY((*store)->close());
  const double best = *std::min_element(rounds.begin(), rounds.end());
  return SelfCheck{
      fmt::format("the null store costs at most {:.0f} ns a put", kOverheadNsMax), best <= kOverheadNsMax,
      fmt::format("{:.1f} ns in the best of {} rounds, median {:.1f}", best, rounds.size(), median(rounds))};
}

SelfCheck check_same_code() {
  // The same loop under two names, in turns; by CPU time, since others on this machine are no difference of the code.
  std::vector<double> first;
  std::vector<double> second;
  for (int repeat = 0; repeat < 8; ++repeat) {
    for (std::vector<double>* side : {&first, &second}) {
      const double start = cpu_ns();
      std::uint64_t x = 1;
      for (int i = 0; i < 2'000'000; ++i) {
        x *= 0x5851F42D4C957F2D;
        asm volatile("" : "+r"(x));
      }
      side->push_back(cpu_ns() - start);
    }
  }
  const Verdict verdict = judge(first, second, false);
  return {
      "the same code measured twice shows no difference", verdict == Verdict::no_difference,
      fmt::format("medians {:.0f} and {:.0f} ns, p {:.2f}", median(first), median(second), rank_test(first, second))};
}

SelfCheck check_comparison() {
  const std::vector<double> before = {100, 101, 99, 102, 98};
  const std::vector<double> slower = {120, 121, 119, 122, 118};
  const bool sees = judge(before, slower, false) == Verdict::worse && judge(slower, before, false) == Verdict::better &&
                    judge(before, slower, true) == Verdict::better;
  const bool keeps_calm = judge(before, before, false) == Verdict::no_difference;
  return {"a fifth more time is seen as worse, and none as no difference", sees && keeps_calm,
          fmt::format("p {:.4f} and {:.2f}", rank_test(before, slower), rank_test(before, before))};
}

}  // namespace

double chi_square(const std::vector<std::uint64_t>& counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

Result<std::vector<SelfCheck>> run_selftest() {
  std::vector<SelfCheck> checks = {check_clock(),    check_generator(1), check_generator(2),
                                   check_coverage(), check_zipf(),       check_shuffled()};
  auto null_store = check_null_store();
  KV_TRY(null_store);
  checks.push_back(*std::move(null_store));
  checks.push_back(check_same_code());
  checks.push_back(check_comparison());
  return checks;
}

}  // namespace kvingest::bench
