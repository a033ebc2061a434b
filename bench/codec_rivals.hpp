// codec_rivals.hpp -- what arrays of varints are compared with: libraries that others use, where this build has them,
// and two loops that the project once tried and that brought nothing.
//
// Threads: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvingest::bench {

/// A way of writing and reading arrays of 32 bits.
struct CodecRival {
  std::string_view name;
  std::string_view missing;  ///< Why this build does not have it; empty: it has.
  /// Writes `values` to `to`, which has room for `room_bytes(count)`, and returns how many bytes that were.
  std::size_t (*encode)(std::span<const std::uint32_t> values, char* to);
  /// Reads `values.size()` values; false: they are malformed. nullptr: it only writes.
  bool (*decode)(std::string_view bytes, std::span<std::uint32_t> values);
};

[[nodiscard]] std::span<const CodecRival> codec_rivals() noexcept;

}  // namespace kvingest::bench
