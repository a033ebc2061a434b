#include "bench/latency.hpp"

#include <bit>
#include <cmath>

namespace kvingest::bench {
namespace {

/// Bits of a value that tell buckets apart: values with more of them share one with their neighbours.
constexpr unsigned kKeptBits = 11;
constexpr std::size_t kPartsOfDoubling = std::size_t{1} << (kKeptBits - 1);
static_assert(kPartsOfDoubling >= 1'000, "three digits");

}  // namespace

std::size_t LatencyHistogram::bucket_of(std::uint64_t ns) noexcept {
  const auto bits = static_cast<unsigned>(std::bit_width(ns));
  if (bits <= kKeptBits) return ns;
  const unsigned dropped = bits - kKeptBits;
  return dropped * kPartsOfDoubling + static_cast<std::size_t>(ns >> dropped);
}

std::uint64_t LatencyHistogram::top_of(std::size_t bucket) noexcept {
  if (bucket < 2 * kPartsOfDoubling) return bucket;
  const std::size_t dropped = bucket / kPartsOfDoubling - 1;
  const std::uint64_t kept = bucket - dropped * kPartsOfDoubling;
  return ((kept + 1) << dropped) - 1;
}

void LatencyHistogram::add(std::uint64_t ns, std::uint64_t times) {
  if (times == 0) return;
  const std::size_t bucket = bucket_of(ns);
  if (bucket >= buckets_.size()) buckets_.resize((bucket / kPartsOfDoubling + 1) * kPartsOfDoubling);
  buckets_[bucket] += times;
  count_ += times;
  least_ = std::min(least_, ns);
  most_ = std::max(most_, ns);
  sum_ += static_cast<double>(ns) * static_cast<double>(times);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
  sum_ += other.sum_;
}

double LatencyHistogram::mean() const noexcept {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t LatencyHistogram::at(double share) const noexcept {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(count_));
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::max(wanted, 1.0)), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(top_of(i), most_);
  }
  return most_;
}

std::vector<std::pair<double, double>> LatencyHistogram::spectrum() const {
  constexpr double kPointsOfDecade = 8;
  std::vector<std::pair<double, double>> points;
  for (double exponent = 0;; exponent += 1 / kPointsOfDecade) {
    const double inverse = std::pow(10, exponent);  // 1, ..., 10: the 90th percentile, ..., 100: the 99th.
    if (inverse > static_cast<double>(count_)) break;
    points.emplace_back(inverse, static_cast<double>(at(1 - 1 / inverse)));
  }
  return points;
}

}  // namespace kvingest::bench
