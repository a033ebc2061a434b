// ycsb_run.hpp -- one store under the workloads of YCSB, with a model of what it must hold.
//
// A record is a key of 24 bytes ("user" and a number that is mixed one to one, so that the order of insertion is
// another than that of keys) and a value of 1,000 bytes, which begins with its number and its version. Every answer is
// looked at: the record, and its newest version; check() compares all of them, byte by byte.
//
// Threads: one, and those of the store.
// Errors:  what the store fails with, and corrupt: it answered something else than what was put.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/latency.hpp"
#include "bench/ycsb_ops.hpp"
#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {

inline constexpr std::size_t kYcsbValueBytes = 1'000;

/// What the operations go to.
class YcsbTarget {
 public:
  using Entry = FunctionRef<void(std::string_view key, std::string_view value)>;

  YcsbTarget() = default;
  YcsbTarget(const YcsbTarget&) = delete;
  YcsbTarget& operator=(const YcsbTarget&) = delete;
  virtual ~YcsbTarget() = default;

  virtual Result<void> put(std::string_view key, std::string_view value) = 0;
  /// Of loading: many records, which need not be visible before load_end().
  virtual Result<void> load(std::string_view key, std::string_view value) = 0;
  /// Ends loading; all are there and nothing is left to do for them.
  virtual Result<void> load_end() = 0;
  /// true: it is there, and `visit` was called.
  virtual Result<bool> get(std::string_view key, Store::ValueVisitor visit) = 0;
  /// Up to `records` from `first` on. Returns how many.
  virtual Result<std::size_t> scan(std::string_view first, std::size_t records, Entry visit) = 0;
  virtual Result<std::uint64_t> count() = 0;
  /// Ends it; nothing is called after it.
  virtual Result<void> close() = 0;
  [[nodiscard]] virtual bool is_ordered() const = 0;
  /// What an acknowledged record survives: "kernel".
  [[nodiscard]] virtual std::string_view level() const = 0;
};

/// A new store in `dir`, opened as `spec` says.
[[nodiscard]] Result<std::unique_ptr<YcsbTarget>> open_ycsb_store(const std::string& spec,
                                                                  const std::filesystem::path& dir, Durability level);

/// What a run took.
struct YcsbRun {
  double seconds = 0;
  double cpu_seconds = 0;          ///< Of all threads of this process.
  std::size_t at_once = 1;         ///< Operations that were timed together; percentiles are of their means.
  LatencyHistogram service;        ///< From the call to its return.
  LatencyHistogram response = {};  ///< Of an open loop: from when it was to begin to its return.
};

class YcsbRunner {
 public:
  explicit YcsbRunner(std::unique_ptr<YcsbTarget> target) : target_(std::move(target)) {}

  /// Puts the first `records` records. Returns seconds: of putting them, and of what the store had left to do then.
  Result<std::pair<double, double>> load(std::uint64_t records);

  /// One operation after the other, as fast as it goes. The first ones warm up and are not counted.
  Result<YcsbRun> run_closed(std::span<const YcsbOp> ops);
  /// Operation i is due at i / `rate` seconds, however long those before it take; the thread spins until then.
  Result<YcsbRun> run_open(std::span<const YcsbOp> ops, double rate);
  /// The workload for `seconds`: how many operations ended in each `slice_seconds`.
  Result<std::vector<double>> run_steady(const YcsbWorkload& workload, double seconds, double slice_seconds,
                                         std::uint64_t seed);

  /// Compares every record with the model.
  Result<void> check();
  Result<void> close() { return target_->close(); }

  [[nodiscard]] std::uint64_t records() const noexcept { return versions_.size(); }
  [[nodiscard]] const YcsbTarget& target() const noexcept { return *target_; }

 private:
  void perform(const YcsbOp& op);
  void put(std::uint64_t number);
  void read(std::uint64_t number);
  void scan(const YcsbOp& op);
  void look_at(std::string_view value, std::uint64_t number);
  void note(const Error& error) { problem_ = error.text; }
  [[nodiscard]] Result<void> result() const;

  std::unique_ptr<YcsbTarget> target_;
  std::vector<std::uint32_t> versions_;  ///< Of each record, by number.
  std::string last_key_;                 ///< The greatest: scans that reach it may be short.
  std::string value_;
  std::string problem_;
};

}  // namespace kvingest::bench
