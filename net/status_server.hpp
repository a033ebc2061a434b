// status_server.hpp -- the pages for people and monitoring over HTTP/1.1: / (a page that shows all of it, net/page/),
// /status, /metrics and /healthz, and the records behind the page: /keys, /value and /series.
//
// What a web page of somebody else may do is nothing: answers carry no permission for other origins, and a request to a
// loopback address that names another host is refused, so that no name that is made to point here reads anything.
//
// Threads:  its own few, so that a slow page never touches the feed; the functions of StatusPages are called on them,
//           at any time between start() and stop(), several at once.
// Lifetime: what the functions refer to outlives stop().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "net/endpoint.hpp"
#include "net/tokens.hpp"

namespace kvingest::net {

/// The parameters of a request, decoded; of one that is given twice, the first.
using PageQuery = std::map<std::string, std::string, std::less<>>;

struct PageReply {
  int status = 200;
  std::string json;
};

/// One of the files that / is made of, compiled into the program.
struct PageAsset {
  std::string_view path;
  std::string_view type;
  std::string_view text;
};
[[nodiscard]] std::span<const PageAsset> page_assets() noexcept;

struct StatusPages {
  struct Health {
    bool ok = false;
    std::string json;
  };
  std::function<std::string()> status;   ///< /status: one JSON object.
  std::function<std::string()> metrics;  ///< /metrics: Prometheus text format 0.0.4.
  std::function<Health()> health;        ///< /healthz: 200 or 503.
  std::function<PageReply(const PageQuery&)> keys;
  std::function<PageReply(const PageQuery&)> value;
  std::function<PageReply(const PageQuery&)> series;
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
