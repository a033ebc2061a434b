#include "net/resp_connection.hpp"

#include <sys/socket.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>

#include "net/resp_worker.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kIdleBytesMax = 1'024;  // An emptied buffer of more gives its memory back.

bool is_not_ready(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void give_back(std::string& emptied) {
  if (emptied.capacity() > kIdleBytesMax) std::string().swap(emptied);
}

}  // namespace

RespConnection::RespConnection(RespWorker& worker, StreamProtocol::socket socket, std::uint64_t id, std::string peer,
                               bool local)
    : worker_(worker),
      socket_(std::move(socket)),
      peer_(peer),
      session_(worker, id, std::move(peer), local),
      wake_(worker.context(), asio::steady_timer::time_point::max()) {}

RespConnection::~RespConnection() {
  worker_.hold(held_, 0);
  if (follows_) worker_.follow(false);
}

asio::awaitable<void> RespConnection::run() {
  while (!session_.ended() && !lost_) {
    take_input();
    follow();
    const bool was_full = is_full();
    send_output();
    count_memory();
    if (session_.ended() || lost_) break;
    if (session_.tails()) {
      co_await wait_for_records();
    } else if (session_.waits() || is_full()) {
      co_await woken();
    } else if (was_full) {
      co_await asio::post(worker_.context(), asio::use_awaitable);  // There may be whole requests in what was kept.
    } else if (draining_ || end_of_input_) {
      break;
    } else {
      const Turn turn = read_turn();
      send_output();
      if (turn == Turn::drained && !session_.waits() && !session_.ended() && !lost_) {
        count_memory();
        co_await readable();
      } else if (turn == Turn::read) {
        co_await asio::post(worker_.context(), asio::use_awaitable);  // The others' turn.
      }
    }
  }
  session_.end();
  while (!session_.settled()) co_await woken();
  co_await say_goodbye();
}

bool RespConnection::is_full() {
  return session_.output().size() >= RespSession::kOutputBytesMax;
}

/// Lets the session take what has been kept of the input.
void RespConnection::take_input() {
  if (input_.empty()) return;
  input_at_ += session_.take(std::string_view(input_).substr(input_at_));
  if (input_at_ == input_.size()) {
    input_.clear();
    input_at_ = 0;
    give_back(input_);
  } else if (input_at_ > input_.size() / 2) {
    input_.erase(0, input_at_);
    input_at_ = 0;
  }
}

/// Turn::read: there may be more.
RespConnection::Turn RespConnection::read_turn() {
  const ssize_t got =
      ::recv(socket_.native_handle(), worker_.receive_buffer(), RespWorker::kReceiveBytes, MSG_DONTWAIT);
  if (got < 0 && is_not_ready(errno)) return Turn::drained;
  if (got <= 0) {
    end_of_input_ = true;
    lost_ = got < 0;
    return Turn::read;
  }
  std::string_view bytes(worker_.receive_buffer(), static_cast<std::size_t>(got));
  if (input_.empty()) bytes.remove_prefix(session_.take(bytes));
  input_ += bytes;
  const bool full = static_cast<std::size_t>(got) == RespWorker::kReceiveBytes;
  return full || !input_.empty() ? Turn::read : Turn::drained;
}

void RespConnection::count_memory() {
  if (lost_) return;
  const std::size_t now = input_.capacity() + session_.memory_bytes();
  const std::size_t before = std::exchange(held_, now);
  worker_.hold(before, now);
}

/// Tells the worker whether this client follows; what came meanwhile is looked for once more.
void RespConnection::follow() {
  if (follows_ == session_.tails()) return;
  follows_ = !follows_;
  worker_.follow(follows_);
  if (follows_) session_.tail_again(std::chrono::steady_clock::now());
}

void RespConnection::flush() {
  send_output();
  count_memory();
  wake();
}

void RespConnection::wake() {
  wake_.cancel();
}

void RespConnection::drain() {
  draining_ = true;
  if (session_.tails()) session_.end();
  asio::error_code ignored;
  socket_.cancel(ignored);
  wake();
}

void RespConnection::drop() {
  lost_ = true;
  session_.end();
  std::string().swap(input_);
  std::string().swap(session_.output());
  input_at_ = 0;
  worker_.hold(std::exchange(held_, 0), 0);
  asio::error_code ignored;
  socket_.cancel(ignored);
  wake();
}

void RespConnection::send_output() {
  std::string& output = session_.output();
  if (lost_) output.clear();
  if (output.empty() || writing_) return;
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.native_handle(), output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && !is_not_ready(errno)) {
    lost_ = true;
    output.clear();
    return;
  }
  if (sent > 0) output.erase(0, static_cast<std::size_t>(sent));
  if (output.empty()) return give_back(output);
  writing_ = true;
  // This object outlives it: run() does not end while writing_ is set.
  asio::co_spawn(worker_.context(), write_rest(), asio::detached);
}

asio::awaitable<void> RespConnection::readable() {
  asio::error_code ignored;
  co_await socket_.async_wait(StreamProtocol::socket::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> RespConnection::woken() {
  asio::error_code ignored;
  co_await wake_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

/// Until KV.TAIL has an answer, or its client is gone.
asio::awaitable<void> RespConnection::wait_for_records() {
  wake_.expires_at(session_.tail_until().value_or(asio::steady_timer::time_point::max()));
  socket_.async_wait(StreamProtocol::socket::wait_read, [this](const asio::error_code& error) {
    char byte = 0;
    if (error || ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) return;
    lost_ = true;
    wake();
  });
  while (session_.tails() && !lost_) {
    co_await woken();
    if (session_.tails()) session_.tail_again(std::chrono::steady_clock::now());
  }
  asio::error_code ignored;
  socket_.cancel(ignored);
  wake_.expires_at(asio::steady_timer::time_point::max());
  co_await asio::post(worker_.context(), asio::use_awaitable);  // The handler above has been queued: it runs first.
}

asio::awaitable<void> RespConnection::write_rest() {
  asio::error_code error;
  co_await socket_.async_wait(StreamProtocol::socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
  writing_ = false;
  if (error && error != asio::error::operation_aborted) lost_ = true;
  flush();
}

/// Sends the last answers, half-closes and discards what still comes, so that no reset can eat an answer.
asio::awaitable<void> RespConnection::say_goodbye() {
  asio::steady_timer deadline(worker_.context(), worker_.options().drain_timeout);
  bool late = false;
  deadline.async_wait([&](const asio::error_code& error) {
    if (error) return;
    late = true;
    asio::error_code ignored;
    socket_.cancel(ignored);
    wake();
  });
  send_output();
  while (!session_.output().empty() && !lost_ && !late) co_await woken();
  asio::error_code ignored;
  if (!lost_ && !late) socket_.shutdown(StreamProtocol::socket::shutdown_send, ignored);
  while (!lost_ && !late && !end_of_input_) {
    const ssize_t got =
        ::recv(socket_.native_handle(), worker_.receive_buffer(), RespWorker::kReceiveBytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !is_not_ready(errno))) break;
    if (got < 0) co_await readable();
  }
  lost_ = true;
  deadline.cancel();
  socket_.close(ignored);
  while (writing_) co_await woken();
  // Handlers that refer to this frame have been queued: let them run before it goes.
  co_await asio::post(worker_.context(), asio::use_awaitable);
}

}  // namespace kvingest::net
