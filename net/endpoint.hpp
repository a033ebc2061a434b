// endpoint.hpp -- where to listen or connect: "HOST:PORT", "[V6]:PORT" or "unix:PATH".
//
// Threads: values and functions without state.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::net {

using StreamProtocol = asio::generic::stream_protocol;

struct Endpoint {
  std::string host;         ///< A name or numeric address; empty for a Unix socket.
  std::string port;         ///< Digits.
  std::string unix_path;    ///< Set for a Unix socket.
  bool owner_only = false;  ///< Of a Unix socket to listen on: this user alone may connect.

  [[nodiscard]] bool is_unix() const noexcept { return !unix_path.empty(); }
  /// As it was written: "127.0.0.1:5555".
  [[nodiscard]] std::string text() const;
};

/// Fails with: invalid_argument, naming the text and the form wanted.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

/// The addresses behind an endpoint. Fails with: invalid_argument (the name is not known).
[[nodiscard]] Result<std::vector<StreamProtocol::endpoint>> resolve(const Endpoint& endpoint);

/// Whether only this machine can reach it: a loopback address or a Unix socket.
[[nodiscard]] bool is_local(const StreamProtocol::endpoint& address) noexcept;

/// "127.0.0.1:40123", "[::1]:40123" or "unix:PATH".
[[nodiscard]] std::string to_text(const StreamProtocol::endpoint& address);

}  // namespace kvingest::net
