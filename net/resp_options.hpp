// resp_options.hpp -- what all Redis clients share. Constant while the service runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/store.hpp"
#include "net/resp_writer.hpp"
#include "net/tokens.hpp"
#include "record/seq_in_key.hpp"

namespace kvingest::net {

struct RespOptions {
  const Store* store = nullptr;       ///< Outlives every worker.
  bool ordered = true;                ///< The store has an order to scan in.
  SeqInKey seq_in_key;                ///< Keys that hold an arrival number are the feed's: they are not set here.
  bool seq_keys = false;              ///< Keys are arrival numbers alone, written as decimal numbers in ranges.
  const TokenBook* tokens = nullptr;  ///< Who may connect; null: everybody.
  std::string writes_refused;         ///< Why nothing may be written here; empty: it may.
  bool allow_flush = false;           ///< --allow-flush.
  std::size_t memory_max = std::size_t{256} << 20;  ///< Of all unfinished requests and unread answers of one worker.
  std::chrono::milliseconds drain_timeout{5000};
  /// For CONFIG GET and INFO, by name.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::pair<std::string, std::string>> facts;

  /// Runs KV.ADMIN's words, and answers all but a failure; on a thread of its own, one call at a time. `local`: the
  /// peer came through control.sock.
  std::function<Result<void>(const std::vector<std::string>& words, bool local, RespWriter& to)> admin;
  /// Clients that are connected to all workers.
  std::function<std::size_t()> clients;
  /// A client writes for the first time. Any worker's thread.
  std::function<void()> writing_began;
  /// A worker has drained; its thread is about to end. Its own thread.
  std::function<void()> worker_ended;
};

}  // namespace kvingest::net
