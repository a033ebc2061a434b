// net_ways.hpp -- bytes over loopback between two threads of this process, in every way of receiving and throwing away,
// and as a stream of encoded values that are decoded where they arrive.
//
// Threads: each call starts a sender, pinned to the CPU of the feed, and receives on the calling thread, pinned to that
//          of the ingestion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/settings.hpp"
#include "kvingest/codec/integer_array.hpp"
#include "kvingest/result.hpp"

namespace kvingest::bench {

enum class ReceiveKind : std::uint8_t {
  receive,    ///< recv() into a buffer, blocking.
  low_water,  ///< The same, woken for 64 KiB at least.
  epoll,      ///< epoll_wait() and recv() until nothing is left.
  truncate,   ///< recv() with MSG_TRUNC: the bytes are not even copied.
  splice,     ///< splice() into /dev/null through a pipe.
  count,      ///< recv(), and its line ends counted.
};

struct ReceiveWay {
  std::string_view name;
  ReceiveKind kind = ReceiveKind::receive;
  std::size_t buffer_bytes = 0;
  bool is_local = false;  ///< A socket of the file system's kind (AF_UNIX) and not TCP.
};

[[nodiscard]] std::span<const ReceiveWay> receive_ways() noexcept;
/// What the others are measured against, by its name.
inline constexpr std::string_view kNetworkLimit = "low water, 256K";

/// Sends `bytes` bytes of lines and receives them all. Returns how many lines were counted; 0 where none are.
/// Fails with: io_error, corrupt (it received less or more).
[[nodiscard]] Result<std::uint64_t> send_and_discard(const ReceiveWay& way, std::uint64_t bytes,
                                                     const Placement& placement);

/// What a stream of values took.
struct StreamedValues {
  double seconds = 0;
  std::uint64_t bytes = 0;  ///< On the wire.
};

/// Where streamed values come from: value i.
using ValueAt = std::uint32_t (*)(std::uint64_t number);

/// Encodes `count` values in blocks, sends, receives and decodes them, and compares each block's sum.
/// Fails with: io_error, corrupt.
[[nodiscard]] Result<StreamedValues> stream_values(codec::Form form, ValueAt value_at, std::uint64_t count,
                                                   const Placement& placement);

}  // namespace kvingest::bench
