// The part of the service that serves Redis clients.
#include <unistd.h>

#include "base/log.hpp"
#include "service/ingest_service.hpp"
#include "storage/store_directory.hpp"

namespace kvingest {
namespace {

/// As Redis says how often it syncs.
std::string_view fsync_word(Durability level, bool at_intervals) {
  if (level == Durability::disk) return "always";
  return at_intervals ? "everysec" : "no";
}

/// Why nothing may be written over RESP; empty: it may.
std::string why_read_only(const ServiceOptions& options) {
  if (!options.committer.retention.enabled()) return {};
  return "this store drops its oldest arrivals (--retain-bytes, --retain-age), which it finds by their numbers alone, "
         "so nothing else is written to it";
}

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

}  // namespace

net::RespOptions IngestService::resp_options() {
  net::RespOptions resp;
  resp.store = store_.get();
  resp.ordered = store_->capabilities().ordered;
  resp.seq_in_key = options_.seq_in_key;
  resp.seq_keys = options_.plan.key().is_seq_alone();
  resp.writes_refused = why_read_only(options_);
  resp.tokens = options_.token_file.empty() ? nullptr : &tokens_;
  resp.allow_flush = options_.allow_flush;
  resp.drain_timeout = options_.feed.drain_timeout;
  const bool persistent = committer_->persistent();
  const std::string dir = options_.spec.engine->persistent ? options_.store.dir.native() : std::string();
  resp.settings = {
      {"appendfsync", std::string(fsync_word(committer_->level(), options_.committer.sync_interval.count() > 0))},
      {"appendonly", persistent ? "yes" : "no"},
      {"databases", "1"},
      {"dir", dir},
      {"durability", options_.durability},
      {"maxclients", std::to_string(options_.clients_max)},
      {"maxmemory", "0"},
      {"proto-max-bulk-len", std::to_string(kValueBytesMax)},
      {"save", ""},
      {"store", std::string(options_.spec.engine->name)},
      {"timeout", "0"}};
  resp.facts = {{"kvingest_store", std::string(options_.spec.engine->name)},
                {"kvingest_durability", options_.durability},
                {"kvingest_level", std::string(to_string(committer_->level()))},
                {"kvingest_dir", dir},
                {"process_id", std::to_string(::getpid())},
                {"tcp_port", resp_listener_ ? port_of(resp_listener_->address()) : "0"}};
  resp.clients = [this] { return resp_->clients(); };
  resp.writing_began = options_.feed.feed_began;
  resp.worker_ended = options_.feed.worker_ended;
  return resp;
}

Result<void> IngestService::start_resp() {
  Marker marker{.engine = std::string(options_.spec.engine->name), .labels = options_.store.labels};
  if (options_.spec.engine->persistent) {
    auto read = read_marker(options_.store.dir);
    KV_TRY(read);
    marker = std::move(*read);
  }
  admin_.emplace(*store_, *committer_, std::move(marker));
  resp_options_ = resp_options();
  resp_options_.admin = [this](const std::vector<std::string>& words, bool local, net::RespWriter& to) {
    return admin_->run(words, local, to);
  };
  resp_ = std::make_unique<net::RespServer>(resp_options_, *committer_);
  const std::size_t threads = options_.resp ? options_.resp_threads : 1;
  resp_->start(threads);
  workers_running_ += threads;
  return {};
}

/// kvq asks there for what it cannot read by itself. A service that cannot have the socket serves all the same.
void IngestService::open_control_socket() {
  if (!options_.spec.engine->persistent) return;
  auto listener = std::make_unique<net::Listener>(
      context_,
      [this](net::StreamProtocol::socket socket, std::string peer) {
        accept_client(std::move(socket), std::move(peer), true);
      },
      [this] { ++connections_refused_; });
  auto endpoint = net::parse_endpoint("unix:" + (options_.store.dir / kControlSocketName).native());
  if (endpoint) endpoint->owner_only = true;
  const auto opened = endpoint ? listener->open(*endpoint, "--dir") : Result<void>(tl::unexpected(endpoint.error()));
  if (!opened) {
    log_warning("kvq cannot ask this service by its directory: {}", opened.error().text);
    return;
  }
  listener->refuse_with(std::string(net::kTooManyClients));
  control_listener_ = std::move(listener);
}

void IngestService::serve_clients() {
  open_control_socket();
  if (resp_listener_) resp_listener_->start();
  if (control_listener_) control_listener_->start();
}

void IngestService::accept_client(net::StreamProtocol::socket socket, std::string peer, bool local) {
  if (resp_->clients() >= options_.clients_max) {
    ++connections_refused_;
    net::refuse(socket, net::kTooManyClients);
    return;
  }
  resp_->adopt(std::move(socket), std::move(peer), local);
}

}  // namespace kvingest
