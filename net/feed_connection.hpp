// feed_connection.hpp -- one producer's connection: bytes in, parcels out, answers back.
//
// A turn reads what the socket has, up to a byte budget, cuts it into messages and hands over one parcel. Nothing waits
// for the disk here: answers come when the committer gives the parcel back.
//
// Threads:  belongs to one FeedWorker from accept to close; every method runs on the worker's thread.
// Lifetime: owned by the worker, until run() has ended and every parcel has come back.
// Errors:   a peer's mistakes are answered or counted; a lost connection ends run(). Nothing is thrown.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "kvingest/ingest.hpp"
#include "net/endpoint.hpp"
#include "net/feed_options.hpp"
#include "net/feed_protocol.hpp"
#include "net/line_cutter.hpp"
#include "record/message_parser.hpp"

namespace kvingest::net {

class FeedWorker;

class FeedConnection {
 public:
  enum class Role : std::uint8_t { accepted, pulled };
  enum class End : std::uint8_t {
    peer,       ///< The peer closed, or the connection broke.
    stop_line,  ///< The feed's last line came.
    stopped,    ///< The service stops, or takes no more messages.
  };

  FeedConnection(FeedWorker& worker, StreamProtocol::socket socket, std::string peer, std::uint64_t id, Role role);
  FeedConnection(const FeedConnection&) = delete;
  FeedConnection& operator=(const FeedConnection&) = delete;

  /// Serves the peer until it has closed, every parcel is answered and the answers are sent.
  asio::awaitable<End> run();

  /// A parcel of this connection has come back.
  void answered(const Parcel& parcel);
  /// Sends the answers that have gathered.
  void flush();
  /// The committer has room again.
  void room() { wake_.cancel(); }
  /// The service stops: takes what the kernel holds already, and no more.
  void drain();

  // For LineCutter.
  bool line(std::string_view message, std::uint64_t offset);
  bool long_line(const LongLine& message, std::uint64_t offset);

 private:
  enum class Turn : std::uint8_t { more, drained, ended };

  Turn read_turn();
  std::size_t bytes_wanted() const;
  void end_input(bool properly);
  bool take_data(std::string_view message, std::uint64_t offset);
  void take_control(std::string_view message, std::uint64_t offset);
  void reject(std::string_view message, std::uint64_t length, std::uint64_t checksum, std::uint64_t offset,
              std::string_view reason, std::string_view detail);
  bool count_message();
  void hand_over(bool sync);
  void bound_unfinished();
  void answer(const ControlAnswer& text);
  [[nodiscard]] const std::string& stop_line() const noexcept;

  asio::awaitable<void> readable();
  asio::awaitable<void> woken();
  asio::awaitable<void> write_rest();
  asio::awaitable<void> say_goodbye();

  FeedWorker& worker_;
  const FeedOptions& options_;
  StreamProtocol::socket socket_;
  asio::steady_timer wake_;  // Never expires; cancelled to wake run().
  Role role_;
  std::shared_ptr<const Origin> origin_;  // Shared with the parcels under way.
  LineCutter cutter_;
  MessageParser parser_;
  std::unique_ptr<Parcel> parcel_;  // Being filled; null between turns.
  const bool uses_time_;            // A template has {time}.
  std::uint64_t now_ns_ = 0;        // Arrival time of this turn's bytes, where uses_time_.

  std::uint64_t line_ = 0;         // Number of the last message.
  std::uint64_t outstanding_ = 0;  // Parcels at the committer.
  Tally settled_;                  // Of the parcels that came back.
  std::deque<std::string> syncs_;  // Tags of the syncs under way, in order.
  std::string output_;             // Answers not yet taken by the socket.
  bool writing_ = false;           // write_rest() runs.
  bool input_ended_ = false;
  bool peer_lost_ = false;  // Nothing more can be sent.
  bool draining_ = false;
  std::size_t drain_bytes_left_ = 0;
  std::size_t carried_counted_ = 0;  // This connection's part of the worker's unfinished bytes.
  End end_ = End::peer;
};

}  // namespace kvingest::net
