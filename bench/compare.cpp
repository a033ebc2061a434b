#include "bench/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/results.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

constexpr double kDifferenceMin = 0.05;
constexpr double kProbabilityMax = 0.05;
constexpr std::size_t kRepeatsMin = 4;

struct RunRow {
  std::vector<double> values;
  std::string unit;
  std::string metric;
};

struct Run {
  std::string machine;
  std::map<std::string, RunRow> rows;  ///< By what was run.
};

/// Rates and ratios are better when higher, times and bytes when lower; others (switches, shares) are neither.
int direction(const RunRow& row) {
  if (row.unit == "1/s" || row.metric.starts_with("ratio_")) return 1;
  if (row.metric.starts_with("send_to_durable")) return -1;
  if (row.unit == "ns" || row.unit == "s" || row.unit == "bytes") return -1;
  return 0;
}

std::string key_of(const Row& row) {
  const Subject& subject = row.subject;
  std::string params;
  for (const auto& [name, value] : subject.params) params += fmt::format(" {}={}", name, value);
  if (!subject.variant.empty() && subject.variant != subject.store) params += " " + subject.variant;
  std::string key;
  for (const std::string& part : {subject.suite, subject.workload, subject.store, subject.durability}) {
    if (!part.empty()) key += part + " ";
  }
  if (!params.empty()) key += params.substr(1) + " ";
  return key + row.metric;
}

Result<Run> read_run(const std::string& path) {
  auto results = read_results(path);
  KV_TRY(results);
  Run run{.machine = results->machine.cpu + ", CPUs " + results->machine.cpus, .rows = {}};
  for (Row& row : results->rows) run.rows[key_of(row)] = {std::move(row.values), row.unit, row.metric};
  return run;
}

/// How many ways there are to pick `a` of `a + b` ranks so that their U is each number: the distribution of U.
std::vector<double> ways_of_u(std::size_t a, std::size_t b) {
  std::vector<std::vector<double>> ways(a + 1, std::vector<double>(a * b + 1, 0));
  ways[0][0] = 1;
  // One rank of the other sample after the other: each one picked so far from this one's counts against it.
  for (std::size_t seen = 0; seen < a + b; ++seen) {
    for (std::size_t picked = std::min(a, seen + 1); picked > 0; --picked) {
      const std::size_t others = seen + 1 - picked;
      if (others > b) continue;
      for (std::size_t u = others; u <= a * b; ++u) ways[picked][u] += ways[picked - 1][u - others];
    }
  }
  return std::move(ways[a]);
}

}  // namespace

double rank_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  double u = 0;
  for (const double x : a) {
    for (const double y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
  }
  const std::vector<double> ways = ways_of_u(a.size(), b.size());
  const auto pairs = static_cast<double>(a.size() * b.size());
  const auto nearer = static_cast<std::size_t>(std::ceil(std::min(u, pairs - u)));  // Ties: the less sure way.
  double all = 0;
  double tail = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    all += ways[i];
    if (i <= nearer) tail += ways[i];
  }
  return std::min(1.0, 2 * tail / all);
}

Verdict judge(const std::vector<double>& before, const std::vector<double>& now, bool higher_is_better) {
  if (before.size() < kRepeatsMin || now.size() < kRepeatsMin) return Verdict::not_comparable;
  const double old_median = median(before);
  const double change = old_median == 0 ? 0 : median(now) / old_median - 1;
  if (std::abs(change) <= kDifferenceMin || rank_test(before, now) >= kProbabilityMax) return Verdict::no_difference;
  return (change > 0) == higher_is_better ? Verdict::better : Verdict::worse;
}

Result<Comparison> compare_runs(const std::string& before_path, const std::string& now_path) {
  auto before = read_run(before_path);
  KV_TRY(before);
  auto now = read_run(now_path);
  KV_TRY(now);
  if (before->machine != now->machine)
    return fail(Code::invalid_argument, "the runs are of two machines ({}; {}): their figures cannot be compared",
                before->machine, now->machine);
  Comparison comparison;
  Table table("compare", {"row", "verdict", "before", "now", "change"}, 2);
  for (const auto& [key, row] : now->rows) {
    const auto found = before->rows.find(key);
    if (direction(row) == 0) continue;
    const Verdict verdict = found == before->rows.end() ? Verdict::not_comparable
                                                        : judge(found->second.values, row.values, direction(row) > 0);
    if (verdict == Verdict::no_difference) ++comparison.same;
    if (verdict == Verdict::not_comparable) ++comparison.not_comparable;
    if (verdict != Verdict::better && verdict != Verdict::worse) continue;
    ++(verdict == Verdict::better ? comparison.better : comparison.worse);
    const double old_median = median(found->second.values);
    const double new_median = median(row.values);
    table.add({key, verdict == Verdict::better ? "better" : "worse", fmt::format("{:.4g}", old_median),
               fmt::format("{:.4g}", new_median), fmt::format("{:+.1f}%", (new_median / old_median - 1) * 100)});
  }
  if (comparison.better + comparison.worse + comparison.same == 0)
    return fail(Code::invalid_argument, "no row is in both runs with at least {} repeats: nothing can be compared",
                kRepeatsMin);
  if (comparison.better + comparison.worse > 0) comparison.text = table.text();
  comparison.text += fmt::format("{} better, {} worse, {} without a difference, {} not comparable\n", comparison.better,
                                 comparison.worse, comparison.same, comparison.not_comparable);
  return comparison;
}

}  // namespace kvingest::bench
