// machine.hpp -- where the figures were measured: without it a figure means little.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json_writer.hpp"

namespace kvingest::bench {

struct Machine {
  std::string cpu;   ///< Model, as the kernel names it.
  std::string cpus;  ///< Those we may use: "0-3".
  std::uint64_t memory_bytes = 0;
  std::string kernel;      ///< Name, release and architecture.
  std::string system;      ///< The distribution.
  std::string compiler;    ///< Of this binary.
  double load = 0;         ///< Average of the last minute, before the run.
  std::string filesystem;  ///< Of the output directory, where the stores of a run lie.
};

/// What can be found out; empty where it cannot.
[[nodiscard]] Machine describe_machine(const std::filesystem::path& dir);

/// true when files in `dir` live in memory, so that syncing them costs nothing and says nothing.
[[nodiscard]] bool is_memory_filesystem(const Machine& machine);

/// Memory that can be had without pushing others out, as the kernel counts it.
[[nodiscard]] std::uint64_t available_memory_bytes();

void write_machine(JsonWriter& json, const Machine& machine);

}  // namespace kvingest::bench
