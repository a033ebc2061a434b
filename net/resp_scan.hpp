// resp_scan.hpp -- SCAN: the pattern of MATCH, and cursors.
//
// Redis' cursors are numbers, and a client may keep one for as long as it likes. Here a cursor is 52 bits (what every
// client language holds exactly) of a hash of the last key that was given out, and the iteration goes on behind that
// key: what is in the store from the first call to the last is given out, whatever is written meanwhile. The keys of
// recent cursors are remembered. A cursor that is not, as after a restart, is found again by looking through the keys,
// and if its key is gone, the iteration begins anew: a key may be given out twice, as with Redis, but none is left out.
//
// Threads: any; the functions have no state, the class has a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kvingest::net {

/// Whether `text` is what `pattern` says: ? one byte, * any number, [a-c] [^x] one of a set, \ the next byte itself.
/// Its time is bounded by the product of the two lengths.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text) noexcept;

/// The bytes that everything begins with that `pattern` matches.
[[nodiscard]] std::string glob_prefix(std::string_view pattern);

/// The cursor behind `key`; never 0, which is the beginning and the end.
[[nodiscard]] std::uint64_t cursor_of(std::string_view key) noexcept;

class ScanCursors {
 public:
  /// The key of a cursor that was given out lately.
  [[nodiscard]] std::optional<std::string> find(std::uint64_t cursor) const;
  /// Remembers it; returns its cursor.
  std::uint64_t keep(std::string_view key);

 private:
  static constexpr std::size_t kKeptMax = 16'384;  // Up to 8 MiB of keys.

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> keys_;
  std::deque<std::uint64_t> order_;  // Oldest first.
};

}  // namespace kvingest::net
