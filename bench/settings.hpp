// settings.hpp -- what a run of kvbench was asked to do, and which stores it compares.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cli.hpp"
#include "kvingest/engine.hpp"
#include "kvingest/result.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {

struct Settings {
  std::string suites = "quick";
  std::string stores = "all";
  std::uint64_t messages = 2'000'000;
  std::uint64_t batch = 256;
  std::uint64_t second_batch = 4096;
  std::uint64_t interval_us = 0;
  bool lines_only = false;
  std::optional<int> feed_cpu;
  std::optional<int> cpu;
  std::optional<std::string> durability;
  std::string part = "all";
  std::uint64_t repeat = 5;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> items;
  std::uint64_t operations = 20'000;
  std::chrono::milliseconds steady{5'000};
  std::optional<std::chrono::milliseconds> time_budget;
  bool dry_run = false;
  bool explain = false;
  std::string external;
  bool resume = false;
  std::string out = "kvbench-out";
  bool json = false;
  bool quiet = false;
};

/// The level of this name, one of those that --durability takes.
[[nodiscard]] Durability durability_named(std::string_view name);

/// Declares the options that all suites share.
void declare_options(cli::Command& command, Settings& settings);

/// A store that takes part: its engine, and its name as asked for, options included.
struct Contender {
  std::string name;  ///< "mmap" or "mmap,segment=64M"
  const Engine* engine = nullptr;
};

/// The stores that `list` names: `all` those of this build, or names separated by commas, each with its options behind
/// it ("null,mmap,segment=64M,lmdb" are three).
/// Fails with: invalid_argument (no such store or option), unsupported (not in this build).
[[nodiscard]] Result<std::vector<Contender>> parse_stores(std::string_view list);

/// The CPUs that feed and ingestion run on.
struct Placement {
  int feed = 0;
  int ingest = 0;
};

/// As asked for, else the first and the last CPU that we may use. Fails with: invalid_argument.
[[nodiscard]] Result<Placement> place(const Settings& settings);

}  // namespace kvingest::bench
