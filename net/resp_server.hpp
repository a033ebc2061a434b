// resp_server.hpp -- serves Redis clients: a few workers, and what they share.
//
// Threads:  kv-resp-N, one for each worker, which share the clients; kv-resp-aside for what takes long. None of them is
//           a feed's. adopt, stored, drain and clients may be called on any thread.
// Lifetime: options and sink outlive it; the committer is stopped after join().
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/ingest.hpp"
#include "net/endpoint.hpp"
#include "net/resp_aside.hpp"
#include "net/resp_options.hpp"
#include "net/resp_scan.hpp"

namespace kvingest::net {

class RespWorker;

/// What a client is told that is not served.
inline constexpr std::string_view kTooManyClients = "-ERR max number of clients reached\r\n";

class RespServer {
 public:
  RespServer(const RespOptions& options, ParcelSink& sink);
  RespServer(const RespServer&) = delete;
  RespServer& operator=(const RespServer&) = delete;
  ~RespServer();

  void start(std::size_t workers);
  /// Serves an accepted socket; `local`: it came through control.sock.
  void adopt(StreamProtocol::socket socket, std::string peer, bool local);
  /// A group is in the store: wakes those who follow. Costs next to nothing while there are none.
  void stored();
  /// Answers what has been taken, and lets the clients go.
  void drain();
  void join();

  [[nodiscard]] std::size_t clients() const;
  [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }

 private:
  const RespOptions& options_;
  ParcelSink& sink_;
  ScanCursors cursors_;
  RespAside aside_;
  std::vector<std::unique_ptr<RespWorker>> workers_;
  std::atomic<std::uint64_t> last_id_{0};
};

}  // namespace kvingest::net
