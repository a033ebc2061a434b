#include "base/nearest.hpp"

#include <algorithm>
#include <vector>

namespace kvingest {
namespace {

constexpr std::size_t kNameBytesMax = 64;  // Longer ones are not names: the table below stays small.

/// Edits between two names, a swap of neighbours counting as one.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view given, std::span<const std::string_view> known) {
  if (given.empty() || given.size() > kNameBytesMax) return {};
  std::string_view best;
  std::size_t best_edits = std::max<std::size_t>(1, given.size() / 3) + 1;
  for (const std::string_view name : known) {
    if (name.size() > kNameBytesMax) continue;
    const std::size_t distance = edits(given, name);
    if (distance >= best_edits) continue;
    best = name;
    best_edits = distance;
  }
  return best;
}

}  // namespace kvingest
