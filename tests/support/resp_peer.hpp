// resp_peer.hpp -- a Redis client for tests: sends requests, and writes answers as short text.
//
//   RespPeer peer(service.address("resp"));
//   CHECK(peer.ask({"SET", "a", "1"}) == "+OK");
//   CHECK(peer.ask({"MGET", "a", "b"}) == "[\"1\" nil]");
//
// Threads and errors: as in stream.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tcp_client.hpp"

namespace kvingest::test {

/// As a client sends it: an array of bulk strings.
[[nodiscard]] std::string resp_request(const std::vector<std::string>& words);

class RespPeer {
 public:
  explicit RespPeer(std::string_view address) : stream_(address) {}
  /// Takes over a connected socket.
  explicit RespPeer(TcpClient stream) : stream_(std::move(stream)) {}

  [[nodiscard]] TcpClient& stream() noexcept { return stream_; }
  void send(const std::vector<std::string>& words) { stream_.send_all(resp_request(words)); }
  /// The next answer: +text, -text, 5, "bulk", nil, [a b], {k v}; throws when there is none.
  std::string answer(std::chrono::milliseconds bound = kWaitMax);
  std::string ask(const std::vector<std::string>& words) {
    send(words);
    return answer();
  }

 private:
  std::string line(std::chrono::milliseconds bound);

  TcpClient stream_;
};

/// Connects to a Unix socket; throws when it cannot.
[[nodiscard]] TcpClient connect_unix(const std::string& path);

}  // namespace kvingest::test
