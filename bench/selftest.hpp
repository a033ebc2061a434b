// selftest.hpp -- whether kvbench's own tools are sound here: clock, generators, harness, comparison.
#pragma once

#include <string>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::bench {

struct SelfCheck {
  std::string name;
  bool passed = false;
  std::string figure;  ///< What was measured, and what it may be.
};

/// Runs all checks, in some seconds. Fails with: what opening the null store fails with.
[[nodiscard]] Result<std::vector<SelfCheck>> run_selftest();

/// Pearson's statistic of how often each of equally likely things came.
[[nodiscard]] double chi_square(const std::vector<std::uint64_t>& counts);

}  // namespace kvingest::bench
