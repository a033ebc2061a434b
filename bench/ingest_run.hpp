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

  [[nodiscard]] std::string workload() const;
  /// For messages: "lmdb at disk, 256 lines a send".
  [[nodiscard]] std::string text() const;
};

/// What one run of it gave.
struct IngestMeasurement {
  double seconds = 0;                    ///< From accept until the last group is committed.
  double rate = 0;                       ///< Messages per second.
  double cpu_share = 0;                  ///< CPU time since it was ready, divided by `seconds`; 1 is one whole CPU.
  std::uint64_t rss_anon_max_bytes = 0;  ///< The most seen; looked at every few milliseconds.
  Usage usage;                           ///< Of the whole process, from start to end.
  std::string level;                     ///< The durability really given.
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
