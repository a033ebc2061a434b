// report.hpp -- report.html: a run as one page that needs nothing else, with a picture for each table.
//
// Pictures are drawn by gnuplot as SVG and put into the page; colours turn around where the reader prefers dark.
//
// Threads: one; gnuplot runs as a child.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/results.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

/// A bar of a picture: the median of its repeats, and their range.
struct Bar {
  std::string label;
  double value = 0;
  double least = 0;
  double most = 0;
};

/// What is compared: rows of one suite, workload, size and unit.
struct Picture {
  std::string title;
  std::string unit;
  std::vector<Bar> bars;
};

/// The pictures of a run: its times and rates, but not what follows from them.
[[nodiscard]] std::vector<Picture> pictures_of(const Results& results);

/// Where gnuplot is on this machine.
[[nodiscard]] std::optional<std::filesystem::path> find_gnuplot();

/// The page. Files are made in `work_dir`. Fails with: io_error (gnuplot failed, with what it said).
[[nodiscard]] Result<std::string> report_page(const Results& results, const std::string& tables,
                                              const std::filesystem::path& gnuplot,
                                              const std::filesystem::path& work_dir);

}  // namespace kvingest::bench
