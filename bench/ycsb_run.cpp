#include "bench/ycsb_run.hpp"

#include <time.h>

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "base/interrupt.hpp"
#include "bench/clock.hpp"
#include "bench/stores_records.hpp"
#include "kvingest/engine.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kYcsbKeyBytes = 24;
constexpr std::size_t kYcsbLoadBatch = 1'000;
/// Operations at the beginning of a run that warm up and say how to time the others.
constexpr std::size_t kWarmUp = 500;
/// Of a steady run: operations made at once, outside of what is timed.
constexpr std::size_t kSteadyOps = 10'000;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double process_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// "user" and twenty digits.
struct YcsbKey {
  explicit YcsbKey(std::uint64_t number) {
    std::memcpy(bytes.data(), "user", 4);
    std::uint64_t rest = scattered(number);
    for (std::size_t i = kYcsbKeyBytes; i > 4; --i, rest /= 10) bytes[i - 1] = static_cast<char>('0' + rest % 10);
  }
  [[nodiscard]] std::string_view view() const { return {bytes.data(), bytes.size()}; }
  std::array<char, kYcsbKeyBytes> bytes;
};

void make_ycsb_value(std::string& value, std::uint64_t number, std::uint32_t version) {
  constexpr std::size_t kHead = 16;
  value.resize(kYcsbValueBytes);
  codec::put_fixed(value.data(), number);
  codec::put_fixed(value.data() + 8, std::uint64_t{version});
  std::memcpy(value.data() + kHead, noise_for(number + version, kYcsbValueBytes - kHead), kYcsbValueBytes - kHead);
}

class YcsbStore final : public YcsbTarget {
 public:
  YcsbStore(std::unique_ptr<Store> store, Durability level) : store_(std::move(store)), level_(level) {}

  Result<void> put(std::string_view key, std::string_view value) override {
    batch_.clear();
    batch_.put(key, value);
    batch_.number(1);
    return store_->write(batch_, level_);
  }

  Result<void> load(std::string_view key, std::string_view value) override {
    batch_.put(key, value);
    if (++loading_ % kYcsbLoadBatch != 0) return {};
    return write_load();
  }

  /// Compacted: a store that has put off its work must not do it within what is timed next.
  Result<void> load_end() override {
    KV_TRY(write_load());
    KV_TRY(store_->sync());
    auto compacted = store_->compact();
    if (!compacted && compacted.error().code != Code::unsupported) return compacted;
    return {};
  }

  Result<bool> get(std::string_view key, Store::ValueVisitor visit) override { return store_->get(key, visit); }

  Result<std::size_t> scan(std::string_view first, std::size_t records, Entry visit) override {
    return store_->scan({.first = first, .last = {}, .limit = records},
                        [&](std::string_view key, std::string_view value) {
                          visit(key, value);
                          return true;
                        });
  }

  Result<std::uint64_t> count() override { return store_->count(); }
  Result<void> close() override { return store_->close(); }
  [[nodiscard]] bool is_ordered() const override { return store_->capabilities().ordered; }
  [[nodiscard]] std::string_view level() const override { return to_string(store_->capabilities().given(level_)); }

 private:
  Result<void> write_load() {
    batch_.number(1);
    auto written = store_->write(batch_, level_);
    batch_.clear();
    return written;
  }

  std::unique_ptr<Store> store_;
  Durability level_;
  WriteBatch batch_;
  std::size_t loading_ = 0;
};

}  // namespace

Result<std::unique_ptr<YcsbTarget>> open_ycsb_store(const std::string& spec, const std::filesystem::path& dir,
                                                    Durability level) {
  auto parsed = parse_store_spec(spec);
  KV_TRY(parsed);
  auto store = open_store(*parsed, {.dir = dir});
  if (!store) return fail(std::move(store).error(), "open {}", spec);
  return std::unique_ptr<YcsbTarget>(std::make_unique<YcsbStore>(*std::move(store), level));
}

Result<std::pair<double, double>> YcsbRunner::load(std::uint64_t records) {
  KV_ASSERT(versions_.empty() && records > 0);
  const auto start = Clock::now();
  for (std::uint64_t number = 0; number < records; ++number) {
    if (number % kYcsbLoadBatch == 0 && interrupted()) return fail(Code::io_error, "interrupted");
    const YcsbKey key(number);
    make_ycsb_value(value_, number, 0);
    KV_TRY(target_->load(key.view(), value_));
    versions_.push_back(0);
    if (key.view() > last_key_) last_key_ = key.view();
  }
  const auto put = Clock::now();
  KV_TRY(target_->load_end());
  const auto settled = Clock::now();
  KV_TRY(check());
  return std::pair{seconds_between(start, put), seconds_between(put, settled)};
}

Result<YcsbRun> YcsbRunner::run_closed(std::span<const YcsbOp> ops) {
  YcsbRun run;
  const auto one = [&](std::size_t i) { perform(ops[i]); };
  const std::size_t warm_up = std::min(kWarmUp, ops.size() / 2);
  LatencyHistogram first;
  time_each(0, warm_up, 1, first, one);
  run.at_once = timed_at_once(first.at(0.5));
  const double cpu_before = process_cpu_seconds();
  const auto start = Clock::now();
  time_each(warm_up, ops.size(), run.at_once, run.service, one);
  run.seconds = seconds_between(start, Clock::now());
  run.cpu_seconds = process_cpu_seconds() - cpu_before;
  KV_TRY(result());
  return run;
}

