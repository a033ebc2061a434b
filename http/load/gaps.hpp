// gaps.hpp -- days that a series lacks and most others of its source have: a calendar that nobody has to keep.
//
// Threads: one. Memory: a word for each day of each series of a run, up to a bound, past which no gaps are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "http/load/time_text.hpp"

namespace kvingest::fetch {

class GapFinder {
 public:
  /// `calendar` is what series share: their source and interval.
  void add(std::size_t series, const std::string& calendar, Day day);
  /// The days between the first and the last of series `wanted` that it lacks, and more than half of the others with
  /// days on both sides have. Rising; empty where fewer than three series share the calendar.
  [[nodiscard]] std::vector<Day> gaps(std::size_t wanted) const;

 private:
  struct Series {
    std::string calendar;
    std::vector<Day> days;
  };
  std::map<std::size_t, Series> series_;
  std::size_t held_ = 0;
};

}  // namespace kvingest::fetch
