// fault_server.hpp -- an HTTP/1 server in the test's own process that answers as badly as a test wants.
//
//   FaultServer server;
//   server.on("/cut", [](const Seen&) { return Reply{send(head(200, {{"Content-Length", "10"}}) + "half"), close()};
//   }); auto answer = session.get(server.url("/cut"));
//
// A route answers each request with steps: bytes to send, pauses, a stall, a close, a reset. Without a close the
// connection stays open for the next request.
//
// Threads: one of its own, on which routes are called; everything else is called on the test's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvingest::test {

/// A request as it came.
struct Seen {
  std::string method;
  std::string target;  ///< With the query.
  std::string path;
  std::map<std::string, std::string> headers;  ///< By lower-case name.
  std::string body;
  int connection = 0;  ///< From 1, in the order of connecting.
  int count = 0;       ///< Of this path, from 1.
  std::chrono::steady_clock::time_point at;

  [[nodiscard]] std::string header(const std::string& name) const;
};

struct Step {
  enum class What : std::uint8_t { send, wait, stall, close, reset };
  What what;
  std::string bytes;
  std::chrono::milliseconds time{0};
};
using Reply = std::vector<Step>;
using Route = std::function<Reply(const Seen&)>;
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] Step send(std::string bytes);
[[nodiscard]] Step wait(std::chrono::milliseconds time);
[[nodiscard]] Step stall();  ///< Until the peer goes.
[[nodiscard]] Step close();
[[nodiscard]] Step reset();

/// "HTTP/1.1 200 OK\r\nName: value\r\n...\r\n".
[[nodiscard]] std::string head(int status, const HeaderFields& headers = {});
/// A whole answer with its Content-Length.
[[nodiscard]] Reply answer(int status, std::string_view body, HeaderFields headers = {});
[[nodiscard]] std::string chunk(std::string_view bytes);
[[nodiscard]] std::string gzipped(std::string_view text);

class FaultServer {
 public:
  FaultServer();
  ~FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;

  /// What a path answers; without a route it is 404.
  void on(std::string path, Route route);
  [[nodiscard]] std::string origin() const;  ///< "http://127.0.0.1:40123"
  [[nodiscard]] std::string url(std::string_view target) const { return origin() + std::string(target); }
  /// The requests so far.
  [[nodiscard]] std::vector<Seen> seen() const;
  [[nodiscard]] int connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvingest::test
