#include "bench/micro.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include "base/interrupt.hpp"
#include "bench/clock.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

/// One measurement takes at least this long: a thousand times what reading the clock does, and longer than a tick.
constexpr double kMeasuredNsMin = 2e6;
constexpr std::uint64_t kCallsMax = std::uint64_t{1} << 30;

struct Measured {
  const MicroRow* row = nullptr;
  std::uint64_t calls = 1;           ///< In one measurement.
  std::vector<double> ns_each = {};  ///< Per item, one for each repeat.
  std::string failure = {};
};

double ns_of(const MicroRow& row, std::uint64_t calls) {
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < calls; ++i) row.run();
  return ns_since(start);
}

/// How many calls take long enough; also warms up what they use.
std::uint64_t calls_for(const MicroRow& row) {
  std::uint64_t calls = 1;
  for (double ns = ns_of(row, calls); ns < kMeasuredNsMin && calls < kCallsMax; ns = ns_of(row, calls)) {
    const double wanted = kMeasuredNsMin / std::max(ns, 1.0) * 1.2;
    calls = static_cast<std::uint64_t>(static_cast<double>(calls) * std::clamp(wanted, 2.0, 100.0));
  }
  return calls;
}

class MicroRun {
 public:
  MicroRun(Bench& bench, const MicroPlan& plan) : bench_(bench), plan_(plan) {
    for (const MicroRow& row : plan.rows) rows_.push_back({.row = &row});
  }

  Result<void> operator()() {
    for (Measured& row : rows_) prepare(row);
    KV_TRY(measure());
    for (Measured& row : rows_) look_again(row);
    for (auto from = rows_.begin(); from != rows_.end();) {
      const auto to =
          std::find_if(from, rows_.end(), [&](const Measured& row) { return row.row->group != from->row->group; });
      report({from, to});
      from = to;
    }
    return {};
  }

 private:
  static void prepare(Measured& row) {
    row.failure = row.row->missing;
    if (!row.failure.empty()) return;
    if (const auto checked = row.row->check(); !checked)
      row.failure = "its answer is wrong: " + checked.error().text;
    else
      row.calls = calls_for(*row.row);
  }

  /// What a row did must still be right after it was measured: a figure of wrong answers is none.
  static void look_again(Measured& row) {
    if (!row.failure.empty() || !row.row->after) return;
    if (const auto checked = row.row->after(); !checked) {
      row.failure = "its answer is wrong: " + checked.error().text;
      row.ns_each.clear();
    }
  }

  Result<void> measure() {
    const auto start = Clock::now();
    std::mt19937_64 random(bench_.settings.seed);
    std::vector<std::size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::uint64_t repeat = 0; repeat < bench_.settings.repeat; ++repeat) {
      if (bench_.deadline_passed() && repeat > 0) {
        shortened_ = repeat;
        break;
      }
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        if (interrupted()) return fail(Code::io_error, "interrupted");
        Measured& row = rows_[i];
        if (!row.failure.empty()) continue;
        for (double spent = 0; spent < plan_.settle_ns;) spent += ns_of(*row.row, row.calls);
        row.ns_each.push_back(ns_of(*row.row, row.calls) / (row.row->items * static_cast<double>(row.calls)));
      }
      if (!bench_.settings.quiet)
        fmt::print(stderr, "{}: repeat {} of {}  ({:.0f} s left)\n", plan_.suite, repeat + 1, bench_.settings.repeat,
                   ns_since(start) / 1e9 / static_cast<double>(repeat + 1) *
                       static_cast<double>(bench_.settings.repeat - repeat - 1));
    }
    return {};
  }

  static std::vector<double> ratios(const Measured& row, const Measured& to) {
    std::vector<double> all;
    for (std::size_t i = 0; i < std::min(row.ns_each.size(), to.ns_each.size()); ++i)
      all.push_back(to.ns_each[i] / row.ns_each[i]);
    return all;
  }

  void report(std::span<const Measured> rows) {
    std::vector<const Measured*> compared;  // For each ratio of the plan; nullptr: not in this group.
    std::vector<std::string> heads = {rows.front().row->group, "ns/" + plan_.item, "M/s", "+-%"};
    const bool has_bytes =
        std::any_of(rows.begin(), rows.end(), [](const Measured& row) { return row.row->bytes > 0; });
    if (plan_.cycles_per_ns > 0) heads.emplace_back("cycles");
    if (has_bytes) heads.emplace_back("B/" + plan_.item);
    for (const MicroRatio& ratio : plan_.ratios) {
      const auto found =
          std::find_if(rows.begin(), rows.end(), [&](const Measured& row) { return row.row->name == ratio.name; });
      compared.push_back(found == rows.end() || found->ns_each.empty() ? nullptr : &*found);
      if (compared.back() != nullptr) heads.push_back("/" + ratio.name);
    }
    Table table(fmt::format("{}: {}, median of {}", plan_.suite, rows.front().row->group,
                            shortened_ == 0 ? bench_.settings.repeat : shortened_),
                std::move(heads), 1);
    for (const Measured& row : rows) add(table, row, compared, has_bytes);
    if (rows.back().row == &plan_.rows.back()) {
      for (const std::string& note : plan_.notes) table.note(note);
    }
    bench_.tables += table.text() + "\n";
  }

  void add(Table& table, const Measured& row, const std::vector<const Measured*>& compared, bool has_bytes) {
    Subject subject = row.row->subject;
    subject.suite = plan_.suite;
    subject.variant = row.row->name;
    const std::string metric = "ns_per_" + plan_.item;
    if (!row.failure.empty()) {
      if (row.row->missing.empty())
        bench_.results.add_failure(subject, metric, "ns", row.failure);
      else
        bench_.results.add_missing(subject, metric, "ns", row.failure);
      table.note(row.row->name + ": " + row.failure);
      return;
    }
    bench_.results.add(subject, metric, "ns", row.ns_each);
    const double ns = median(row.ns_each);
    std::vector<std::string> cells = {row.row->name, fmt::format("{:.3f}", ns), fmt::format("{:.2f}", 1e3 / ns),
                                      fmt::format("{:.0f}", spread(row.ns_each) * 50)};
    if (plan_.cycles_per_ns > 0) {
      std::vector<double> cycles;
      for (const double each : row.ns_each) cycles.push_back(each * plan_.cycles_per_ns);
      cells.push_back(fmt::format("{:.1f}", median(cycles)));
      bench_.results.add(subject, "cycles_per_" + plan_.item, "1", std::move(cycles));
    }
    if (has_bytes) {
      const double bytes = row.row->bytes / row.row->items;
      cells.push_back(fmt::format("{:.2f}", bytes));
      if (bytes > 0) bench_.results.add(subject, "bytes_per_" + plan_.item, "bytes", {bytes});
    }
    for (std::size_t i = 0; i < compared.size(); ++i) {
      if (compared[i] == nullptr) continue;
      const std::vector<double> all = ratios(row, *compared[i]);
      bench_.results.add(subject, plan_.ratios[i].metric, "1", all);
      cells.push_back(fmt::format("{:.2f}", median(all)));
    }
    table.add(std::move(cells));
  }

  Bench& bench_;
  const MicroPlan& plan_;
  std::vector<Measured> rows_;
  std::uint64_t shortened_ = 0;  ///< Repeats that the time budget left, when it was used up.
};

}  // namespace

Result<void> run_micro(Bench& bench, const MicroPlan& plan) {
  return MicroRun(bench, plan)();
}

}  // namespace kvingest::bench
