#include "bench/ycsb_ops.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.hpp"
#include "bench/stores_records.hpp"

namespace kvingest::bench {
namespace {

constexpr std::array kWorkloads = {
    YcsbWorkload{'A', "50 % read, 50 % update", YcsbKind::update, 50},
    YcsbWorkload{'B', "95 % read, 5 % update", YcsbKind::update, 5},
    YcsbWorkload{'C', "reads only", YcsbKind::update, 0},
    YcsbWorkload{'F', "50 % read, 50 % read, change and write", YcsbKind::read_modify_write, 50},
    YcsbWorkload{'D', "95 % read of the latest, 5 % insert", YcsbKind::insert, 5, YcsbKind::read, true},
    YcsbWorkload{'E', "95 % scan of 1 to 100, 5 % insert", YcsbKind::insert, 5, YcsbKind::scan},
};

/// Evenly from [0, 1).
double fraction(std::mt19937_64& random) {
  constexpr double kStep = 1.0 / static_cast<double>(std::uint64_t{1} << 53);
  return static_cast<double>(random() >> 11) * kStep;
}

}  // namespace

// Under the curve x^-s, the stretch from k - 1/2 to k + 1/2 belongs to rank k (from 1). A point is drawn evenly from
// the area under the curve; it is kept when it lies in the part of its stretch that is as large as the rank's weight.
Zipf::Zipf(std::uint64_t count, double exponent) : count_(count), exponent_(exponent) {
  KV_ASSERT(count > 0 && exponent > 0 && exponent != 1);
  area_first_ = area(1.5) - 1;
  area_last_ = area(static_cast<double>(count) + 0.5);
  sure_ = 2 - area_end(area(2.5) - std::pow(2.0, -exponent));
}

double Zipf::area(double to) const {
  return std::expm1((1 - exponent_) * std::log(to)) / (1 - exponent_);
}

double Zipf::area_end(double area) const {
  return std::exp(std::log1p((1 - exponent_) * area) / (1 - exponent_));
}

double Zipf::weight(std::uint64_t rank) const {
  return std::pow(static_cast<double>(rank + 1), -exponent_);
}

std::uint64_t Zipf::operator()(std::mt19937_64& random) const {
  for (;;) {  // More than nine of ten draws are kept.
    const double drawn = area_last_ + fraction(random) * (area_first_ - area_last_);
    const double x = area_end(drawn);
    const double nearest = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(count_));
    if (nearest - x <= sure_ || drawn >= area(nearest + 0.5) - std::pow(nearest, -exponent_))
      return static_cast<std::uint64_t>(nearest) - 1;
  }
}

ShuffledRanks::ShuffledRanks(std::uint64_t count)
    : count_(count),
      bits_(std::max(2U, static_cast<unsigned>(std::bit_width(count - 1)))),
      mask_((std::uint64_t{1} << bits_) - 1) {
  KV_ASSERT(count > 0 && bits_ < 64);
}

// Each step can be undone within `bits_` bits, so all of them are a permutation of the next power of two. What falls
// beyond the count goes through again until it falls inside, which keeps it one to one.
std::uint64_t ShuffledRanks::operator()(std::uint64_t rank) const noexcept {
  do {
    for (int round = 0; round < 3; ++round) {
      rank = (rank * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U) & mask_;
      rank ^= rank >> ((bits_ + 1) / 2);
    }
  } while (rank >= count_);
  return rank;
}

std::span<const YcsbWorkload> ycsb_workloads() noexcept {
  return kWorkloads;
}

std::vector<YcsbOp> make_ycsb_ops(const YcsbWorkload& workload, std::uint64_t records, std::size_t count,
                                  std::uint64_t seed) {
  std::mt19937_64 random(seed * 256 + static_cast<unsigned char>(workload.name));
  std::vector<YcsbOp> ops(count);
  Zipf zipf(records);
  ShuffledRanks shuffled(records);
  for (YcsbOp& op : ops) {
    const bool is_other = static_cast<int>(random() % 100) < workload.other_percent;
    op.kind = is_other ? workload.other : workload.usual;
    if (op.kind == YcsbKind::insert) {
      op.number = records++;
      zipf = Zipf(records);
      shuffled = ShuffledRanks(records);
      continue;
    }
    const std::uint64_t rank = zipf(random);
    op.number = workload.latest ? records - 1 - rank : shuffled(rank);
    if (op.kind == YcsbKind::scan) op.records = static_cast<std::uint32_t>(1 + random() % kYcsbScanMax);
  }
  return ops;
}

std::uint64_t digest_of(std::span<const YcsbOp> ops) noexcept {
  std::uint64_t digest = ops.size();
  for (const YcsbOp& op : ops)
    digest =
        scattered(digest ^ (op.number * 8 + static_cast<std::uint64_t>(op.kind)) ^ (std::uint64_t{op.records} << 48));
  return digest;
}

}  // namespace kvingest::bench
