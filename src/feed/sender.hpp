// sender.hpp -- sends the lines of a source at the pace asked for, and ends the connection so that nothing is lost.
//
// Threads: one.
// Errors:  a failed send or receive is io_error; what was sent until then is in the report. An interrupt is no error:
//          the functions return early and `interrupted()` says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "base/progress.hpp"
#include "feed/line_source.hpp"
#include "feed/tcp.hpp"
#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"

namespace kvingest::feed {

struct Pace {
  std::uint64_t batch_lines = 256;        ///< Lines a send.
  std::chrono::microseconds interval{0};  ///< Sleep after each batch.
  /// Open loop: line n goes at n / rate seconds from the start, or at once when that is past. 0: as the peer takes
  /// them.
  std::uint64_t lines_per_second = 0;
};

/// What the peer's kernel was given.
struct Sent {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  bool in_line = false;  ///< The last line is not complete.
};

/// Told after each send: how many lines have gone, and when the first of this send's lines was meant to go.
using BatchSent = FunctionRef<void(std::uint64_t lines_sent, std::chrono::steady_clock::time_point due)>;

/// Sends until the source ends or an interrupt; where there are several connections, a batch to each in turn.
Result<void> send_lines(std::span<Stream> to, LineSource& source, const Pace& pace, Sent& sent, Progress& progress,
                        BatchSent on_batch);
Result<void> send_lines(std::span<Stream> to, LineSource& source, const Pace& pace, Sent& sent, Progress& progress);

/// Sends the line that ends a served feed; it is not counted.
Result<void> send_stop(Stream& to, std::string_view line);

/// What the peer said before it closed its side.
struct Farewell {
  bool closed = false;  ///< false: an interrupt came first.
  /// The answers in it that report an error, a line each, up to 4 KiB.
  std::string errors;
};

/// Our side being closed, reads until the peer closes its own: kvingest does so when every line is durable.
Result<Farewell> finish_push(Stream& with, const Sent& sent, Progress& progress);

/// Closes our side and waits until the peer's kernel has taken every byte and, for a moment, for the peer's close.
Result<void> finish_serving(Stream& with, const Sent& sent, Progress& progress);

}  // namespace kvingest::feed
