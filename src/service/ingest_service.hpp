// ingest_service.hpp -- the service as one object: listeners, workers, committer and store, from start to drain.
//
// Threads of a running service:
//   main        run(): accepts connections, signals and timers; nothing of the feed itself
//   kv-feed-N   one for each worker (net/feed_worker.hpp), pinned: sockets, messages, records
//   kv-commit   groups, syncs and answers (service/committer.hpp)
//   kv-http     a few, where --http is given: pages for people and monitoring
//   kv-resp-N   Redis clients, and kvq through DIR/control.sock (net/resp_server.hpp)
//   kv-resp-aside  what takes long of what they ask
//   and those of the engine: a helper of mmap, RocksDB's background threads
//
// Lifetime: open() to run() to destruction, on one thread; stop() may be called on any thread.
// Errors:   open() fails with what is wrong with listeners or store; run() with what ended the service early.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/port_file.hpp"
#include "kvingest/engine.hpp"
#include "net/feed_options.hpp"
#include "net/feed_worker.hpp"
#include "net/listener.hpp"
#include "net/resp_server.hpp"
#include "net/status_server.hpp"
#include "record/agreed_columns.hpp"
#include "record/record_plan.hpp"
#include "service/admin.hpp"
#include "service/committer.hpp"
#include "service/record_pages.hpp"
#include "service/status_pages.hpp"

namespace kvingest {

struct ServiceOptions {
  StoreSpec spec;
  StoreOptions store;  ///< Its labels are the plan's.
  RecordPlan plan;
  CommitterOptions committer;
  net::FeedOptions feed;  ///< `plan` and the callbacks are the service's.
  std::vector<net::Endpoint> listen;
  std::vector<net::Endpoint> connect;
  std::optional<net::Endpoint> http;            ///< Serve the status page here.
  std::optional<net::Endpoint> resp;            ///< Serve Redis clients here.
  std::size_t resp_threads = 1;                 ///< Besides, they serve DIR/control.sock.
  std::size_t clients_max = 10'000;             ///< Further Redis clients are refused.
  std::filesystem::path token_file;             ///< Who may connect; empty: everybody.
  bool allow_flush = false;                     ///< FLUSHDB is served.
  SeqInKey seq_in_key;                          ///< Of the plan's key template.
  std::vector<std::optional<int>> worker_cpus;  ///< One worker each; nullopt: not pinned.
  std::size_t connections_max = 1024;           ///< Further producers are refused.
  std::uint64_t messages_max = 0;               ///< Stop after so many; 0: no limit.
  std::chrono::milliseconds exit_when_idle{0};  ///< Stop when nothing came for so long; 0: never.
  /// Called by run() when peers are being accepted.
  std::function<Result<void>(const std::vector<ListenerPlace>&)> ready;
  /// Called by run() when it begins to stop.
  std::function<void()> stopping;
  std::string durability;  ///< As asked, for people: "interval:1s".
};

/// Why open() failed, for the exit code: the listeners are checked before the store is touched.
enum class ServicePart : std::uint8_t { listener, store };

struct OpenFailure {
  ServicePart part = ServicePart::store;
  Error error;
};

/// What the service did, when it has ended.
struct ServiceReport {
  RunLedger ledger;
  Durability level = Durability::memory;
  double seconds = 0;  ///< From the first connection to the last commit.
};

class IngestService {
 public:
  static tl::expected<std::unique_ptr<IngestService>, OpenFailure> open(ServiceOptions options);
  ~IngestService();

  /// Serves until stop(), SIGTERM, SIGINT, or the feed's end; then drains, syncs and closes the store.
  /// Fails with: what the store failed with, and then the report still holds what is known.
  Result<void> run();

  /// Any thread.
  void stop();

  [[nodiscard]] const ServiceReport& report() const noexcept { return report_; }

 private:
  explicit IngestService(ServiceOptions options);

  Result<void> open_listeners();
  Result<void> check_store();
  Result<void> check_retention() const;
  void accept(net::StreamProtocol::socket socket, std::string peer);
  Result<void> start_workers();
  Result<void> announce();
  void start_pages();
  Result<void> start_resp();
  void open_control_socket();
  [[nodiscard]] net::RespOptions resp_options();
  void accept_client(net::StreamProtocol::socket socket, std::string peer, bool local);
  void serve_clients();
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] StatusLook look(bool for_status) const;
  void wire_callbacks();
  void begin_drain();
  void reload_at_hangup(asio::signal_set& hangup);
  void check_idle();
  void pull_ended();
  Result<void> finish();

  ServiceOptions options_;
  asio::io_context context_{1};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Committer> committer_;
  std::vector<std::unique_ptr<net::FeedWorker>> workers_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::unique_ptr<net::StatusServer> pages_;
  std::unique_ptr<net::Listener> resp_listener_;
  std::unique_ptr<net::Listener> control_listener_;
  std::optional<Admin> admin_;
  net::RespOptions resp_options_;
  std::unique_ptr<net::RespServer> resp_;
  ServiceFacts facts_;
  AgreedColumns agreed_columns_;
  net::TokenBook tokens_;
  std::optional<RecordPages> record_pages_;  // With --http.
  asio::steady_timer idle_check_;
  asio::steady_timer drain_deadline_;
  std::size_t next_worker_ = 0;
  std::size_t workers_running_ = 0;
  std::atomic<std::uint64_t> connections_refused_{0};
  std::size_t pulls_open_ = 0;
  bool draining_ = false;
  std::atomic<std::uint64_t> messages_taken_{0};
  std::atomic<std::int64_t> began_ns_{0};  // Of the steady clock, when the first connection was served; 0: none was.
  ServiceReport report_;
};

}  // namespace kvingest
