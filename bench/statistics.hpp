// statistics.hpp -- how repeated measurements become one figure.
#pragma once

#include <algorithm>
#include <vector>

namespace kvingest::bench {

/// The middle value, or the mean of the two middle ones; 0 of nothing.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// (largest - smallest) / median: 0.1 means that all values lie within a tenth of the median; 0 where it is undefined.
[[nodiscard]] inline double spread(const std::vector<double>& values) {
  const double middle = median(values);
  if (values.empty() || middle <= 0) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / middle;
}

}  // namespace kvingest::bench