Result<YcsbRun> YcsbRunner::run_open(std::span<const YcsbOp> ops, double rate) {
  YcsbRun run;
  const double cpu_before = process_cpu_seconds();
  const auto start = Clock::now();
  const auto ns_since = [](Clock::time_point from, Clock::time_point to) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto due = start + std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(i) / rate * 1e9));
    auto begin = Clock::now();
    while (begin < due) begin = Clock::now();
    perform(ops[i]);
    const auto end = Clock::now();
    run.service.add(ns_since(begin, end));
    run.response.add(ns_since(due, end));
  }
  run.seconds = seconds_between(start, Clock::now());
  run.cpu_seconds = process_cpu_seconds() - cpu_before;
  KV_TRY(result());
  return run;
}

Result<std::vector<double>> YcsbRunner::run_steady(const YcsbWorkload& workload, double seconds, double slice_seconds,
                                                   std::uint64_t seed) {
  std::vector<double> slices(static_cast<std::size_t>(seconds / slice_seconds), 0);
  double elapsed = 0;  // Of the store's own time: operations are made outside of it.
  while (elapsed < seconds) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    const std::vector<YcsbOp> ops = make_ycsb_ops(workload, records(), kSteadyOps, ++seed);
    auto before = Clock::now();
    for (const YcsbOp& op : ops) {
      perform(op);
      const auto now = Clock::now();
      elapsed += seconds_between(before, now);
      before = now;
      const auto slice = static_cast<std::size_t>(elapsed / slice_seconds);
      if (slice >= slices.size()) break;
      slices[slice] += 1;
    }
    KV_TRY(result());
    if (static_cast<std::size_t>(elapsed / slice_seconds) >= slices.size()) break;
  }
  for (double& slice : slices) slice /= slice_seconds;
  return slices;
}

Result<void> YcsbRunner::check() {
  KV_TRY(result());
  auto count = target_->count();
  KV_TRY(count);
  if (*count != records()) return fail(Code::corrupt, "it holds {} records and not {}", *count, records());
  for (std::uint64_t number = 0; number < records(); ++number) {
    make_ycsb_value(value_, number, versions_[number]);
    bool is_same = false;
    auto found = target_->get(YcsbKey(number).view(), [&](std::string_view value) { is_same = value == value_; });
    KV_TRY(found);
    if (!*found || !is_same) return fail(Code::corrupt, "record {} is not what was written last", number);
  }
  return {};
}

void YcsbRunner::perform(const YcsbOp& op) {
  switch (op.kind) {
    case YcsbKind::read:
      return read(op.number);
    case YcsbKind::scan:
      return scan(op);
    case YcsbKind::read_modify_write:
      read(op.number);
      return put(op.number);
    case YcsbKind::insert:
    case YcsbKind::update:
      return put(op.number);
  }
}

void YcsbRunner::put(std::uint64_t number) {
  const YcsbKey key(number);
  if (number == versions_.size()) {
    versions_.push_back(0);
    if (key.view() > last_key_) last_key_ = key.view();
  } else {
    ++versions_[number];
  }
  make_ycsb_value(value_, number, versions_[number]);
  if (const auto done = target_->put(key.view(), value_); !done) note(done.error());
}

void YcsbRunner::read(std::uint64_t number) {
  const auto found = target_->get(YcsbKey(number).view(), [&](std::string_view value) { look_at(value, number); });
  if (!found)
    note(found.error());
  else if (!*found)
    problem_ = fmt::format("record {} is not there", number);
}

void YcsbRunner::scan(const YcsbOp& op) {
  const YcsbKey first(op.number);
  bool begins = true;
  bool reaches_end = false;
  const auto found = target_->scan(first.view(), op.records, [&](std::string_view key, std::string_view value) {
    if (begins && key != first.view()) problem_ = fmt::format("a scan from record {} begins elsewhere", op.number);
    begins = false;
    reaches_end = key == last_key_;
    const std::uint64_t number = value.size() == kYcsbValueBytes ? codec::get_fixed<std::uint64_t>(value.data()) : ~0U;
    look_at(value, number);
  });
  if (!found)
    note(found.error());
  else if (*found != op.records && !reaches_end)
    problem_ = fmt::format("a scan from record {} gave {} records, of {}", op.number, *found, op.records);
}

/// One cache line of each value: a store that hands out a pointer must not win by nobody reading.
void YcsbRunner::look_at(std::string_view value, std::uint64_t number) {
  if (value.size() == kYcsbValueBytes && number < versions_.size() &&
      codec::get_fixed<std::uint64_t>(value.data()) == number &&
      codec::get_fixed<std::uint64_t>(value.data() + 8) == versions_[number])
    return;
  problem_ = fmt::format("record {} has another value than the last that was put", number);
}

Result<void> YcsbRunner::result() const {
  if (!problem_.empty()) return fail(Code::corrupt, "{}", problem_);
  return {};
}

}  // namespace kvingest::bench
