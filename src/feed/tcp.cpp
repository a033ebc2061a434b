#include "feed/tcp.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/quantity.hpp"

namespace kvingest::feed {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (error != 0) return fail(Code::invalid_argument, "{}: {}", address.host, ::gai_strerror(error));
  return AddressList(found, ::freeaddrinfo);
}

void set_option(int fd, int level, int name, int value) {
  // The options set here only tune; a kernel that refuses one still sends and receives.
  [[maybe_unused]] const int ignored = ::setsockopt(fd, level, name, &value, sizeof value);
}

void set_tick(int fd, int which) {
  const timeval tick{.tv_sec = 0, .tv_usec = std::chrono::microseconds(kTick).count()};
  [[maybe_unused]] const int ignored = ::setsockopt(fd, SOL_SOCKET, which, &tick, sizeof tick);
}

bool is_tick(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

Stream stream_on(Socket socket) {
  set_tick(socket.fd(), SO_RCVTIMEO);
  set_tick(socket.fd(), SO_SNDTIMEO);
  return Stream(std::move(socket));
}

Result<std::string> name_of(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error =
      ::getnameinfo(address, bytes, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return fail(Code::io_error, "getnameinfo: {}", ::gai_strerror(error));
  return Address{host, port}.text();
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool has_port = colon != std::string_view::npos && parse_count(text.substr(colon + 1), 0, 65535).has_value();
  if (!has_port || host.empty() || (!bracketed && host.find(':') != std::string_view::npos))
    return fail(Code::invalid_argument, "'{}' is not HOST:PORT, as in 127.0.0.1:5555 or [::1]:5555", text);
  return Address{std::string(host), std::string(text.substr(colon + 1))};
}

std::string Address::text() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Socket::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Stream> Stream::connect(const Address& to) {
  auto places = resolve(to, 0);
  KV_TRY(places);
  int error = 0;
  for (const addrinfo* place = places->get(); place != nullptr; place = place->ai_next) {
    Socket socket(::socket(place->ai_family, place->ai_socktype | SOCK_CLOEXEC, place->ai_protocol));
    if (socket.is_open() && ::connect(socket.fd(), place->ai_addr, place->ai_addrlen) == 0)
      return stream_on(std::move(socket));
    error = errno;
  }
  return fail(error, "connect to {}", to.text());
}

void Stream::send_at_once() const {
  set_option(fd(), IPPROTO_TCP, TCP_NODELAY, 1);
}

Result<std::size_t> Stream::send_some(std::string_view bytes) const {
  const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (is_tick(errno)) return std::size_t{0};
  return fail(errno, "send");
}

Result<void> Stream::half_close() const {
  if (::shutdown(fd(), SHUT_WR) != 0) return fail(errno, "close the sending side");
  return {};
}

Result<Received> Stream::receive(char* to, std::size_t bytes) const {
  const ssize_t got = ::recv(fd(), to, bytes, 0);
  if (got >= 0) return Received{static_cast<std::size_t>(got), got == 0};
  if (is_tick(errno)) return Received{};
  return fail(errno, "receive");
}

std::uint64_t Stream::unsent_bytes() const {
  int bytes = 0;
  return ::ioctl(fd(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void Stream::reset() noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  [[maybe_unused]] const int ignored = ::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.close();
}

Result<Listener> Listener::listen(const Address& at) {
  auto places = resolve(at, AI_PASSIVE);
  KV_TRY(places);
  const addrinfo& place = **places;
  Socket socket(::socket(place.ai_family, place.ai_socktype | SOCK_CLOEXEC, place.ai_protocol));
  if (!socket.is_open()) return fail(errno, "socket for {}", at.text());
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.fd(), place.ai_addr, place.ai_addrlen) != 0 || ::listen(socket.fd(), 1) != 0)
    return fail(errno, "listen on {}", at.text());
  set_tick(socket.fd(), SO_RCVTIMEO);
  return Listener(std::move(socket));
}

Result<std::string> Listener::address() const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return fail(errno, "getsockname");
  return name_of(reinterpret_cast<const sockaddr*>(&address), bytes);
}

Result<std::optional<Stream>> Listener::accept() const {
  const int fd_accepted = ::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd_accepted >= 0) return stream_on(Socket(fd_accepted));
  if (is_tick(errno)) return std::nullopt;
  return fail(errno, "accept");
}

}  // namespace kvingest::feed
