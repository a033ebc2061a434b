// stores_run.hpp -- the single runs of the suite `stores`: a new store is filled, read and closed; opened after a clean
// close and after kill -9; overwritten for long.
//
// Only the calls of the store are timed: its records are made between them. What is read is compared with what was put.
//
// Threads: one, and those of the store. measure_opening() fills stores in child processes, which kill themselves.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "bench/stores_targets.hpp"

namespace kvingest::bench {

/// Figures of one run by their names. Times are in nanoseconds for each record.
using Figures = std::map<std::string, double>;

/// What one run does.
struct StoresWay {
  std::string store;  ///< As asked for: "mmap,segment=16M"; of a loop on an engine, that engine's name.
  std::string name;   ///< In tables and as the variant in the results: "mmap", "lmdb itself".
  KeyOrder order = KeyOrder::sequential;
  Durability level = Durability::kernel;
  std::size_t group = 1'000;  ///< Records of a batch.
  bool reads = true;          ///< Gets, too; of a store also many at once, and scans.
  std::function<OpenedTarget(const std::filesystem::path& dir)> open;
};

/// Puts `records` in the new directory `dir` and reads them, as the way says. Figures: put, cpu_first, cpu_last (CPU
/// time of the process for a put of the first and of the last million, or half); get, multi_get, scan where it reads;
/// index_bytes where the store says so. With `compare`, every value is compared, byte by byte.
/// Fails with: corrupt (it gave something else back), what the target fails with, io_error (interrupted).
[[nodiscard]] Result<Figures> run_way(const StoresWay& way, const std::filesystem::path& dir, std::uint64_t records,
                                      bool compare);

/// How long opening takes. Figures: pass (checksums over the whole log, from cache), clean, killed, bare (killed, and
/// what could be made anew from the log is gone).
[[nodiscard]] Result<Figures> measure_opening(const std::string& spec, KeyOrder order, const std::filesystem::path& dir,
                                              std::uint64_t records);

/// Overwrites keys of a filled store three times over, at random. Figures: put (before compaction has anything to do),
/// put_compacting, space (the most that the files took beyond two segments, in times of the live bytes).
[[nodiscard]] Result<Figures> measure_overwriting(const std::string& engine, const std::filesystem::path& dir,
                                                  std::uint64_t records);

}  // namespace kvingest::bench
