// resp_worker.hpp -- one thread with one event loop, and the Redis clients that live on it.
//
// What all of them write in one turn of the loop goes to the committer as one parcel, so that thousands of clients
// share a sync and a wake-up.
//
// Threads:  adopt, stored, drain and what the committer calls may be called on any thread; the rest runs on the
//           worker's own, named kv-resp-N. It is not pinned: readers take what the feed leaves.
// Lifetime: options, sink and what is shared outlive the worker. join() before destruction.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/endpoint.hpp"
#include "net/resp_aside.hpp"
#include "net/resp_connection.hpp"
#include "net/resp_session.hpp"

namespace kvingest::net {

/// What the workers of a server share.
struct RespShared {
  ScanCursors& cursors;
  RespAside& aside;
};

class RespWorker final : public Inbox, public RespHost {
 public:
  static constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;

  RespWorker(int number, const RespOptions& options, ParcelSink& sink, RespShared shared);
  RespWorker(const RespWorker&) = delete;
  RespWorker& operator=(const RespWorker&) = delete;
  ~RespWorker() override;

  void start();
  void adopt(StreamProtocol::socket socket, std::uint64_t id, std::string peer, bool local);
  void stored();
  void drain();
  void join();
  [[nodiscard]] std::size_t connections() const noexcept { return connection_count_.load(std::memory_order_relaxed); }

  void deliver(std::vector<std::unique_ptr<Parcel>> parcels) override;
  void room() override;
  void superseded(std::uint64_t) override {}
  void paused(std::string_view) override {}

  [[nodiscard]] const RespOptions& options() const noexcept override { return options_; }
  [[nodiscard]] ParcelSink& sink() noexcept override { return sink_; }
  [[nodiscard]] ScanCursors& cursors() noexcept override { return shared_.cursors; }
  [[nodiscard]] RespWrites& writes() override;
  [[nodiscard]] bool has_room() override { return sink_.has_room(*this); }
  void run_aside(std::uint64_t session, std::function<std::string()> job) override;

  // For its connections.
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] char* receive_buffer() noexcept { return receive_buffer_.get(); }
  /// A connection holds so much memory instead of `before`. Where all together hold too much, the largest goes.
  void hold(std::size_t before, std::size_t now);
  void follow(bool begins) noexcept { begins ? ++followers_ : --followers_; }

 private:
  void submit();
  void answer(std::vector<std::unique_ptr<Parcel>> parcels);
  void answer(Parcel& parcel);
  void wake_followers();
  void drop_largest();
  void remove(std::uint64_t id);
  void finish_if_idle();

  const int number_;
  const RespOptions& options_;
  ParcelSink& sink_;
  const RespShared shared_;
  asio::io_context context_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::unique_ptr<char[]> receive_buffer_;
  std::unordered_map<std::uint64_t, std::unique_ptr<RespConnection>> connections_;
  std::atomic<std::size_t> connection_count_{0};
  std::shared_ptr<const Origin> origin_;  // Shared by all parcels of this worker.
  std::unique_ptr<RespWrites> writes_;
  std::size_t held_ = 0;
  std::chrono::steady_clock::time_point drop_said_ = std::chrono::steady_clock::time_point::min();
  std::atomic<int> followers_{0};
  std::atomic<bool> wake_planned_{false};
  bool has_written_ = false;
  bool draining_ = false;
  std::thread thread_;
};

}  // namespace kvingest::net
