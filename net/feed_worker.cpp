#include "net/feed_worker.hpp"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <future>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kSpareParcelsMax = 64;          // More come back only after a burst; their memory is given up.
constexpr std::size_t kSpareBatchBytesMax = 1 << 20;  // A batch that held a huge line does not keep its memory.

}  // namespace

FeedWorker::FeedWorker(int number, const FeedOptions& options, ParcelSink& sink)
    : number_(number),
      options_(options),
      sink_(sink),
      receive_buffer_(std::make_unique_for_overwrite<char[]>(kReceiveBytes)),
      pull_pause_(context_) {
  sink_.attach(*this);
}

FeedWorker::~FeedWorker() {
  KV_ASSERT(!thread_.joinable());
}

Result<void> FeedWorker::start(std::optional<int> cpu) {
  work_.emplace(context_.get_executor());
  std::promise<Result<void>> ready;
  auto started = ready.get_future();
  thread_ = std::thread([this, cpu, &ready] {
    name_this_thread("kv-feed-" + std::to_string(number_));
    Result<void> pinned = cpu ? pin_this_thread(*cpu) : Result<void>();
    const bool go_on = pinned.has_value();
    ready.set_value(std::move(pinned));  // `ready` is gone from here on.
    if (!go_on) return;
    context_.run();
    if (options_.worker_ended) options_.worker_ended();
  });
  Result<void> outcome = started.get();
  if (!outcome) thread_.join();
  return outcome;
}

void FeedWorker::adopt(StreamProtocol::socket socket, std::string peer) {
  asio::error_code error;
  const int family = socket.local_endpoint(error).protocol().family();
  const int fd = socket.release(error);
  asio::post(context_, [this, fd, family, peer = std::move(peer)]() mutable {
    StreamProtocol::socket mine(context_, StreamProtocol(family, 0), fd);
    if (draining_) return;
    add(std::move(mine), std::move(peer), FeedRole::accepted);
  });
}

FeedConnection& FeedWorker::add(StreamProtocol::socket socket, std::string peer, FeedRole role) {
  const std::uint64_t id = ++last_id_;
  auto& connection = connections_[id];
  connection = std::make_unique<FeedConnection>(*this, std::move(socket), std::move(peer), id, role);
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
  if (options_.feed_began) options_.feed_began();
  if (role == FeedRole::accepted) {
    asio::co_spawn(context_, connection->run(), [this, id](const std::exception_ptr& error, FeedEnd) {
      KV_ASSERT(error == nullptr);
      remove(id);
    });
  }
  return *connection;
}

void FeedWorker::remove(std::uint64_t id) {
  connections_.erase(id);
  connection_count_.store(connections_.size(), std::memory_order_relaxed);
  finish_if_idle();
}

void FeedWorker::drain() {
  asio::post(context_, [this] {
    draining_ = true;
    pull_pause_.cancel();
    for (auto& [id, connection] : connections_) connection->drain();
    finish_if_idle();
  });
}

void FeedWorker::finish_if_idle() {
  if (draining_ && connections_.empty() && pulls_ == 0) work_.reset();
}

void FeedWorker::join() {
  if (thread_.joinable()) thread_.join();
}

void FeedWorker::deliver(std::vector<std::unique_ptr<Parcel>> parcels) {
  asio::post(context_, [this, parcels = std::move(parcels)]() mutable { answer(std::move(parcels)); });
}

void FeedWorker::answer(std::vector<std::unique_ptr<Parcel>> parcels) {
  for (auto& parcel : parcels) {
    const auto at = connections_.find(parcel->origin->connection);
    KV_ASSERT(at != connections_.end());  // A connection stays until its parcels are back.
    at->second->session().answered(*parcel);
  }
  for (auto& parcel : parcels) {
    connections_.find(parcel->origin->connection)->second->flush();
    recycle(std::move(parcel));
  }
}

void FeedWorker::room() {
  asio::post(context_, [this] {
    for (auto& [id, connection] : connections_) connection->flush();
  });
}

void FeedWorker::superseded(std::uint64_t connection) {
  asio::post(context_, [this, connection] {
    const auto at = connections_.find(connection);
    if (at == connections_.end()) return;  // It has ended by itself.
    at->second->session().superseded();
    at->second->wake();
  });
}

void FeedWorker::paused(std::string_view reason) {
  asio::post(context_, [this, reason = std::string(reason)] {
    paused_reason_ = reason;
    for (auto& [id, connection] : connections_) {
      connection->session().paused(reason);
      connection->flush();
    }
  });
}

std::unique_ptr<Parcel> FeedWorker::new_parcel() {
  if (spare_parcels_.empty()) return std::make_unique<Parcel>();
  auto parcel = std::move(spare_parcels_.back());
  spare_parcels_.pop_back();
  return parcel;
}

void FeedWorker::recycle(std::unique_ptr<Parcel> parcel) {
  if (spare_parcels_.size() >= kSpareParcelsMax || parcel->batch.bytes().size() > kSpareBatchBytesMax) return;
  parcel->clear();
  spare_parcels_.push_back(std::move(parcel));
}

}  // namespace kvingest::net
