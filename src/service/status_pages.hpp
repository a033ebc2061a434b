// status_pages.hpp -- what /status and /healthz say.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/store.hpp"
#include "service/metrics.hpp"
#include "service/run_ledger.hpp"

namespace kvingest {

/// What the pages show beside the ledger; constant while the service runs.
struct ServiceFacts {
  std::string store;       ///< "lmdb".
  std::string dir;         ///< Empty for engines that keep nothing.
  std::string durability;  ///< As asked: "interval:1s".
  Durability level = Durability::memory;
  bool persistent = true;
  std::chrono::steady_clock::time_point started{};
  std::string format;       ///< Of messages: "csv".
  std::string key;          ///< The template of keys.
  bool seq_keys = false;    ///< Keys are arrival numbers.
  bool has_fields = false;  ///< Values are messages whose fields have names.
};

struct StatusLook {
  RunLedger ledger;
  std::uint64_t queue_bytes = 0;
  std::string paused;       ///< "no_space", "store_slow"; empty while reading goes on.
  std::string paused_text;  ///< The store's sentence; empty while commits go on.
  std::chrono::steady_clock::time_point paused_since{};
  bool failed = false;
  std::size_t connections = 0;
  std::uint64_t connections_refused = 0;
  std::vector<std::string> columns;                          ///< Of csv, as far as known.
  std::vector<Metrics::Latency> latencies;                   ///< Of /status only.
  std::vector<std::pair<std::string, std::uint64_t>> stats;  ///< What the engine says of itself; of /status only.
  std::optional<std::map<std::string, SourceRecord, std::less<>>> sources;  ///< Nothing: not to be had just now.
};

[[nodiscard]] std::string status_json(const ServiceFacts& facts, const StatusLook& look);

/// Healthy is a service whose store takes writes. Also says how old the last durable commit is.
[[nodiscard]] bool is_healthy(const StatusLook& look) noexcept;
[[nodiscard]] std::string health_json(const StatusLook& look);

}  // namespace kvingest
