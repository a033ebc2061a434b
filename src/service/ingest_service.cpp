#include "service/ingest_service.hpp"

#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <csignal>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "kvingest/ledger.hpp"
#include "service/store_columns.hpp"
#include "storage/store_directory.hpp"

namespace kvingest {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

tl::expected<std::unique_ptr<IngestService>, OpenFailure> IngestService::open(ServiceOptions options) {
  std::unique_ptr<IngestService> service(new IngestService(std::move(options)));
  if (auto opened = service->open_listeners(); !opened) {
    return tl::unexpected(OpenFailure{ServicePart::listener, std::move(opened).error()});
  }
  auto store = open_store(service->options_.spec, service->options_.store);
  if (!store) return tl::unexpected(OpenFailure{ServicePart::store, std::move(store).error()});
  service->store_ = std::move(*store);
  if (auto checked = service->check_store(); !checked) {
    return tl::unexpected(OpenFailure{ServicePart::store, std::move(checked).error()});
  }
  return service;
}

IngestService::IngestService(ServiceOptions options)
    : options_(std::move(options)), idle_check_(context_), drain_deadline_(context_) {
  wire_callbacks();
}

IngestService::~IngestService() = default;

void IngestService::wire_callbacks() {
  options_.feed.plan = &options_.plan;
  options_.feed.agreed_columns = &agreed_columns_;
  options_.committer.store_failed = [this](const Error&) { stop(); };
  options_.committer.stored = [this] { resp_->stored(); };
  options_.feed.pull_ended = [this] { asio::post(context_, [this] { pull_ended(); }); };
  options_.feed.worker_ended = [this] {
    asio::post(context_, [this] {
      if (--workers_running_ == 0) context_.stop();
    });
  };
  options_.feed.feed_began = [this] {
    std::int64_t none = 0;
    began_ns_.compare_exchange_strong(none, Clock::now().time_since_epoch().count());
  };
  if (options_.messages_max == 0) return;
  options_.feed.take_leave = [this](std::uint64_t messages) -> std::uint64_t {
    const std::uint64_t taken = messages_taken_.fetch_add(messages);
    if (taken + messages >= options_.messages_max) stop();
    return taken < options_.messages_max ? messages : 0;
  };
}

Result<void> IngestService::open_listeners() {
  if (!options_.token_file.empty()) {
    KV_TRY(tokens_.load(options_.token_file));
    options_.feed.tokens = &tokens_;
  }
  for (const net::Endpoint& endpoint : options_.listen) {
    listeners_.push_back(std::make_unique<net::Listener>(
        context_,
        [this](net::StreamProtocol::socket socket, std::string peer) { accept(std::move(socket), std::move(peer)); },
        [this] { ++connections_refused_; }));
    KV_TRY(listeners_.back()->open(endpoint));
  }
  if (options_.resp) {
    resp_listener_ = std::make_unique<net::Listener>(
        context_,
        [this](net::StreamProtocol::socket socket, std::string peer) {
          accept_client(std::move(socket), std::move(peer), false);
        },
        [this] { ++connections_refused_; });
    KV_TRY(resp_listener_->open(*options_.resp, "--resp"));
    resp_listener_->refuse_with(std::string(net::kTooManyClients));
  }
  if (!options_.http) return {};
  auto pages = net::StatusServer::open(*options_.http);
  KV_TRY(pages);
  pages_ = std::move(*pages);
  return {};
}

/// Keys of another template may stand anywhere in the order, and what looks like a number in them is none.
Result<void> IngestService::check_retention() const {
  if (!options_.committer.retention.enabled() || !options_.spec.engine->persistent) return {};
  const auto marker = read_marker(options_.store.dir);
  KV_TRY(marker);
  const auto before = marker->labels.find("key" + std::string(kReplacedLabelSuffix));
  if (before == marker->labels.end()) return {};
  return fail(Code::invalid_argument,
              "{} has keys of several templates (before --force-template it was '{}'), so --retain-bytes and "
              "--retain-age cannot find the oldest records; leave them out, or choose another directory",
              options_.store.dir.native(), before->second);
}

/// What the store holds may forbid to feed it.
Result<void> IngestService::check_store() {
  const auto unfinished = store_->get(Space::meta, kMetaConversion, [](std::string_view) {});
  KV_TRY(unfinished);
  if (*unfinished) {
    return fail(Code::invalid_argument,
                "{} is an unfinished conversion: run kvq convert again to complete it, or choose another directory",
                options_.store.dir.native());
  }
  KV_TRY(check_retention());
  auto columns = settle_columns(*store_, options_.plan, options_.store);
  KV_TRY(columns);
  agreed_columns_.set(std::move(*columns));
  return {};
}

std::size_t IngestService::connections() const {
  std::size_t count = 0;
  for (const auto& worker : workers_) count += worker->connections();
  return count;
}

void IngestService::accept(net::StreamProtocol::socket socket, std::string peer) {
  if (connections() >= options_.connections_max) {
    ++connections_refused_;
    net::refuse(socket, "too_many_connections", "try again later, or raise --max-connections");
    return;
  }
  workers_[next_worker_++ % workers_.size()]->adopt(std::move(socket), std::move(peer));
}

Result<void> IngestService::start_workers() {
  auto committer = Committer::start(*store_, options_.committer);
  KV_TRY(committer);
  committer_ = std::move(*committer);
  for (const std::optional<int>& cpu : options_.worker_cpus) {
    auto worker = std::make_unique<net::FeedWorker>(static_cast<int>(workers_.size()), options_.feed, *committer_);
    KV_TRY(worker->start(cpu));
    workers_.push_back(std::move(worker));
    ++workers_running_;
  }
  return start_resp();
}

Result<void> IngestService::run() {
  asio::signal_set signals(context_, SIGINT, SIGTERM);
  signals.async_wait([this, &signals](const asio::error_code& error, int) {
    if (error) return;
    log_info("stopping: producers have {} to take their answers and leave; a second signal ends at once",
             format_duration(options_.feed.drain_timeout));
    begin_drain();
    asio::error_code ignored;
    signals.clear(ignored);  // From now on a signal does what it does by default.
  });
  asio::signal_set hangup(context_, SIGHUP);
  reload_at_hangup(hangup);
  Result<void> outcome = start_workers();
  if (outcome) outcome = announce();
  if (outcome) {
    for (const auto& listener : listeners_) listener->start();
    serve_clients();
    for (const net::Endpoint& from : options_.connect) {
      workers_[next_worker_++ % workers_.size()]->pull(from);
      ++pulls_open_;
    }
    check_idle();
  } else {
    begin_drain();
  }
  if (workers_running_ > 0) context_.run();
  const Result<void> finished = finish();
  return outcome ? finished : outcome;
}

/// A closed terminal sends it, too, and is no reason to stop.
void IngestService::reload_at_hangup(asio::signal_set& hangup) {
  hangup.async_wait([this, &hangup](const asio::error_code& error, int) {
    if (error) return;
    if (!options_.token_file.empty()) {
      const auto loaded = tokens_.load(options_.token_file);
      if (loaded) log_info("{} tokens are valid from now on; who has connected stays", tokens_.size());
      if (!loaded) log_error("the tokens stay as they were: {}", loaded.error().text);
    }
    reload_at_hangup(hangup);
  });
}

/// Says where everything is served, when it is.
Result<void> IngestService::announce() {
  start_pages();
  if (!options_.ready) return {};
  std::vector<ListenerPlace> places;
  for (const auto& listener : listeners_) places.push_back({"feed", listener->address()});
  if (resp_listener_) places.push_back({"resp", resp_listener_->address()});
  if (pages_) places.push_back({"http", pages_->address()});
  return options_.ready(places);
}

void IngestService::start_pages() {
  facts_ = {.store = std::string(options_.spec.engine->name),
            .dir = options_.spec.engine->persistent ? options_.store.dir.native() : std::string(),
            .durability = options_.durability,
            .level = committer_->level(),
            .persistent = committer_->persistent(),
            .started = Clock::now(),
            .format = std::string(to_string(options_.plan.format())),
            .key = options_.plan.key().text(),
            .seq_keys = options_.plan.key().is_seq_alone(),
            .has_fields = options_.plan.has_fields()};
  if (!pages_) return;
  record_pages_.emplace(*store_, options_.plan, agreed_columns_);
  pages_->start({.status = [this] { return status_json(facts_, look(true)); },
                 .metrics =
                     [this] {
                       const StatusLook now = look(false);
                       return committer_->metrics().text({.ledger = now.ledger,
                                                          .queue_bytes = now.queue_bytes,
                                                          .paused = now.paused,
                                                          .connections = now.connections,
                                                          .connections_refused = now.connections_refused,
                                                          .store = store_.get()});
                     },
                 .health =
                     [this] {
                       const StatusLook now = look(false);
                       return net::StatusPages::Health{is_healthy(now), health_json(now)};
                     },
                 .keys = [this](const net::PageQuery& query) { return record_pages_->keys(query); },
                 .value = [this](const net::PageQuery& query) { return record_pages_->value(query); },
                 .series = [this](const net::PageQuery& query) { return record_pages_->series(query); }},
                options_.feed.tokens);
}

StatusLook IngestService::look(bool for_status) const {
  constexpr std::chrono::milliseconds kPatience{100};  // A page must not hang with the disk.
  const FeedStatus status = committer_->status();
  StatusLook now{.ledger = committer_->ledger(),
                 .queue_bytes = status.queue_bytes,
                 .paused = status.paused,
                 .paused_text = committer_->paused(),
                 .paused_since = status.paused_since,
                 .failed = committer_->failed(),
                 .connections = connections(),
                 .connections_refused = connections_refused_};
  if (!for_status) return now;
  now.columns = agreed_columns_.columns();
  now.latencies = committer_->metrics().latencies();
  store_->stats([&now](std::string_view name, std::uint64_t value) { now.stats.emplace_back(name, value); });
  now.sources = committer_->sources(kPatience);
  return now;
}

void IngestService::stop() {
  asio::post(context_, [this] { begin_drain(); });
}

void IngestService::begin_drain() {
  if (draining_) return;
  draining_ = true;
  if (options_.stopping) options_.stopping();
  idle_check_.cancel();
  for (const auto& listener : listeners_) listener->stop();
  if (resp_listener_) resp_listener_->stop();
  if (control_listener_) control_listener_->stop();
  for (const auto& worker : workers_) worker->drain();
  if (resp_) resp_->drain();
  // A store that takes no writes must not keep the process for ever.
  drain_deadline_.expires_after(options_.feed.drain_timeout);
  drain_deadline_.async_wait([this](const asio::error_code& error) {
    if (!error && committer_) committer_->give_up_refused();
  });
}

void IngestService::check_idle() {
  if (options_.exit_when_idle.count() == 0 || draining_) return;
  idle_check_.expires_after(options_.exit_when_idle);
  idle_check_.async_wait([this, before = committer_->ledger().bytes](const asio::error_code& error) {
    if (error) return;
    committer_->ledger().bytes == before ? begin_drain() : check_idle();
  });
}

void IngestService::pull_ended() {
  if (--pulls_open_ == 0 && listeners_.empty()) begin_drain();
}

Result<void> IngestService::finish() {
  for (const auto& worker : workers_) worker->join();
  if (resp_) resp_->join();
  if (pages_) pages_->stop();
  Result<void> committed = committer_ ? committer_->stop() : Result<void>();
  if (committer_) {
    report_.ledger = committer_->ledger();
    report_.level = committer_->level();
    const Clock::time_point began{Clock::duration(began_ns_.load())};
    if (report_.ledger.last_commit > began && began_ns_ != 0) {
      report_.seconds = std::chrono::duration<double>(report_.ledger.last_commit - began).count();
    }
  }
  Result<void> closed = store_->close();
  return committed ? closed : committed;
}

}  // namespace kvingest
