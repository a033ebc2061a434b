// feed_session.hpp -- the feed protocol of one connection, without its socket: bytes in, parcels and answers out.
//
// Messages get their numbers here; what becomes of them is the committer's word, which comes back with their parcel. A
// hello stops the cutting of messages until the committer says which line the source is to send next; bytes that have
// come already are held meanwhile.
//
// Threads:  the worker's. Lifetime: `worker` outlives it; it outlives every parcel it has handed over.
// Errors:   a peer's mistakes are answered, counted or end the input; nothing is thrown.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "kvingest/ingest.hpp"
#include "net/feed_options.hpp"
#include "net/feed_protocol.hpp"
#include "net/line_cutter.hpp"
#include "net/varint_cutter.hpp"
#include "record/message_parser.hpp"

namespace kvingest::net {

class FeedWorker;

/// Accepted connections come from producers; pulled ones go out to a feed.
enum class FeedRole : std::uint8_t { accepted, pulled };

/// Why a connection's input has ended.
enum class FeedEnd : std::uint8_t {
  peer,       ///< The peer closed, said bye or was turned away, or the connection broke.
  stop_line,  ///< The feed's last line came.
  stopped,    ///< The service stops, or takes no more messages.
};

class FeedSession {
 public:
  FeedSession(FeedWorker& worker, std::string peer, std::uint64_t connection, FeedRole role);
  FeedSession(const FeedSession&) = delete;
  FeedSession& operator=(const FeedSession&) = delete;

  /// Cuts and takes `bytes`, as far as they may be taken now; the rest is held.
  void take(std::string_view bytes);
  /// Hands over what has gathered: the end of a turn.
  void end_turn();
  /// No more bytes come. `properly`: the peer closed; else the connection broke or the service stops.
  void end(bool properly, FeedEnd why);
  /// Answers are pending no more and none can be sent.
  void lose_peer();

  void answered(const Parcel& parcel);
  void superseded();
  void paused(std::string_view reason);

  /// Neither more bytes nor messages are taken.
  [[nodiscard]] bool ended() const noexcept { return end_.has_value(); }
  [[nodiscard]] FeedEnd why_ended() const noexcept { return *end_; }
  /// Waiting for the answer to a hello: not to be read.
  [[nodiscard]] bool waits_for_welcome() const noexcept { return hello_.has_value(); }
  /// As much of this connection waits as may: answers for its peer to take, syncs for the disk, a parcel to be handed
  /// over. Bytes that came already are held.
  [[nodiscard]] bool full() const noexcept {
    return bounded_ && (output_.size() > kOutputBytesMax || syncs_.size() >= kSyncsMax || parcel_is_full());
  }
  /// The service stops: what the kernel took is bounded, and all of it is taken.
  void lift_bounds() noexcept { bounded_ = false; }
  /// Every parcel has come back.
  [[nodiscard]] bool settled() const noexcept { return outstanding_ == 0; }

  /// Answers for the peer; what was sent is removed by whoever sends them.
  [[nodiscard]] std::string& output() noexcept { return output_; }
  /// Puts the cumulative acknowledgement that is due into the output; call when the output is empty. Returns when it
  /// may next be due, or nothing while there is nothing to acknowledge.
  std::optional<std::chrono::steady_clock::time_point> acknowledge(std::chrono::steady_clock::time_point now);

  // The sink of the cutters.
  bool line(std::string_view message, std::uint64_t offset) {
    if (is_plain(message)) [[likely]] {
      parcel_->batch.put_next(strip_cr_ ? without_cr(message) : message);
      ++plain_lines_;
      return true;
    }
    return records_ && is_ordinary(message) ? take_parsed(message, offset) : take_line(message, offset);
  }
  bool long_line(const LongMessage& message, std::uint64_t offset);

 private:
  static constexpr std::size_t kRejectedLinesMax = 32;  // Of a connection, that `synced` names.
  // What one connection may have waiting. A peer can make kvingest keep far more than it sends: an answer for 9 bytes,
  // a reject with its place and reason for 2.
  static constexpr std::size_t kOutputBytesMax = 64 << 10;
  static constexpr std::size_t kSyncsMax = 256;
  static constexpr std::size_t kParcelBytesMax = 512 << 10;  // A turn's bytes, with their keys.

  struct Hello {
    std::optional<std::uint64_t> from;
  };

