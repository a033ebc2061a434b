// suite.hpp -- what a suite of kvbench is: a row of the table in suites.cpp. A new suite is a file of its own and a row
// there.
//
// Threads: kvbench has one; a suite may start others and ends them.
#pragma once

#include <chrono>
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
  std::string tables = {};         ///< Text for the terminal is added here.
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  /// After this no further repeat is begun.
  [[nodiscard]] bool deadline_passed() const {
    return settings.time_budget && std::chrono::steady_clock::now() - start > *settings.time_budget;
  }
  /// How large the inputs of a suite are: as asked for, else `usual`.
  [[nodiscard]] std::vector<std::uint64_t> sizes(std::vector<std::uint64_t> usual) const {
    return settings.items ? std::vector{*settings.items} : std::move(usual);
  }
};

/// What a suite takes while it runs, at most.
struct Needs {
  std::uint64_t disk_bytes = 0;
  std::uint64_t memory_bytes = 0;
};

struct Suite {
  std::string_view name;
  std::string_view summary;  ///< One line for --help.
  bool uses_stores;
  Needs (*needs)(const Settings& settings);
  /// A row that failed is in the results, with its reason, and the suite goes on. Fails with: what ended it early.
  Result<void> (*run)(Bench& bench);
  bool in_full = true;  ///< A part of `full`, which is all of them one after the other.
};

/// All suites, in the order in which they are listed.
[[nodiscard]] std::span<const Suite> suites() noexcept;

[[nodiscard]] Needs ingest_needs(const Settings& settings);
[[nodiscard]] Needs codec_needs(const Settings& settings);
[[nodiscard]] Needs dbbench_needs(const Settings& settings);
[[nodiscard]] Needs net_needs(const Settings& settings);
[[nodiscard]] Needs quick_needs(const Settings& settings);
[[nodiscard]] Needs seed_needs(const Settings& settings);
[[nodiscard]] Needs stores_needs(const Settings& settings);
[[nodiscard]] Needs tree_needs(const Settings& settings);
[[nodiscard]] Needs ycsb_needs(const Settings& settings);

Result<void> run_ingest_suite(Bench& bench);
Result<void> run_codec_suite(Bench& bench);
Result<void> run_dbbench_suite(Bench& bench);
Result<void> run_net_suite(Bench& bench);
Result<void> run_pool_suite(Bench& bench);
Result<void> run_quick_suite(Bench& bench);
Result<void> run_seed_suite(Bench& bench);
Result<void> run_stores_suite(Bench& bench);
Result<void> run_tree_suite(Bench& bench);
Result<void> run_ycsb_suite(Bench& bench);

}  // namespace kvingest::bench
