#include "net/feed_connection.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>

#include "net/feed_worker.hpp"

namespace kvingest::net {
namespace {

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

FeedConnection::FeedConnection(FeedWorker& worker, StreamProtocol::socket socket, std::string peer, std::uint64_t id,
                               FeedRole role)
    : worker_(worker),
      options_(worker.options()),
      socket_(std::move(socket)),
      session_(worker, std::move(peer), id, role),
      wake_(worker.context(), asio::steady_timer::time_point::max()),
      ack_(worker.context()) {}

asio::awaitable<FeedEnd> FeedConnection::run() {
  while (!session_.ended()) {
    if (must_wait()) {
      co_await woken();
      continue;
    }
    session_.take({});  // What was held while the session waited for its welcome.
    const Turn turn = session_.full() ? Turn::more : read_turn();
    session_.end_turn();
    flush();
    if (turn == Turn::drained && !draining_ && !session_.waits_for_welcome()) {
      co_await readable();
    } else if (turn == Turn::more) {
      co_await asio::post(worker_.context(), asio::use_awaitable);  // The others' turn.
    }
  }
  session_.end(false, session_.why_ended());
  while (!session_.settled()) co_await woken();
  co_await say_goodbye();
  co_return session_.why_ended();
}

/// Not to be read for now: the committer's queue is full, too much of this peer waits, or it is not welcome yet.
bool FeedConnection::must_wait() {
  return session_.waits_for_welcome() || !worker_.sink().has_room(worker_) || session_.full();
}

FeedConnection::Turn FeedConnection::read_turn() {
  std::size_t taken = 0;
  while (taken < FeedWorker::kReceiveBytes && !session_.ended() && !session_.waits_for_welcome() && !session_.full()) {
    if (idle_out_ || (draining_ && drain_bytes_left_ == 0)) {
      session_.end(false, draining_ ? FeedEnd::stopped : FeedEnd::peer);
      break;
    }
    const std::size_t wanted =
        draining_ ? std::min(drain_bytes_left_, FeedWorker::kReceiveBytes) : FeedWorker::kReceiveBytes;
    const ssize_t got = ::recv(socket_.native_handle(), worker_.receive_buffer(), wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) {
      if (!draining_) return Turn::drained;
      drain_bytes_left_ = 0;
      continue;
    }
    if (got <= 0) {
      peer_lost_ = got < 0;
      session_.end(got == 0, FeedEnd::peer);
      if (peer_lost_) session_.lose_peer();
      break;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (draining_) drain_bytes_left_ -= bytes;
    taken += bytes;
    session_.take(std::string_view(worker_.receive_buffer(), bytes));
    if (bytes < wanted && !draining_ && !session_.ended() && !session_.full())
      return Turn::drained;  // It is empty, most likely.
  }
  return Turn::more;
}

void FeedConnection::drain() {
  if (draining_) return;
  draining_ = true;
  session_.lift_bounds();
  int waiting = 0;
  if (::ioctl(socket_.native_handle(), FIONREAD, &waiting) == 0 && waiting > 0) {
    drain_bytes_left_ = static_cast<std::size_t>(waiting);
  }
  wake();
}

void FeedConnection::wake() {
  asio::error_code ignored;
  socket_.cancel(ignored);
  wake_.cancel();
}

void FeedConnection::flush() {
  send_output();
  if (session_.output().empty() && !peer_lost_) {
    if (const auto due = session_.acknowledge(std::chrono::steady_clock::now())) plan_acknowledgement(*due);
    send_output();
  }
  wake_.cancel();
}

void FeedConnection::send_output() {
  std::string& output = session_.output();
  if (output.empty() || writing_ || peer_lost_) return;
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.native_handle(), output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && !would_block(errno)) {
    peer_lost_ = true;
    session_.lose_peer();
    return;
  }
  if (sent > 0) output.erase(0, static_cast<std::size_t>(sent));
  if (output.empty()) return;
  writing_ = true;
  // This object outlives it: run() does not end while writing_ is set.
  asio::co_spawn(worker_.context(), write_rest(), asio::detached);
}

void FeedConnection::plan_acknowledgement(std::chrono::steady_clock::time_point due) {
  if (ack_planned_) return;
  ack_planned_ = true;
  ack_.expires_at(due);
  ack_.async_wait([this](const asio::error_code& error) {
    if (error) return;  // This object may be gone.
    ack_planned_ = false;
    flush();
  });
}

/// Until the socket has something, or drain() cancels it; what is wrong with the socket the next read will see.
asio::awaitable<void> FeedConnection::readable() {
  asio::error_code ignored;
  if (options_.idle_timeout.count() == 0) {
    co_await socket_.async_wait(StreamProtocol::socket::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
    co_return;
  }
  asio::steady_timer idle(worker_.context(), options_.idle_timeout);
  idle.async_wait([this](const asio::error_code& error) {
    if (error) return;
    idle_out_ = true;
    asio::error_code cancelled;
    socket_.cancel(cancelled);
  });
  co_await socket_.async_wait(StreamProtocol::socket::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
  if (idle.cancel() == 0) co_await asio::post(worker_.context(), asio::use_awaitable);  // Its handler has been queued.
}

asio::awaitable<void> FeedConnection::woken() {
  asio::error_code ignored;
  co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> FeedConnection::write_rest() {
  asio::error_code error;
  co_await socket_.async_wait(StreamProtocol::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
  writing_ = false;
  if (error && error != asio::error::operation_aborted) {
    peer_lost_ = true;
    session_.lose_peer();
  }
  if (!error) flush();
  wake_.cancel();
}

/// Sends the last answers, half-closes and discards what still comes, so that no reset can eat an answer.
asio::awaitable<void> FeedConnection::say_goodbye() {
  ack_.cancel();
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
  while ((writing_ || !session_.output().empty()) && !peer_lost_ && !late) {
    if (writing_) co_await woken();
    send_output();
  }
  asio::error_code ignored;
  if (!peer_lost_ && !late) socket_.shutdown(StreamProtocol::socket::shutdown_send, ignored);
  while (!peer_lost_ && !late) {
    const ssize_t got =
        ::recv(socket_.native_handle(), worker_.receive_buffer(), FeedWorker::kReceiveBytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !would_block(errno) && errno != EINTR)) break;
    if (got < 0) {
      co_await socket_.async_wait(StreamProtocol::socket::wait_read,
                                  asio::redirect_error(asio::use_awaitable, ignored));
    }
  }
  deadline.cancel();
  socket_.close(ignored);
  while (writing_) co_await woken();
  // Handlers that refer to this frame have been queued: let them run before it goes.
  co_await asio::post(worker_.context(), asio::use_awaitable);
}

}  // namespace kvingest::net
