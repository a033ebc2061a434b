// compare.hpp -- whether one run of kvbench was better or worse than another, row by row.
//
// A row differs when its repeats differ by a rank test (Mann-Whitney, two-sided, exact, p below 0.05), which takes at
// least four repeats on either side, and its medians by more than a twentieth: a small difference may be sure and yet
// matter to nobody.
#pragma once

#include <string>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::bench {

/// The probability that two samples of one distribution differ in rank as much as these, or more; 1 of nothing.
[[nodiscard]] double rank_test(const std::vector<double>& a, const std::vector<double>& b);

enum class Verdict { no_difference, better, worse, not_comparable };

/// How `now` is against `before`. `higher_is_better`: of rates; of times it is the other way round.
[[nodiscard]] Verdict judge(const std::vector<double>& before, const std::vector<double>& now, bool higher_is_better);

struct Comparison {
  std::size_t better = 0;
  std::size_t worse = 0;
  std::size_t same = 0;
  std::size_t not_comparable = 0;  ///< In one run only, failed, or with too few repeats.
  std::string text;                ///< A table of what differs, and a sentence.
};

/// Compares two results.json. Fails with: io_error, corrupt (no results), invalid_argument (of other machines, or with
/// no row in common).
[[nodiscard]] Result<Comparison> compare_runs(const std::string& before, const std::string& now);

}  // namespace kvingest::bench
