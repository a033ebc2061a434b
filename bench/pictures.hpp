// pictures.hpp -- which pictures a run gives: bars of what may be compared, and lines of what was measured over
// something: latency by percentile and by load, rates by time, by size and by share of reads.
//
// Threads: values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/results.hpp"

namespace kvingest::bench {

/// A bar of a picture: the median of its repeats, and their range.
struct Bar {
  std::string label;
  double value = 0;
  double least = 0;
  double most = 0;
};

struct Line {
  std::string label;
  std::vector<std::pair<double, double>> points;  ///< In the order of x.
};

/// Bars: rows of one suite, workload, size and unit; or lines.
struct Picture {
  std::string suite;
  std::string title;
  std::string unit;  ///< Of what is drawn upwards.
  std::vector<Bar> bars = {};
  std::vector<Line> lines = {};
  std::string x = {};  ///< What lines run along.
  bool log_x = false;
  bool log_y = false;
};

/// The pictures of a run, suite by suite: its times and rates, but not what follows from them. None is empty.
[[nodiscard]] std::vector<Picture> pictures_of(const Results& results);

}  // namespace kvingest::bench
