// run_ledger.hpp -- what happened since the service started, as of one look.
#pragma once

#include <chrono>
#include <cstdint>

#include "kvingest/ledger.hpp"

namespace kvingest {

/// Sequence numbers: up to which record what holds.
struct Watermarks {
  std::uint64_t stored = 0;   ///< Visible to readers.
  std::uint64_t durable = 0;  ///< Survives what the durability names.
  std::uint64_t on_disk = 0;  ///< Survives a power cut.
};

/// received = stored + rejected + blank + duplicate + pending, at every look.
struct RunLedger {
  Tally tally;
  std::uint64_t pending = 0;  ///< Received and not yet decided.
  std::uint64_t bytes = 0;
  std::uint64_t unterminated = 0;  ///< Last lines without LF of connections that closed properly: stored as any other.
  std::uint64_t expired = 0;       ///< Records dropped by --retain-bytes and --retain-age.
  Watermarks watermarks;
  std::uint64_t first_seq = 0;  ///< The store's last number before this run.
  std::chrono::steady_clock::time_point last_commit{};
  std::chrono::steady_clock::time_point unsynced_since{};  ///< Since when `stored` is above `on_disk`.

  /// Records that a power cut at this moment would lose. 0 for engines that keep nothing: all would go.
  [[nodiscard]] std::uint64_t loss_records() const noexcept { return watermarks.stored - watermarks.on_disk; }
  /// How old the oldest of them is.
  [[nodiscard]] std::chrono::nanoseconds loss_age(std::chrono::steady_clock::time_point now) const noexcept {
    return loss_records() > 0 ? std::chrono::nanoseconds(now - unsynced_since) : std::chrono::nanoseconds(0);
  }
};

}  // namespace kvingest
