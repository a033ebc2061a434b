// stream.hpp -- bytes over a descriptor (pipe or socket) with a bound on every wait.
//
// Threads: one at a time, but one thread may send while another reads.
// Errors:  what a test cannot go on from (a wait that ran out, a broken descriptor) is thrown as std::runtime_error,
//          which Catch2 reports with its text; the end of the stream is an answer.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace kvingest::test {

/// Long enough for a loaded machine, short enough to see a hang in a test run.
inline constexpr std::chrono::milliseconds kWaitMax{60'000};

/// Throws std::runtime_error with what was tried and the text of errno.
[[noreturn]] void give_up(std::string_view what);

class Stream {
 public:
  Stream() = default;
  /// Takes over `fd` and makes it non-blocking.
  explicit Stream(int fd);
  Stream(Stream&& other) noexcept : fd_(std::exchange(other.fd_, -1)), unread_(std::move(other.unread_)) {}
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() { close(); }

  [[nodiscard]] int fd() const noexcept { return fd_; }
  void close() noexcept;

  /// Throws when the peer is gone.
  void send_all(std::string_view bytes, std::chrono::milliseconds bound = kWaitMax);
  /// Sends until `bytes` is used up, nothing could be sent for `patience`, or the peer is gone. Returns how many went.
  std::size_t send_some(std::string_view bytes, std::chrono::milliseconds patience);

  /// The next line without its LF; nullopt at the end of the stream (a last line without LF is dropped) or a reset.
  [[nodiscard]] std::optional<std::string> read_line(std::chrono::milliseconds bound = kWaitMax);
  /// What comes until the end of the stream or a reset.
  [[nodiscard]] std::string read_to_end(std::chrono::milliseconds bound = kWaitMax);
  /// Exactly so many bytes; throws when the stream ends before.
  [[nodiscard]] std::string read_exactly(std::size_t bytes, std::chrono::milliseconds bound = kWaitMax);
  /// What came, or nullopt when nothing came within `bound`; empty at the end of the stream.
  [[nodiscard]] std::optional<std::string> read_some(std::chrono::milliseconds bound);

 private:
  bool wait_for(short events, std::chrono::milliseconds bound) const;
  bool fill(std::chrono::milliseconds bound);  // false at the end of the stream

  int fd_ = -1;
  std::string unread_;
};

}  // namespace kvingest::test
