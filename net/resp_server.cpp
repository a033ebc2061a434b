#include "net/resp_server.hpp"

#include "net/resp_worker.hpp"

namespace kvingest::net {

RespServer::RespServer(const RespOptions& options, ParcelSink& sink) : options_(options), sink_(sink) {}

RespServer::~RespServer() = default;

void RespServer::start(std::size_t workers) {
  for (std::size_t i = 0; i < workers; ++i) {
    workers_.push_back(
        std::make_unique<RespWorker>(static_cast<int>(i), options_, sink_, RespShared{cursors_, aside_}));
    workers_.back()->start();
  }
}

void RespServer::adopt(StreamProtocol::socket socket, std::string peer, bool local) {
  const std::uint64_t id = ++last_id_;
  workers_[id % workers_.size()]->adopt(std::move(socket), id, std::move(peer), local);
}

void RespServer::stored() {
  for (const auto& worker : workers_) worker->stored();
}

void RespServer::drain() {
  for (const auto& worker : workers_) worker->drain();
}

void RespServer::join() {
  for (const auto& worker : workers_) worker->join();
  aside_.stop();
}

std::size_t RespServer::clients() const {
  std::size_t count = 0;
  for (const auto& worker : workers_) count += worker->connections();
  return count;
}

}  // namespace kvingest::net
