#include "net/listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>

#include "base/log.hpp"
#include "net/feed_protocol.hpp"

namespace kvingest::net {
namespace {

constexpr int kBacklog = 1024;
constexpr std::chrono::milliseconds kNoDescriptorsPause{100};
constexpr std::chrono::minutes kLogInterval{1};

/// Finds peers that are gone: without it a half-open connection lives for ever.
void keep_alive(StreamProtocol::socket& socket) {
  const int fd = socket.native_handle();
  const int on = 1;
  const int idle_seconds = 60;  // The system's own is two hours.
  const int interval_seconds = 20;
  const int probes = 3;
  const int user_timeout_ms = 120'000;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
               sizeof on);  // On a Unix socket all but the first fail, and are not needed.
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

/// Removes the socket file that a process left behind which was killed. Nobody listens on it, so nobody can miss it.
void remove_stale_socket(const Endpoint& endpoint, const StreamProtocol::endpoint& address) {
  struct stat status {};
  if (!endpoint.is_unix() || ::lstat(endpoint.unix_path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) return;
  const bool refused =
      ::connect(probe, address.data(), static_cast<socklen_t>(address.size())) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  if (refused) ::unlink(endpoint.unix_path.c_str());
}

tl::unexpected<Error> in_use(const Endpoint& endpoint, std::string_view option) {
  struct stat status {};
  if (endpoint.is_unix() && ::lstat(endpoint.unix_path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return fail(Code::busy, "{}: a file that is no socket is there; remove it or choose another path with {}",
                endpoint.text(), option);
  }
  return fail(Code::busy, "{}: already in use; stop what listens there or choose another with {}", endpoint.text(),
              option);
}

bool no_descriptors(const asio::error_code& error) {
  return error == asio::error::no_descriptors || error.value() == ENFILE;
}

}  // namespace

Listener::Listener(asio::io_context& context, Accept accept, Refused refused)
    : context_(context),
      accept_(std::move(accept)),
      refused_(std::move(refused)),
      acceptor_(context),
      reserve_fd_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Listener::~Listener() {
  stop();
  if (reserve_fd_ >= 0) ::close(reserve_fd_);
}

Result<void> Listener::open(const Endpoint& endpoint, std::string_view option) {
  auto addresses = resolve(endpoint);
  KV_TRY(addresses);
  const auto& address = addresses->front();
  local_only_ = is_local(address);
  remove_stale_socket(endpoint, address);
  asio::error_code error;
  acceptor_.open(address.protocol(), error);
  // A port can be used again right after a crash, while old connections are still in TIME_WAIT.
  if (!error && !endpoint.is_unix()) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  // Before there is a path that somebody could open.
  if (!error && endpoint.owner_only && ::fchmod(acceptor_.native_handle(), S_IRUSR | S_IWUSR) != 0) {
    return fail(errno, "chmod the socket of {}", endpoint.text());
  }
  if (!error) acceptor_.bind(address, error);
  if (!error) acceptor_.listen(kBacklog, error);
  if (error == asio::error::address_in_use) return in_use(endpoint, option);
  if (error) return fail(error.value(), "listen on {}", endpoint.text());
  address_ = to_text(acceptor_.local_endpoint(error));
  unix_path_ = endpoint.unix_path;
  return {};
}

void Listener::start() {
  asio::co_spawn(context_, accept_all(), asio::detached);
}

void Listener::stop() {
  if (!acceptor_.is_open()) return;
  asio::error_code ignored;
  acceptor_.close(ignored);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

asio::awaitable<void> Listener::accept_all() {
  auto said = std::chrono::steady_clock::time_point::min();
  asio::steady_timer pause(context_);
  while (acceptor_.is_open()) {
    asio::error_code error;
    StreamProtocol::endpoint peer;
    StreamProtocol::socket socket =
        co_await acceptor_.async_accept(peer, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      keep_alive(socket);
      accept_(std::move(socket), to_text(peer));
      continue;
    }
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) co_return;
    const auto now = std::chrono::steady_clock::now();
    if (said == std::chrono::steady_clock::time_point::min() || now - said >= kLogInterval) {
      log_warning("accept on {}: {}", address_, error.message());
      said = now;
    }
    if (no_descriptors(error)) refuse_one();
    pause.expires_after(kNoDescriptorsPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

/// Gives up the reserve to accept one peer, tells it, and takes the reserve back.
void Listener::refuse_one() {
  if (reserve_fd_ < 0) return;
  ::close(reserve_fd_);
  asio::error_code error;
  acceptor_.non_blocking(true, error);
  if (auto peer = acceptor_.accept(error); !error) {
    refusal_.empty() ? refuse(peer, "no_descriptors", "try again later") : refuse(peer, refusal_);
    refused_();
  }
  reserve_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void refuse(StreamProtocol::socket& socket, std::string_view text) {
  // A peer that cannot take one line loses nothing by not getting it.
  [[maybe_unused]] const auto ignored =
      ::send(socket.native_handle(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void refuse(StreamProtocol::socket& socket, std::string_view code, std::string_view message) {
  refuse(socket, ControlAnswer("error").add("code", code).add("message", message).add("closing").line());
}

}  // namespace kvingest::net
