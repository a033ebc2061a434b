// ingest_run.hpp -- one run of the ingestion, or of what it is compared with: real processes over loopback, the feed on
// one CPU and the receiver on another.
//
// Threads: one; the programs are children.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/child.hpp"
#include "bench/settings.hpp"
#include "bench/trades.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

enum class IngestKind : std::uint8_t {
  discard,     ///< Receive and store nothing: what the machine allows.
  store,       ///< kvingest with a store.
  seek_write,  ///< A bare loop of lseek and write: what `file` is compared with. Nothing is received.
};

/// What is run: a row of the tables.
struct IngestCase {
  IngestKind kind = IngestKind::store;
  Contender store;         ///< Of kind `store`.
  std::string durability;  ///< As asked for.
  std::uint64_t batch = 256;

  // Where it is not "numbered lines as fast as they are taken, over one connection".
  std::string name = {};           ///< Of the workload; empty: that of its kind.
  const LineFile* file = nullptr;  ///< Trades; outlives it.
  std::string format = "line";     ///< Other than line: the trades are parsed, and their keys are {symbol}/{ts}.
  std::string ack = {};            ///< Pushed as a named source with this --ack.
  std::uint64_t connections = 1;
  std::uint64_t messages = 0;  ///< 0: as many as the settings say.
  std::uint64_t rate = 0;      ///< Lines a second, open loop, with their latency.

  [[nodiscard]] std::string workload() const;
  /// For messages: "lmdb at disk, 256 lines a send".
  [[nodiscard]] std::string text() const;
};

/// From the intended send of lines to the word that they are durable, in microseconds.
struct Latency {
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
};

/// What one run of it gave.
struct IngestMeasurement {
  double seconds = 0;                    ///< From accept until the last group is committed.
  double rate = 0;                       ///< Messages per second.
  double cpu_share = 0;                  ///< CPU time since it was ready, divided by `seconds`; 1 is one whole CPU.
  std::uint64_t rss_anon_max_bytes = 0;  ///< The most seen; looked at every few milliseconds.
  Usage usage;                           ///< Of the whole process, from start to end.
  Usage feed;                            ///< Of the feed's.
  std::string level;                     ///< The durability really given.
  Latency latency;                       ///< Of an open loop.
};

/// Where the programs are and how a run is set up.
struct IngestSetup {
  const Settings& settings;
  Placement placement;
  std::filesystem::path programs;  ///< The directory of kvingest, kvfeed and kvbench.
};

/// Runs `what` once, in the new and empty directory `dir`, and checks what it left. Fails with: io_error, corrupt (the
/// counts or the records are not those that were sent), and what opening the store fails with.
[[nodiscard]] Result<IngestMeasurement> run_ingest(const IngestSetup& setup, const IngestCase& what,
                                                   const std::filesystem::path& dir);

}  // namespace kvingest::bench
