// feed_connection.hpp -- the socket of one producer: reads in turns, sends what the session answers.
//
// A turn reads what the socket has, up to a byte budget, and lets the session make one parcel of it. Nothing waits for
// the disk here: answers come when the committer gives the parcel back.
//
// Threads:  belongs to one FeedWorker from accept to close; every method runs on the worker's thread.
// Lifetime: owned by the worker, until run() has ended.
// Errors:   a lost connection ends run(). Nothing is thrown.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "net/endpoint.hpp"
#include "net/feed_options.hpp"
#include "net/feed_session.hpp"

namespace kvingest::net {

class FeedWorker;

class FeedConnection {
 public:
  FeedConnection(FeedWorker& worker, StreamProtocol::socket socket, std::string peer, std::uint64_t id, FeedRole role);
  FeedConnection(const FeedConnection&) = delete;
  FeedConnection& operator=(const FeedConnection&) = delete;

  /// Serves the peer until its input has ended, every parcel is answered and the answers are sent.
  asio::awaitable<FeedEnd> run();

  [[nodiscard]] FeedSession& session() noexcept { return session_; }
  /// Sends the answers that have gathered, and wakes run() for whatever else has changed.
  void flush();
  /// The session has ended by what came from elsewhere: stops waiting for the peer.
  void wake();
  /// The service stops: takes what the kernel holds already, and no more.
  void drain();

 private:
  enum class Turn : std::uint8_t { more, drained };

  Turn read_turn();
  [[nodiscard]] bool must_wait();
  void send_output();
  void plan_acknowledgement(std::chrono::steady_clock::time_point due);

  asio::awaitable<void> readable();
  asio::awaitable<void> woken();
  asio::awaitable<void> write_rest();
  asio::awaitable<void> say_goodbye();

  FeedWorker& worker_;
  const FeedOptions& options_;
  StreamProtocol::socket socket_;
  FeedSession session_;
  asio::steady_timer wake_;  // Never expires; cancelled to wake run().
  asio::steady_timer ack_;   // Until the next acknowledgement is due.
  bool ack_planned_ = false;
  bool writing_ = false;    // write_rest() runs.
  bool peer_lost_ = false;  // Nothing more can be sent.
  bool idle_out_ = false;   // --idle-timeout has passed.
  bool draining_ = false;
  std::size_t drain_bytes_left_ = 0;
};

}  // namespace kvingest::net
