// line_source.hpp -- what kvfeed sends: numbered messages, synthetic trades or a file, as lines that end with LF.
//
// Threads:  one.
// Lifetime: a chunk is valid until the next call of next().
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::feed {

/// Bytes to send. A line longer than a chunk comes in several; its LF is in the last of them.
struct Chunk {
  std::string_view bytes;   ///< Empty: there is no more.
  std::uint64_t lines = 0;  ///< How many LFs are in `bytes`.
};

/// About how much a chunk holds at most: in the processor's cache, and few enough to be one send.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

class LineSource {
 public:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  virtual ~LineSource() = default;

  /// At most `lines_max` (from 1) more lines. Fails with: io_error.
  virtual Result<Chunk> next(std::uint64_t lines_max) = 0;
};

/// What becomes of a data line that a kvingest would take for a control line or an escaped one, `!kv sync`.
enum class ControlLike : std::uint8_t {
  escape,  ///< One more `!` goes in front, which the other side takes off again (net/PROTOCOL.md).
  keep,    ///< It is sent as it is: the other side knows no control lines.
};

/// Whether `line` begins as a control line does: one or more `!`, then `kv `. Nothing: it ends too early to tell.
[[nodiscard]] std::optional<bool> looks_like_control(std::string_view line);

/// `message` as many times as `count` says, with every `{n}` in it replaced by the number of the line, from 0.
[[nodiscard]] std::unique_ptr<LineSource> numbered_lines(std::string_view message, std::uint64_t count,
                                                         ControlLike control_like = ControlLike::escape);

/// `count` synthetic trades, `symbol,ts_ns,price,size`: some symbols trade often and most seldom, prices walk at
/// random, times rise strictly. The same seed gives the same trades, another seed those of another day.
[[nodiscard]] std::unique_ptr<LineSource> trade_lines(std::uint64_t seed, std::uint64_t count);

/// The first `count` lines of a file, `-` being stdin; each chunk is what one read gave, so that a pipe's lines go on
/// at once. A last line without LF gets one. Fails with: io_error.
[[nodiscard]] Result<std::unique_ptr<LineSource>> file_lines(
    const std::filesystem::path& path, std::uint64_t count = std::numeric_limits<std::uint64_t>::max(),
    ControlLike control_like = ControlLike::escape);

}  // namespace kvingest::feed