  [[nodiscard]] bool cutting() const noexcept { return !ended() && !waits_for_welcome() && !full(); }
  [[nodiscard]] bool parcel_is_full() const noexcept {
    return parcel_ && parcel_->batch.bytes().size() + parcel_->rejects_bytes > kParcelBytesMax;
  }
  void cut(std::string_view bytes);
  /// Data within its limit, whatever the options say: two bytes or more, no control line, not the stop line.
  [[nodiscard]] bool is_ordinary(std::string_view message) const noexcept {
    return message.size() > 1 && message.size() <= plain_bytes_max_ && message.front() != '!' &&
           message.size() - stop_bytes_ > 1;
  }
  /// The fast path: such a message is stored as it stands, under its number.
  [[nodiscard]] bool is_plain(std::string_view message) const noexcept { return plain_ && is_ordinary(message); }
  bool take_parsed(std::string_view message, std::uint64_t offset);
  void count_plain_lines();
  bool take_line(std::string_view message, std::uint64_t offset);
  bool check_token(std::string_view bytes);
  bool check_first_bytes(std::string_view& bytes);
  bool take_data(std::string_view message, std::uint64_t offset);
  void take_record(std::string_view message, std::uint64_t offset);
  Verdict parse(std::string_view message, WriteBatch& batch);
  [[nodiscard]] bool header_is_due() const { return options_.plan->header() && parser_.columns().empty(); }
  void take_duplicate(std::string_view message);
  bool count_message();
  void reject(const LongMessage& message, std::uint64_t offset, std::string_view reason, std::string_view detail);
  void bound_unfinished();
  Parcel& parcel();
  void hand_over();
  [[nodiscard]] const std::string& stop_line() const noexcept;

  // Control lines: feed_control.cpp.
  void take_control(std::string_view message, std::uint64_t offset);
  void take_sync(const ControlLine& control);
  void take_hello(const ControlLine& control);
  void take_status();
  void take_bye();
  void welcome(const Parcel& parcel);
  void answer_sync(const Parcel& parcel);
  void answer(const ControlAnswer& text);
  void turn_away(std::string_view code, std::string_view message);

  FeedWorker& worker_;
  const FeedOptions& options_;
  FeedRole role_;
  std::shared_ptr<const Origin> origin_;  // Shared with the parcels under way.
  std::variant<LineCutter, VarintCutter> cutter_;
  MessageParser parser_;
  const bool uses_time_;
  std::uint64_t now_ns_ = 0;        // Arrival time of the bytes in hand, where a template asks for it.
  std::unique_ptr<Parcel> parcel_;  // Being filled; null between turns.

  bool plain_ = false;    // Whole lines are values, numbers are keys, and none of them is known already.
  bool records_ = false;  // Messages are parsed, and none of them is known already or a header.
  const bool strip_cr_;
  const std::size_t plain_bytes_max_;
  const std::size_t stop_bytes_;   // Of the stop line; where there is none, a number that no message's length is near.
  std::uint64_t plain_lines_ = 0;  // Put into the batch and not yet counted.

  bool recognized_;       // The first bytes are those of a feed.
  bool let_in_;           // No token is asked for, or a good one has been given.
  bool greeted_ = false;  // A message or control line has come: too late for a hello.
  std::string held_;      // Bytes that came and may not be cut yet.
  std::optional<Hello> hello_;
  std::uint64_t line_ = 0;         // Number of the last message.
  std::uint64_t known_lines_ = 0;  // Messages up to this number are in the store: they are duplicates.
  std::uint64_t outstanding_ = 0;  // Parcels at the committer.
  Tally settled_;                  // Of the parcels that came back.
  std::uint64_t settled_line_ = 0;
  std::deque<std::string> syncs_;  // Tags of the syncs under way, in order.
  std::string rejected_lines_;     // Their numbers, comma-separated: the first kRejectedLinesMax.
  std::size_t rejected_listed_ = 0;
  bool said_paused_ = false;
  bool said_header_changed_ = false;
  bool turned_away_ = false;
  std::optional<std::chrono::milliseconds> ack_interval_;
  std::uint64_t acked_line_ = 0;
  std::chrono::steady_clock::time_point acked_at_{};
  std::string output_;
  bool peer_lost_ = false;
  bool bounded_ = true;
  std::size_t carried_counted_ = 0;  // This connection's part of the worker's unfinished bytes.
  std::optional<FeedEnd> end_;
};

}  // namespace kvingest::net
