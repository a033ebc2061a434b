// feed_worker.hpp -- one pinned thread with one event loop, and the connections that live on it.
//
// Threads:  adopt, pull, drain, deliver and room may be called on any thread; the rest runs on the worker's own,
//           which is named kv-feed-N and pinned before start() returns.
// Lifetime: options and sink outlive the worker. join() before destruction.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "kvingest/ingest.hpp"
#include "net/endpoint.hpp"
#include "net/feed_connection.hpp"
#include "net/feed_options.hpp"

namespace kvingest::net {

class FeedWorker final : public Inbox {
 public:
  FeedWorker(int number, const FeedOptions& options, ParcelSink& sink);
  FeedWorker(const FeedWorker&) = delete;
  FeedWorker& operator=(const FeedWorker&) = delete;
  ~FeedWorker() override;

  /// Starts the thread, pinned to `cpu` if one is given. Fails with: invalid_argument, io_error (it cannot be pinned).
  Result<void> start(std::optional<int> cpu);
  /// Serves a socket that was accepted elsewhere.
  void adopt(StreamProtocol::socket socket, std::string peer);
  /// Pulls from a feed: connects, and connects again with back-off when the connection ends before its stop line.
  void pull(Endpoint from);
  /// Lets every connection finish what the kernel took and answer its peer; then the thread ends.
  void drain();
  void join();

  void deliver(std::vector<std::unique_ptr<Parcel>> parcels) override;
  void room() override;
  void superseded(std::uint64_t connection) override;
  void paused(std::string_view reason) override;

  [[nodiscard]] std::size_t connections() const noexcept { return connection_count_.load(std::memory_order_relaxed); }

  // For this worker's connections, on its thread.
  static constexpr std::size_t kReceiveBytes = std::size_t{256} << 10;  // One turn's budget, and the batch it makes.

  [[nodiscard]] const FeedOptions& options() const noexcept { return options_; }
  [[nodiscard]] ParcelSink& sink() noexcept { return sink_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] char* receive_buffer() noexcept { return receive_buffer_.get(); }
  [[nodiscard]] std::unique_ptr<Parcel> new_parcel();
  void recycle(std::unique_ptr<Parcel> parcel);
  /// Why commits are impossible for now; empty while they go on.
  [[nodiscard]] const std::string& paused_reason() const noexcept { return paused_reason_; }
  /// Adds to the bytes of unfinished messages; returns the total.
  std::size_t change_unfinished(std::ptrdiff_t bytes) noexcept {
    return unfinished_bytes_ += static_cast<std::size_t>(bytes);
  }

 private:
  FeedConnection& add(StreamProtocol::socket socket, std::string peer, FeedRole role);
  void remove(std::uint64_t id);
  asio::awaitable<void> pull_until_stopped(Endpoint from);
  void answer(std::vector<std::unique_ptr<Parcel>> parcels);
  void finish_if_idle();

  int number_;
  const FeedOptions& options_;
  ParcelSink& sink_;
  asio::io_context context_{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::unique_ptr<char[]> receive_buffer_;
  std::unordered_map<std::uint64_t, std::unique_ptr<FeedConnection>> connections_;
  std::vector<std::unique_ptr<Parcel>> spare_parcels_;
  std::uint64_t last_id_ = 0;
  std::size_t unfinished_bytes_ = 0;
  std::size_t pulls_ = 0;
  asio::steady_timer pull_pause_;
  bool draining_ = false;
  std::string paused_reason_;
  std::atomic<std::size_t> connection_count_{0};
  std::thread thread_;
};

}  // namespace kvingest::net
