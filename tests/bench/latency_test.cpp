// Histograms of latencies, and the operations of ycsb.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "bench/latency.hpp"
#include "bench/selftest.hpp"
#include "bench/ycsb_ops.hpp"
#include "tests/support/catch.hpp"

namespace kvingest::bench {
namespace {

TEST_CASE("each bucket of a histogram follows the one before it, and is a thousandth of its values wide at most") {
  std::uint64_t below = LatencyHistogram::top_of(0);
  for (std::size_t bucket = 1; bucket < 40'000; ++bucket) {
    const std::uint64_t top = LatencyHistogram::top_of(bucket);
    REQUIRE(LatencyHistogram::bucket_of(below + 1) == bucket);
    REQUIRE(LatencyHistogram::bucket_of(top) == bucket);
    REQUIRE(static_cast<double>(top - below - 1) <= static_cast<double>(top) / 1'000);
    below = top;
  }
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(LatencyHistogram::top_of(LatencyHistogram::bucket_of(most)) == most);
}

TEST_CASE("percentiles of a histogram are those of its sorted values, to three digits") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> values(20'000);
  LatencyHistogram histogram;
  for (std::uint64_t& value : values) {
    value = random() >> (random() % 64);
    histogram.add(value);
  }
  std::sort(values.begin(), values.end());
  CHECK(histogram.least() == values.front());
  CHECK(histogram.most() == values.back());
  CHECK(histogram.count() == values.size());
  for (const double share : {0.0, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::max(std::ceil(share * 20'000.0), 1.0)) - 1;
    const auto exact = static_cast<double>(values[rank]);
    const auto found = static_cast<double>(histogram.at(share));
    CAPTURE(share, exact, found);
    CHECK(found >= exact);
    CHECK(found <= exact * 1.001);
  }
}

TEST_CASE("merged histograms are the histogram of all values") {
  LatencyHistogram small, large, both;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    small.add(i);
    large.add(i * 1'000'000, 3);
    both.add(i);
    both.add(i * 1'000'000, 3);
  }
  small.merge(large);
  CHECK(small.count() == 20'000);
  CHECK(small.least() == both.least());
  CHECK(small.most() == both.most());
  CHECK(small.mean() == both.mean());
  CHECK(small.spectrum() == both.spectrum());
  LatencyHistogram none;
  CHECK((none.count() == 0 && none.at(0.5) == 0 && none.least() == 0 && none.mean() == 0 && none.spectrum().empty()));
  none.merge(both);
  CHECK(none.spectrum() == both.spectrum());
}

TEST_CASE("a percentile spectrum goes as far as there were operations, and never falls") {
  LatencyHistogram histogram;
  for (std::uint64_t i = 1; i <= 1'000; ++i) histogram.add(i);
  const auto points = histogram.spectrum();
  REQUIRE(points.size() == 25);  // Eight points for each of three decades, and the last.
  CHECK(points.front().first == 1);
  CHECK(std::abs(points.back().first - 1'000) < 1e-6);
  CHECK(std::is_sorted(points.begin(), points.end()));
  CHECK(std::abs(points[16].second - 990) <= 1);  // 100: the 99th percentile.
}

TEST_CASE("what is shorter than a microsecond is timed together with others, and every operation is called once") {
  CHECK(timed_at_once(999) == 64);
  CHECK(timed_at_once(1'000) == 1);
  for (const std::size_t at_once : {std::size_t{1}, std::size_t{64}}) {
    std::vector<int> calls(1'000);
    LatencyHistogram histogram;
    time_each(10, calls.size(), at_once, histogram, [&](std::size_t i) { ++calls[i]; });
    CHECK(std::count(calls.begin(), calls.end(), 1) == 990);
    CHECK(calls[9] == 0);
    CHECK(histogram.count() == 990);
  }
}

TEST_CASE("ranks are drawn with the probabilities of the zipfian distribution") {
  for (const std::uint64_t ranks : {1U, 2U, 10U, 1'000U}) {
    CAPTURE(ranks);
    const Zipf zipf(ranks);
    std::mt19937_64 random(7);
    constexpr int kDraws = 200'000;
    std::vector<double> counts(ranks);
    for (int i = 0; i < kDraws; ++i) {
      const std::uint64_t rank = zipf(random);
      REQUIRE(rank < ranks);
      ++counts[rank];
    }
    double all = 0;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) all += zipf.weight(rank);
    double statistic = 0;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const double expected = kDraws * zipf.weight(rank) / all;
      statistic += (counts[rank] - expected) * (counts[rank] - expected) / expected;
    }
    const double freedom = static_cast<double>(ranks) - 1;
    CHECK(statistic <= freedom + 5 * std::sqrt(2 * freedom) + 1e-9);
  }
}

TEST_CASE("shuffled ranks are a permutation for any number of them") {
  for (const std::uint64_t count : {1U, 2U, 3U, 7U, 64U, 65U, 1'000U, 4'097U}) {
    const ShuffledRanks shuffled(count);
    std::set<std::uint64_t> seen;
    for (std::uint64_t rank = 0; rank < count; ++rank) {
      CHECK(shuffled(rank) < count);
      seen.insert(shuffled(rank));
    }
    CHECK(seen.size() == count);
  }
}

TEST_CASE("the workloads of ycsb have the mixes that they are known for, and only touch records that there are") {
  constexpr std::size_t kOps = 20'000;
  constexpr std::uint64_t kRecords = 500;
  for (const YcsbWorkload& workload : ycsb_workloads()) {
    CAPTURE(workload.name);
    const std::vector<YcsbOp> ops = make_ycsb_ops(workload, kRecords, kOps, 3);
    CHECK(digest_of(ops) == digest_of(make_ycsb_ops(workload, kRecords, kOps, 3)));
    CHECK(digest_of(ops) != digest_of(make_ycsb_ops(workload, kRecords, kOps, 4)));
    std::uint64_t records = kRecords;
    double others = 0;
    for (const YcsbOp& op : ops) {
      if (op.kind != workload.usual) {
        REQUIRE(op.kind == workload.other);
        ++others;
      }
      if (op.kind == YcsbKind::insert) {
        REQUIRE(op.number == records);
        ++records;
      }
      REQUIRE(op.number < records);
      if (op.kind == YcsbKind::scan) REQUIRE((op.records >= 1 && op.records <= kYcsbScanMax));
    }
    CHECK(std::abs(others / kOps * 100 - workload.other_percent) < 2);
  }
}

}  // namespace
}  // namespace kvingest::bench
