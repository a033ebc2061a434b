// suite.hpp -- what a suite of kvbench is: a row of the table in suites.cpp. A new suite is a file of its own and a row
// there.
//
// Threads: kvbench has one; a suite may start others and ends them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/results.hpp"
#include "bench/settings.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

/// What a suite works with.
struct Bench {
  const Settings& settings;
  std::vector<Contender> stores;
  Placement placement;
  std::filesystem::path programs;  ///< The directory that kvbench and the other programs are in.
  std::filesystem::path work_dir;  ///< Files go here; removed at the end.
  Results& results;                ///< Rows are added here.
  std::string tables;              ///< Text for the terminal is added here.
};

struct Suite {
  std::string_view name;
  std::string_view summary;  ///< One line for --help.
  /// A row that failed is in the results, with its reason, and the suite goes on. Fails with: what ended it early.
  Result<void> (*run)(Bench& bench);
};

/// All suites, in the order in which they are listed.
[[nodiscard]] std::span<const Suite> suites() noexcept;

Result<void> run_ingest_suite(Bench& bench);

}  // namespace kvingest::bench
