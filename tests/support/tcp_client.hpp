// tcp_client.hpp -- a TCP peer of the programs under test, and a listener for those that connect to us.
//
// Threads and errors: as in stream.hpp.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/stream.hpp"

namespace kvingest::test {

class TcpClient : public Stream {
 public:
  TcpClient() = default;
  /// Takes over a connected socket.
  explicit TcpClient(int fd) : Stream(fd) {}
  /// Connects to "HOST:PORT" (IPv4 address). Throws when it cannot.
  explicit TcpClient(std::string_view address, std::chrono::milliseconds bound = kWaitMax);

  /// Each send becomes a segment of its own.
  void no_delay();
  /// Bytes of the socket's receive buffer: small, and the sender is blocked early.
  void receive_buffer(int bytes);
  /// Half-close: the peer reads to an end and may still answer.
  void finish_sending();
  /// Closes with a reset instead of a proper end.
  void reset();
};

/// Sends `bytes` on a connection of its own, half-closes, and returns all that comes back.
std::string send_and_finish(std::string_view address, std::string_view bytes);

class TcpListener {
 public:
  /// Listens on a free port of 127.0.0.1, or on `port`.
  explicit TcpListener(int port = 0);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  [[nodiscard]] std::string address() const;  ///< "127.0.0.1:40123"
  [[nodiscard]] int port() const noexcept { return port_; }
  /// The next connection. Throws when none comes.
  TcpClient accept(std::chrono::milliseconds bound = kWaitMax);

 private:
  int fd_ = -1;
  int port_ = 0;
};

}  // namespace kvingest::test
