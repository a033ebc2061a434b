// resp_connection.hpp -- the socket of one Redis client: reads in turns, sends what the session answers.
//
// A client that does not read its answers is not read from, and one of many that hold too much memory is closed; see
// RespWorker::hold(). An idle one keeps no buffer.
//
// Threads:  belongs to one RespWorker from accept to close; every method runs on the worker's thread.
// Lifetime: owned by the worker, until run() has ended.
// Errors:   a lost connection ends run(). Nothing is thrown.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <string>

#include "net/endpoint.hpp"
#include "net/resp_session.hpp"

namespace kvingest::net {

class RespWorker;

class RespConnection {
 public:
  RespConnection(RespWorker& worker, StreamProtocol::socket socket, std::uint64_t id, std::string peer, bool local);
  RespConnection(const RespConnection&) = delete;
  RespConnection& operator=(const RespConnection&) = delete;
  ~RespConnection();

  /// Serves the client until it leaves, everything of it is answered and the answers are sent.
  asio::awaitable<void> run();

  [[nodiscard]] RespSession& session() noexcept { return session_; }
  /// Sends the answers that have gathered, and wakes run().
  void flush();
  void wake();
  /// The service stops: what has been read is answered, and no more.
  void drain();
  /// Closes it without an answer.
  void drop();
  [[nodiscard]] bool dropped() const noexcept { return lost_; }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

 private:
  enum class Turn : std::uint8_t { read, drained };

  [[nodiscard]] bool is_full();
  void take_input();
  Turn read_turn();
  void send_output();
  void count_memory();
  void follow();

  asio::awaitable<void> readable();
  asio::awaitable<void> woken();
  asio::awaitable<void> wait_for_records();
  asio::awaitable<void> write_rest();
  asio::awaitable<void> say_goodbye();

  RespWorker& worker_;
  StreamProtocol::socket socket_;
  const std::string peer_;
  RespSession session_;
  std::string input_;  // What could not be taken yet, from input_at_ on.
  std::size_t input_at_ = 0;
  std::size_t held_ = 0;     // Bytes, as the worker counts them.
  asio::steady_timer wake_;  // Cancelled to wake run(); expires when KV.TAIL has waited long enough.
  bool follows_ = false;     // As the worker counts it.
  bool writing_ = false;     // write_rest() runs.
  bool lost_ = false;        // Nothing can be sent any more.
  bool end_of_input_ = false;
  bool draining_ = false;
};

}  // namespace kvingest::net
