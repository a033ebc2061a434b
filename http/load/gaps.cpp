#include "http/load/gaps.hpp"

#include <algorithm>

namespace kvingest::fetch {
namespace {

constexpr std::size_t kDaysHeldMax = 4'000'000;
constexpr std::size_t kSeriesMin = 3;

}  // namespace

void GapFinder::add(std::size_t series, const std::string& calendar, Day day) {
  if (++held_ > kDaysHeldMax) {
    series_.clear();
    return;
  }
  Series& one = series_[series];
  one.calendar = calendar;
  one.days.push_back(day);
}

std::vector<Day> GapFinder::gaps(std::size_t wanted) const {
  const auto found = series_.find(wanted);
  if (found == series_.end()) return {};
  std::vector<Day> own = found->second.days;
  std::ranges::sort(own);
  std::map<Day, std::size_t> count;
  std::vector<std::pair<Day, Day>> reaches;  // First and last day of each of the others.
  for (const auto& [index, one] : series_) {
    if (index == wanted || one.calendar != found->second.calendar) continue;
    const auto [first, last] = std::ranges::minmax(one.days);
    reaches.emplace_back(first, last);
    for (const Day day : one.days) {
      if (day > own.front() && day < own.back()) ++count[day];
    }
  }
  std::vector<Day> missing;
  if (reaches.size() + 1 < kSeriesMin) return missing;
  for (const auto& [day, have] : count) {
    const auto reach = static_cast<std::size_t>(
        std::ranges::count_if(reaches, [day = day](const auto& one) { return one.first <= day && day <= one.second; }));
    if (have * 2 > reach && !std::ranges::binary_search(own, day)) missing.push_back(day);
  }
  return missing;
}

}  // namespace kvingest::fetch
