// ycsb_ops.hpp -- which records the workloads A to F of YCSB touch, and how: made before anything is timed, the same
// for every store.
//
// Zipf draws ranks with exactly the probabilities of the zipfian distribution, for any number of ranks, by rejection
// (Hörmann and Derflinger's rejection-inversion): no sum over all ranks is needed, so that the number may grow.
// ShuffledRanks spreads ranks over record numbers one to one: every record can be reached, and the popular ones are
// neither neighbours in the order of keys nor in that of insertion.
//
// Threads: values; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvingest::bench {

/// How popular ranks are, as in YCSB: rank k is drawn about 1 / k^0.99 as often as rank 1.
inline constexpr double kYcsbExponent = 0.99;

class Zipf {
 public:
  /// Ranks 0 to `count - 1`, at least one; `exponent` is positive and not 1.
  explicit Zipf(std::uint64_t count, double exponent = kYcsbExponent);

  [[nodiscard]] std::uint64_t operator()(std::mt19937_64& random) const;
  /// How probable rank `rank` is, up to the factor that all ranks share.
  [[nodiscard]] double weight(std::uint64_t rank) const;

 private:
  [[nodiscard]] double area(double to) const;
  [[nodiscard]] double area_end(double area) const;

  std::uint64_t count_;
  double exponent_;
  double area_first_;
  double area_last_;
  double sure_;  ///< So near to its rank a draw needs no second look.
};

class ShuffledRanks {
 public:
  /// A permutation of 0 to `count - 1`.
  explicit ShuffledRanks(std::uint64_t count);
  [[nodiscard]] std::uint64_t operator()(std::uint64_t rank) const noexcept;

 private:
  std::uint64_t count_;
  unsigned bits_;
  std::uint64_t mask_;
};

enum class YcsbKind : std::uint8_t { read, update, insert, scan, read_modify_write };

struct YcsbOp {
  YcsbKind kind = YcsbKind::read;
  std::uint32_t records = 1;  ///< Of a scan: how many.
  std::uint64_t number = 0;   ///< Of the record; of an insert the next that there is not.
};

struct YcsbWorkload {
  char name = 'A';
  std::string_view mix;  ///< For tables: "50 % read, 50 % update".
  YcsbKind other = YcsbKind::update;
  int other_percent = 50;  ///< The rest is `usual`.
  YcsbKind usual = YcsbKind::read;
  bool latest = false;  ///< The newest records are the popular ones.
};

/// A to F, in the order in which YCSB wants them run: those that insert come last.
[[nodiscard]] std::span<const YcsbWorkload> ycsb_workloads() noexcept;

/// The longest scan; their lengths are even from 1 on.
inline constexpr std::uint32_t kYcsbScanMax = 100;

/// `count` operations on a store of `records` records. Equal arguments give equal operations.
[[nodiscard]] std::vector<YcsbOp> make_ycsb_ops(const YcsbWorkload& workload, std::uint64_t records, std::size_t count,
                                                std::uint64_t seed);

/// Whether two runs did the same.
[[nodiscard]] std::uint64_t digest_of(std::span<const YcsbOp> ops) noexcept;

}  // namespace kvingest::bench
