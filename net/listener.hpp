// listener.hpp -- accepts connections on one address and passes each to whoever is to serve it.
//
// Threads:  one event loop's. Lifetime: stop() before the loop ends; a Unix socket's path is removed then.
// Errors:   open() says what is wrong with the address. While open, no descriptors left is survived: the peer gets a
//           refusal, and the log one line a minute.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "net/endpoint.hpp"

namespace kvingest::net {

class Listener {
 public:
  /// Takes an accepted socket and its peer's address; any socket it does not keep is closed.
  using Accept = std::function<void(StreamProtocol::socket socket, std::string peer)>;

  /// A peer was turned away because no descriptors are left.
  using Refused = std::function<void()>;

  Listener(asio::io_context& context, Accept accept, Refused refused);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  /// Binds and listens; peers are accepted from start() on.
  /// Fails with: invalid_argument (an unknown host), busy (the port is in use), io_error.
  /// `option` is for the messages: where another address is given.
  Result<void> open(const Endpoint& endpoint, std::string_view option = "--listen");
  void start();
  void stop();

  /// What a peer is told that is turned away because no descriptors are left; a line of the feed protocol by default.
  void refuse_with(std::string text) { refusal_ = std::move(text); }

  /// The real address: a port of 0 has become the one the system chose.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] bool local_only() const noexcept { return local_only_; }

 private:
  asio::awaitable<void> accept_all();
  void refuse_one();

  asio::io_context& context_;
  Accept accept_;
  Refused refused_;
  asio::basic_socket_acceptor<StreamProtocol> acceptor_;
  std::string address_;
  std::string unix_path_;
  std::string refusal_;
  bool local_only_ = true;
  int reserve_fd_ = -1;  // Given up for a moment to accept and refuse a peer when no descriptors are left.
};

/// Sends `text` to a peer that is not served; the caller closes the socket.
void refuse(StreamProtocol::socket& socket, std::string_view text);

/// Sends one line `!kv error code=... message="..." closing` to a peer that is not served; the caller closes the
/// socket.
void refuse(StreamProtocol::socket& socket, std::string_view code, std::string_view message);

}  // namespace kvingest::net
