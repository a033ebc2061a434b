#include "tests/support/tcp_client.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace kvingest::test {
namespace {

sockaddr_in parse_address(std::string_view address) {
  const auto colon = address.rfind(':');
  sockaddr_in parsed{};
  parsed.sin_family = AF_INET;
  std::uint16_t port = 0;
  const std::string host(address.substr(0, colon));
  if (colon == std::string_view::npos || ::inet_pton(AF_INET, host.c_str(), &parsed.sin_addr) != 1)
    throw std::runtime_error(fmt::format("not an IPv4 HOST:PORT: \"{}\"", address));
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  parsed.sin_port = htons(port);
  return parsed;
}

int connect_to(std::string_view address, std::chrono::milliseconds bound) {
  const sockaddr_in target = parse_address(address);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up("socket");
  // The send timeout bounds connect() as well; Stream makes the socket non-blocking afterwards.
  timeval wait{};
  wait.tv_sec = bound.count() / 1000;
  wait.tv_usec = bound.count() % 1000 * 1000;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    give_up(fmt::format("connect {}", address));
  }
  return fd;
}

}  // namespace

TcpClient::TcpClient(std::string_view address, std::chrono::milliseconds bound) : Stream(connect_to(address, bound)) {}

void TcpClient::no_delay() {
  const int on = 1;
  if (::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) give_up("TCP_NODELAY");
}

void TcpClient::receive_buffer(int bytes) {
  if (::setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) != 0) give_up("SO_RCVBUF");
}

void TcpClient::finish_sending() {
  if (::shutdown(fd(), SHUT_WR) != 0 && errno != ENOTCONN) give_up("shutdown");  // ENOTCONN: the peer was faster.
}

void TcpClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0) give_up("SO_LINGER");
  close();
}

std::string send_and_finish(std::string_view address, std::string_view bytes) {
  TcpClient peer(address);
  peer.send_all(bytes);
  peer.finish_sending();
  return peer.read_to_end();
}

TcpListener::TcpListener(int port) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) give_up("socket");
  const int on = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in here = parse_address(fmt::format("127.0.0.1:{}", port));
  socklen_t bytes = sizeof here;
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 || ::listen(fd_, 16) != 0 ||
      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&here), &bytes) != 0)
    give_up("listen");
  port_ = ntohs(here.sin_port);
}

TcpListener::~TcpListener() {
  ::close(fd_);
}

std::string TcpListener::address() const {
  return fmt::format("127.0.0.1:{}", port_);
}

TcpClient TcpListener::accept(std::chrono::milliseconds bound) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(bound.count())) != 1) throw std::runtime_error("nobody connected");
  const int peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (peer < 0) give_up("accept");
  return TcpClient(peer);
}

}  // namespace kvingest::test
