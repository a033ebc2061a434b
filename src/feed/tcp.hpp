// tcp.hpp -- blocking TCP sockets for the programs that make load: kvfeed and kvbench. (kvingest's own sockets are in
// net/.)
//
// Every blocking call wakes up several times a second, so that an interrupt is seen (base/interrupt.hpp) and progress
// can be shown while a peer takes its time.
//
// Threads:  one per object.
// Lifetime: a socket is closed with its object.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kvingest/function_ref.hpp"
#include "kvingest/result.hpp"

namespace kvingest::feed {

/// How long a blocking call blocks at most before it looks up.
inline constexpr std::chrono::milliseconds kTick{250};

/// `HOST:PORT` taken apart; an IPv6 address stands in brackets.
struct Address {
  std::string host;
  std::string port;

  /// Fails with: invalid_argument.
  static Result<Address> parse(std::string_view text);
  /// As parse() reads it.
  [[nodiscard]] std::string text() const;
};

/// Owns a socket. Moves, never copies.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

struct Received {
  std::size_t bytes = 0;
  bool ended = false;  ///< The peer has closed its side, and nothing more comes.
};

/// A connection.
class Stream {
 public:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  /// Fails with: io_error, invalid_argument (no such host).
  static Result<Stream> connect(const Address& to);

  /// Sends without waiting to fill a packet.
  void send_at_once() const;

  /// Sends some of `bytes` and returns how many; 0 when the peer took none for a tick.
  /// Fails with: io_error (reset by the peer, and the like).
  Result<std::size_t> send_some(std::string_view bytes) const;
  /// Ends our side; the peer reads its end of file behind the last byte.
  Result<void> half_close() const;
  /// Receives up to `bytes`, or nothing when none came for a tick. Fails with: io_error.
  Result<Received> receive(char* to, std::size_t bytes) const;
  /// How many bytes the peer's kernel has not yet taken.
  [[nodiscard]] std::uint64_t unsent_bytes() const;
  /// Closes so that the peer sees a broken connection, not a proper end.
  void reset() noexcept;

  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }

 private:
  Socket socket_;
};

/// A listening socket. Listening again on a port right after a crash works.
class Listener {
 public:
  /// Port 0 takes a free one. Fails with: io_error (in use, not permitted), invalid_argument (no such host).
  static Result<Listener> listen(const Address& at);

  /// The address with its real port.
  [[nodiscard]] Result<std::string> address() const;
  /// Waits for a client for a tick; nothing when none came. Fails with: io_error.
  Result<std::optional<Stream>> accept() const;

  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }

 private:
  explicit Listener(Socket socket) : socket_(std::move(socket)) {}

  Socket socket_;
};

}  // namespace kvingest::feed
