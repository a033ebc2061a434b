// status_server.hpp -- the pages for people and monitoring: /status, /metrics and /healthz over HTTP/1.1.
//
// Threads:  its own few, so that a slow page never touches the feed; the functions of StatusPages are called on them,
//           at any time between start() and stop(), several at once.
// Lifetime: what the functions refer to outlives stop().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kvingest/result.hpp"
#include "net/endpoint.hpp"
#include "net/tokens.hpp"

namespace kvingest::net {

struct StatusPages {
  struct Health {
    bool ok = false;
    std::string json;
  };
  std::function<std::string()> status;   ///< /status: one JSON object.
  std::function<std::string()> metrics;  ///< /metrics: Prometheus text format 0.0.4.
  std::function<Health()> health;        ///< /healthz: 200 or 503.
};

class StatusServer {
 public:
  /// Binds at once, so that a port in use is found before a store is opened.
  /// Fails with: busy (in use), io_error, invalid_argument (a Unix socket).
  static Result<std::unique_ptr<StatusServer>> open(const Endpoint& endpoint);
  ~StatusServer();

  /// `tokens`: who may look, with `Authorization: Bearer TOKEN`; health is for everybody. Null: everybody.
  void start(StatusPages pages, const TokenBook* tokens);
  void stop();

  /// The real address: "127.0.0.1:8080".
  [[nodiscard]] const std::string& address() const noexcept { return address_; }

 private:
  struct Server;

  StatusServer();

  std::unique_ptr<Server> server_;
  std::string address_;
};

}  // namespace kvingest::net
