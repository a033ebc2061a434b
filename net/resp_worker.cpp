#include "net/resp_worker.hpp"

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kGatheredBytesMax = std::size_t{1} << 20;  // More is handed over before the turn ends.

std::string_view problem_of(Parcel::Outcome outcome) noexcept {
  switch (outcome) {
    case Parcel::Outcome::no_space:
      return "MISCONF the store takes no writes now, it is out of space; nothing was written. Free space, or DEL, and "
             "try again";
    case Parcel::Outcome::given_up:
      return "ERR kvingest is stopping; nothing was written";
    default:
      return "ERR the store has failed; whether this was written is not known";
  }
}

}  // namespace

RespWorker::RespWorker(int number, const RespOptions& options, ParcelSink& sink, RespShared shared)
    : number_(number),
      options_(options),
      sink_(sink),
      shared_(shared),
      receive_buffer_(std::make_unique_for_overwrite<char[]>(kReceiveBytes)),
      origin_(std::make_shared<const Origin>(Origin{"resp", std::string(kRespSource), 0, this})) {}

RespWorker::~RespWorker() {
  KV_ASSERT(!thread_.joinable());
}

void RespWorker::start() {
  work_.emplace(context_.get_executor());
  thread_ = std::thread([this] {
    name_this_thread("kv-resp-" + std::to_string(number_));
    context_.run();
    if (options_.worker_ended) options_.worker_ended();
  });
}

void RespWorker::adopt(StreamProtocol::socket socket, std::uint64_t id, std::string peer, bool local) {
  asio::error_code error;
  const int family = socket.local_endpoint(error).protocol().family();
  const int fd = socket.release(error);
  connection_count_.fetch_add(1, std::memory_order_relaxed);
  asio::post(context_, [this, fd, family, id, peer = std::move(peer), local]() mutable {
    StreamProtocol::socket mine(context_, StreamProtocol(family, 0), fd);
    if (draining_) {
      connection_count_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    auto& connection = connections_[id];
    connection = std::make_unique<RespConnection>(*this, std::move(mine), id, std::move(peer), local);
    asio::co_spawn(context_, connection->run(), [this, id](const std::exception_ptr& failure) {
      KV_ASSERT(failure == nullptr);
      remove(id);
    });
  });
}

void RespWorker::remove(std::uint64_t id) {
  connections_.erase(id);
  connection_count_.fetch_sub(1, std::memory_order_relaxed);
  finish_if_idle();
}

void RespWorker::drain() {
  asio::post(context_, [this] {
    draining_ = true;
    for (auto& [id, connection] : connections_) connection->drain();
    finish_if_idle();
  });
}

void RespWorker::finish_if_idle() {
  if (draining_ && connections_.empty()) work_.reset();
}

void RespWorker::join() {
  if (thread_.joinable()) thread_.join();
}

RespWrites& RespWorker::writes() {
  if (writes_ && writes_->memory_bytes() > kGatheredBytesMax) submit();
  if (!writes_) {
    writes_ = std::make_unique<RespWrites>(options_);
    asio::post(context_, [this] { submit(); });  // Behind all that is ready in this turn.
  }
  return *writes_;
}

void RespWorker::submit() {
  if (!writes_) return;
  auto parcel = std::make_unique<Parcel>();
  parcel->origin = origin_;
  parcel->tally.received = writes_->puts_asked();
  parcel->bytes = writes_->memory_bytes();
  parcel->changes = std::move(writes_);
  if (!std::exchange(has_written_, true) && options_.writing_began) options_.writing_began();
  sink_.count_received(parcel->tally.received, parcel->bytes);
  auto back = sink_.submit(std::move(parcel));
  if (!back) return;
  // Its clients may be in the midst of taking requests.
  std::vector<std::unique_ptr<Parcel>> parcels;
  parcels.push_back(std::move(back));
  deliver(std::move(parcels));
}

void RespWorker::deliver(std::vector<std::unique_ptr<Parcel>> parcels) {
  asio::post(context_, [this, parcels = std::move(parcels)]() mutable { answer(std::move(parcels)); });
}

void RespWorker::answer(std::vector<std::unique_ptr<Parcel>> parcels) {
  for (const auto& parcel : parcels) answer(*parcel);
}

void RespWorker::answer(Parcel& parcel) {
  for (const RespWrites::Answers& answers : static_cast<RespWrites&>(*parcel.changes).answers()) {
    const auto at = connections_.find(answers.client);
    KV_ASSERT(at != connections_.end());  // A connection stays until its writes are back.
    RespSession& session = at->second->session();
    if (parcel.outcome == Parcel::Outcome::committed) {
      session.writes_answered(answers.commands, answers.text);
    } else {
      session.writes_failed(answers.commands, problem_of(parcel.outcome));
    }
    at->second->flush();
  }
}

void RespWorker::room() {
  asio::post(context_, [this] {
    for (auto& [id, connection] : connections_) {
      connection->session().room();
      connection->wake();
    }
  });
}

void RespWorker::run_aside(std::uint64_t session, std::function<std::string()> job) {
  shared_.aside.add([this, session, job = std::move(job)] {
    asio::post(context_, [this, session, text = job()] {
      const auto at = connections_.find(session);
      KV_ASSERT(at != connections_.end());  // It stays until its job is done.
      at->second->session().aside_done(text);
      at->second->flush();
    });
  });
}

void RespWorker::stored() {
  if (followers_.load(std::memory_order_relaxed) == 0 || wake_planned_.exchange(true)) return;
  asio::post(context_, [this] { wake_followers(); });
}

void RespWorker::wake_followers() {
  wake_planned_ = false;  // First: what is stored from here on plans the next one.
  for (auto& [id, connection] : connections_) {
    if (!connection->session().tails()) continue;
    connection->session().tail_again(std::chrono::steady_clock::now());
    if (!connection->session().tails()) connection->flush();
  }
}

void RespWorker::hold(std::size_t before, std::size_t now) {
  held_ += now;
  held_ -= before;
  if (now > before && held_ > options_.memory_max) drop_largest();
}

void RespWorker::drop_largest() {
  constexpr std::chrono::minutes kLogInterval{1};
  RespConnection* largest = nullptr;
  for (auto& [id, connection] : connections_) {
    if (!connection->dropped() && (largest == nullptr || connection->held() > largest->held())) {
      largest = connection.get();
    }
  }
  if (largest == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  if (drop_said_ == std::chrono::steady_clock::time_point::min() || now - drop_said_ >= kLogInterval) {
    log_warning("Redis clients hold more than {} bytes of unfinished requests and unread answers; {} with {} is closed",
                options_.memory_max, largest->peer(), largest->held());
    drop_said_ = now;
  }
  largest->drop();
}

}  // namespace kvingest::net
