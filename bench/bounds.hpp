// bounds.hpp -- what the ingestion is compared with: programs that do less. kvbench runs them as children of its own,
// in the way it runs kvingest, so that both are measured alike.
//
// Threads: each uses the calling thread only, pinned when asked to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "kvingest/result.hpp"

namespace kvingest::bench {

/// What one of them did.
struct BoundReport {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// How many bytes must wait before a receiver is woken. A receiver that is woken for each send is no limit: it drains
/// so fast that it sleeps after each, and the feed pays for waking it up.
inline constexpr int kDiscardLowWaterBytes = 64 * 1024;

/// Accepts one connection on 127.0.0.1, writes its place to `port_file`, receives to the end and counts the lines.
/// The clock runs from accept to the end of file. Fails with: io_error, invalid_argument (the CPU).
[[nodiscard]] Result<BoundReport> discard_feed(const std::filesystem::path& port_file, std::optional<int> cpu);

/// A record of `file` with a short message takes one slot of this size.
inline constexpr std::size_t kSeekWriteBytes = 64;

/// Writes `count` records of kSeekWriteBytes to `path`, one seek and one write for each.
/// Fails with: io_error, no_space, invalid_argument (the CPU).
[[nodiscard]] Result<BoundReport> seek_and_write(const std::filesystem::path& path, std::uint64_t count,
                                                 std::optional<int> cpu);

/// How many LFs are in [from, from + bytes), at about the speed of reading them.
[[nodiscard]] std::uint64_t count_line_ends(const char* from, std::size_t bytes) noexcept;

}  // namespace kvingest::bench
