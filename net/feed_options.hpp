// feed_options.hpp -- what all connections of a feed share. Constant while the service runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "net/tokens.hpp"
#include "record/agreed_columns.hpp"
#include "record/record_plan.hpp"

namespace kvingest::net {

enum class Framing : std::uint8_t {
  newline,  ///< LF behind each message.
  varint,   ///< Its length in front of each message, as a LEB128 varint.
};

struct FeedOptions {
  const RecordPlan* plan = nullptr;         ///< Outlives every worker, as does the next.
  AgreedColumns* agreed_columns = nullptr;  ///< Where the plan has a header.
  std::size_t line_bytes_max = std::size_t{1} << 20;
  std::size_t unfinished_bytes_max = std::size_t{256} << 20;  ///< Of all unfinished messages of one worker.
  Framing framing = Framing::newline;
  bool strict = false;                        ///< Close a connection at its first rejected message.
  std::chrono::milliseconds idle_timeout{0};  ///< Close a connection that sent nothing for so long; 0: never.
  std::string places;                         ///< For a peer on the wrong port: where the other protocols are served.
  const TokenBook* tokens = nullptr;          ///< Who may feed; null: everybody. Outlives every worker.
  bool control_lines = true;                  ///< false: `!kv` lines are data.
  std::string listen_stop_line;               ///< Ends the feed of an accepted connection; empty: none.
  std::string connect_stop_line;              ///< Ends a feed that is pulled; empty: none.
  std::chrono::milliseconds drain_timeout{5000};

  /// Asks for leave to take `messages` more; returns how many may be taken (--messages). Empty: all. Any thread.
  std::function<std::uint64_t(std::uint64_t messages)> take_leave;
  /// A connection begins to be served. Any worker's thread.
  std::function<void()> feed_began;
  /// A pulled feed has ended at its stop line. Any worker's thread.
  std::function<void()> pull_ended;
  /// A worker has drained; its thread is about to end. Its own thread.
  std::function<void()> worker_ended;
};

}  // namespace kvingest::net
