// metrics.hpp -- what the service measures, in Prometheus' text format.
//
// Counters and gauges are read from the ledger when somebody asks; only groups are observed as they are committed.
//
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/store.hpp"
#include "service/run_ledger.hpp"

namespace kvingest {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  void group_committed(std::uint64_t messages, std::uint64_t bytes, std::chrono::nanoseconds took, bool synced);
  void store_synced(std::chrono::nanoseconds took);

  /// How long writes and syncs took so far: counts up to each bound, the last for all that took longer.
  struct Latency {
    std::string name;  ///< "commit_synced", "commit_unsynced", "sync".
    std::uint64_t count = 0;
    double seconds = 0;
    std::vector<std::pair<double, std::uint64_t>> up_to_seconds;  ///< Bounds and cumulated counts.
  };
  [[nodiscard]] std::vector<Latency> latencies() const;

  /// What the text shows beside the histograms.
  struct Look {
    RunLedger ledger;
    std::uint64_t queue_bytes = 0;
    std::string paused;  ///< "no_space", "store_slow"; empty while reading goes on.
    std::size_t connections = 0;
    std::uint64_t connections_refused = 0;
    const Store* store = nullptr;
  };
  [[nodiscard]] std::string text(const Look& look) const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace kvingest
