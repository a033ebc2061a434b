#include "net/feed_connection.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <xxhash.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>

#include "base/check.hpp"
#include "net/feed_worker.hpp"

namespace kvingest::net {
namespace {

// Answers a peer has not taken; beyond it the connection is not read, so a peer that never reads costs this and no
// more.
constexpr std::size_t kOutputBytesMax = 64 << 10;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

FeedConnection::FeedConnection(FeedWorker& worker, StreamProtocol::socket socket, std::string peer, std::uint64_t id,
                               Role role)
    : worker_(worker),
      options_(worker.options()),
      socket_(std::move(socket)),
      wake_(worker.context(), asio::steady_timer::time_point::max()),
      role_(role),
      origin_(std::make_shared<const Origin>(Origin{std::move(peer), std::string(kUnnamedSource), 0, id, &worker})),
      cutter_(options_.line_bytes_max),
      parser_(*options_.plan),
      uses_time_(options_.plan->key().contains(TextTemplate::Kind::time) ||
                 (!options_.plan->whole_message() && options_.plan->value().contains(TextTemplate::Kind::time))) {}

asio::awaitable<FeedConnection::End> FeedConnection::run() {
  while (!input_ended_) {
    while (!worker_.sink().has_room(worker_)) co_await woken();
    while (output_.size() > kOutputBytesMax && !peer_lost_ && !draining_) co_await woken();
    if (input_ended_) break;  // The store failed in the meantime.
    const Turn turn = read_turn();
    hand_over(false);
    bound_unfinished();
    flush();
    if (turn == Turn::drained && !draining_) {
      co_await readable();
    } else if (turn == Turn::more) {
      co_await asio::post(worker_.context(), asio::use_awaitable);  // The others' turn.
    }
  }
  worker_.change_unfinished(-static_cast<std::ptrdiff_t>(carried_counted_));
  while (outstanding_ > 0) co_await woken();
  co_await say_goodbye();
  co_return end_;
}

/// What this turn may still read: all that fits, or what the kernel held when the service began to stop.
std::size_t FeedConnection::bytes_wanted() const {
  return draining_ ? std::min(drain_bytes_left_, FeedWorker::kReceiveBytes) : FeedWorker::kReceiveBytes;
}

FeedConnection::Turn FeedConnection::read_turn() {
  std::size_t taken = 0;
  while (taken < FeedWorker::kReceiveBytes) {
    const std::size_t wanted = bytes_wanted();
    if (wanted == 0) {
      end_ = End::stopped;
      end_input(false);
      return Turn::ended;
    }
    const ssize_t got = ::recv(socket_.native_handle(), worker_.receive_buffer(), wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!draining_) return Turn::drained;
      drain_bytes_left_ = 0;
      continue;
    }
    if (got <= 0) {
      peer_lost_ = got < 0;
      end_input(got == 0);
      return Turn::ended;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (draining_) drain_bytes_left_ -= bytes;
    taken += bytes;
    if (!parcel_) parcel_ = worker_.new_parcel();
    parcel_->bytes += bytes;
    if (uses_time_) now_ns_ = now_ns();
    cutter_.cut(std::string_view(worker_.receive_buffer(), bytes), *this);
    if (input_ended_) return Turn::ended;
    if (bytes < wanted) return draining_ ? Turn::more : Turn::drained;
  }
  return Turn::more;
}

/// No more is read. A last line without LF is stored where the peer closed properly; else it was cut off.
void FeedConnection::end_input(bool properly) {
  input_ended_ = true;
  if (cutter_.unfinished_bytes() == 0) return;
  if (!parcel_) parcel_ = worker_.new_parcel();
  if (properly) {
    cutter_.finish(*this);
    return;
  }
  struct Truncated {
    FeedConnection& connection;
    bool line(std::string_view message, std::uint64_t offset) const {
      return long_line(
          {message.substr(0, kLongLineKeptBytes), message.size(), XXH3_64bits(message.data(), message.size())}, offset);
    }
    bool long_line(const LongLine& message, std::uint64_t offset) const {
      if (!connection.count_message()) return false;
      connection.reject(message.kept, message.length, message.checksum, offset, "truncated",
                        "the connection ended inside the message");
      return false;
    }
  } truncated{*this};
  cutter_.finish(truncated);
}

bool FeedConnection::line(std::string_view message, std::uint64_t offset) {
  if (!message.empty() && message.front() == '!' && options_.control_lines) {
    const LineKind kind = classify_line(message);
    if (kind == LineKind::control) {
      take_control(message, offset);
      return !input_ended_;
    }
    if (kind == LineKind::escaped) message.remove_prefix(1);
  }
  return take_data(message, offset);
}

bool FeedConnection::take_data(std::string_view message, std::uint64_t offset) {
  const std::string& stop = stop_line();
  if (!stop.empty() && without_cr(message) == stop) {
    end_ = End::stop_line;
    input_ended_ = true;
    return false;
  }
  if (!count_message()) return false;
  if (!options_.plan->keep_cr()) message = without_cr(message);
  Tally& tally = parcel_->tally;
  if (options_.plan->whole_line_by_seq()) {
    if (message.empty()) {
      ++tally.blank;
    } else {
      parcel_->batch.put_next(message);
      ++tally.stored;
    }
    return true;
  }
  const Verdict verdict = parser_.add(message, now_ns_, origin_->source, parcel_->batch);
  switch (verdict.outcome) {
    case Outcome::stored:
      ++tally.stored;
      break;
    case Outcome::blank:
      ++tally.blank;
      break;
    case Outcome::rejected:
      reject(message, message.size(), XXH3_64bits(message.data(), message.size()), offset, verdict.reason,
             verdict.detail);
      break;
  }
  return true;
}

bool FeedConnection::long_line(const LongLine& message, std::uint64_t offset) {
  if (!count_message()) return false;
  reject(message.kept, message.length, message.checksum, offset, "too_long",
         fmt::format("{} bytes; at most {} (--max-line)", message.length, options_.line_bytes_max));
  return true;
}

/// Gives the next message its number; false when no more messages may be taken.
bool FeedConnection::count_message() {
  if (options_.take_leave && options_.take_leave(1) == 0) {
    end_ = End::stopped;
    input_ended_ = true;
    return false;
  }
  ++line_;
  if (parcel_->tally.received++ == 0) parcel_->first_line = line_;
  return true;
}

void FeedConnection::reject(std::string_view message, std::uint64_t length, std::uint64_t checksum,
                            std::uint64_t offset, std::string_view reason, std::string_view detail) {
  ++parcel_->tally.rejected;
  parcel_->rejects.push_back({.peer = origin_->peer,
                              .source = origin_->source,
                              .line = line_,
                              .offset = offset,
                              .reason = std::string(reason),
                              .detail = std::string(detail),
                              .length = length,
                              .checksum = checksum,
                              .bytes = std::string(message.substr(0, kLongLineKeptBytes))});
}

void FeedConnection::take_control(std::string_view message, std::uint64_t offset) {
  const auto parsed = parse_control(message);
  if (parsed && parsed->verb == "sync" && parsed->words.size() <= 1 &&
      (parsed->words.empty() || parsed->words[0].name.empty())) {
    syncs_.push_back(parsed->words.empty() ? std::string() : parsed->words[0].value);
    hand_over(true);
    return;
  }
  // Kept as a rejected message: data that looked like control is not lost.
  const std::string detail = parsed ? "unknown control line" : parsed.error().text;
  if (!count_message()) return;
  reject(message, message.size(), XXH3_64bits(message.data(), message.size()), offset, "control", detail);
  answer(ControlAnswer("error").add("code", "control").add("line", line_).add("message", detail));
}

void FeedConnection::hand_over(bool sync) {
  if (sync && !parcel_) parcel_ = worker_.new_parcel();
  if (!parcel_) return;
  parcel_->sync = sync;
  if (parcel_->bytes > 0 || parcel_->tally.received > 0) {
    worker_.sink().count_received(parcel_->tally.received, parcel_->bytes);
  }
  if (parcel_->empty()) {
    parcel_->bytes = 0;
    worker_.recycle(std::move(parcel_));
    return;
  }
  parcel_->origin = origin_;
  ++outstanding_;
  if (auto back = worker_.sink().submit(std::move(parcel_))) {
    answered(*back);
    worker_.recycle(std::move(back));
  }
  if (!input_ended_ && sync) parcel_ = worker_.new_parcel();
}

void FeedConnection::answered(const Parcel& parcel) {
  KV_ASSERT(outstanding_ > 0);
  --outstanding_;
  settled_ += parcel.tally;
  if (parcel.outcome == Parcel::Outcome::failed) {
    if (!input_ended_) answer(ControlAnswer("error").add("code", "store_failed").add("closing"));
    syncs_.clear();
    input_ended_ = true;
  } else if (parcel.sync) {
    KV_ASSERT(!syncs_.empty());
    ControlAnswer synced("synced");
    if (!syncs_.front().empty()) synced.add("tag", syncs_.front());
    syncs_.pop_front();
    answer(synced.add("line", settled_.received)
               .add("stored", settled_.stored)
               .add("rejected", settled_.rejected)
               .add("blank", settled_.blank)
               .add("duplicate", settled_.duplicate)
               .add("seq", parcel.on_disk_seq)
               .add("level", to_string(parcel.level)));
  }
  wake_.cancel();
}

/// Keeps the memory of all unfinished messages within its budget: the one that goes beyond it is given up.
void FeedConnection::bound_unfinished() {
  const auto change =
      static_cast<std::ptrdiff_t>(cutter_.carried_bytes()) - static_cast<std::ptrdiff_t>(carried_counted_);
  carried_counted_ = cutter_.carried_bytes();
  if (worker_.change_unfinished(change) <= options_.unfinished_bytes_max || carried_counted_ <= kLongLineKeptBytes)
    return;
  cutter_.give_up_line();
  worker_.change_unfinished(static_cast<std::ptrdiff_t>(cutter_.carried_bytes()) -
                            static_cast<std::ptrdiff_t>(carried_counted_));
  carried_counted_ = cutter_.carried_bytes();
}

void FeedConnection::drain() {
  if (draining_) return;
  draining_ = true;
  int waiting = 0;
  if (::ioctl(socket_.native_handle(), FIONREAD, &waiting) == 0 && waiting > 0) {
    drain_bytes_left_ = static_cast<std::size_t>(waiting);
  }
  asio::error_code ignored;
  socket_.cancel(ignored);
  wake_.cancel();
}

void FeedConnection::answer(const ControlAnswer& text) {
  if (!peer_lost_) output_ += text.line();
}

void FeedConnection::flush() {
  if (output_.empty() || writing_ || peer_lost_) return;
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.native_handle(), output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent > 0) output_.erase(0, static_cast<std::size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
    peer_lost_ = true;
    output_.clear();
  }
  if (output_.empty()) {
    wake_.cancel();
    return;
  }
  writing_ = true;
  // The connection outlives it: run() does not end while writing_ is set.
  asio::co_spawn(worker_.context(), write_rest(), asio::detached);
}

const std::string& FeedConnection::stop_line() const noexcept {
  return role_ == Role::pulled ? options_.connect_stop_line : options_.listen_stop_line;
}

asio::awaitable<void> FeedConnection::readable() {
  asio::error_code ignored;  // Cancelled by drain(), or an error that the next read will see.
  co_await socket_.async_wait(StreamProtocol::socket::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> FeedConnection::woken() {
  asio::error_code ignored;
  co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> FeedConnection::write_rest() {
  asio::error_code error;
  co_await socket_.async_wait(StreamProtocol::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
  writing_ = false;
  if (error && !draining_) {
    peer_lost_ = true;
    output_.clear();
  }
  if (!(error && draining_)) flush();
  wake_.cancel();
}

/// Sends the last answers, half-closes and discards what still comes, so that no reset can eat an answer.
asio::awaitable<void> FeedConnection::say_goodbye() {
  asio::steady_timer deadline(worker_.context(), options_.drain_timeout);
  bool late = false;
  deadline.async_wait([&](const asio::error_code& error) {
    if (error) return;
    late = true;
    asio::error_code ignored;
    socket_.cancel(ignored);
    wake_.cancel();
  });
  flush();
  while ((writing_ || !output_.empty()) && !peer_lost_ && !late) {
    if (!writing_) flush();
    if (writing_) co_await woken();
  }
  asio::error_code ignored;
  if (!peer_lost_ && !late) socket_.shutdown(StreamProtocol::socket::shutdown_send, ignored);
  while (!peer_lost_ && !late) {
    const ssize_t got =
        ::recv(socket_.native_handle(), worker_.receive_buffer(), FeedWorker::kReceiveBytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) break;
    if (got < 0) co_await readable();
  }
  deadline.cancel();
  socket_.close(ignored);
  while (writing_) co_await woken();
  // The timer's handler refers to this frame: let it run before the frame goes.
  co_await asio::post(worker_.context(), asio::use_awaitable);
}

}  // namespace kvingest::net
