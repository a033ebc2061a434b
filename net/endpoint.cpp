#include "net/endpoint.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace kvingest::net {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port <= 65535;
}

}  // namespace

std::string Endpoint::text() const {
  if (is_unix()) return std::string(kUnixPrefix) + unix_path;
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with(kUnixPrefix)) {
    endpoint.unix_path = text.substr(kUnixPrefix.size());
    if (endpoint.unix_path.empty() || endpoint.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      return fail(Code::invalid_argument, "'{}': a Unix socket's path has 1 to {} bytes", text,
                  sizeof(sockaddr_un::sun_path) - 1);
    }
    return endpoint;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !is_port(text.substr(colon + 1))) {
    return fail(Code::invalid_argument, "'{}' is no HOST:PORT, [V6]:PORT or unix:PATH", text);
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty())
    return fail(Code::invalid_argument, "'{}': the host is missing, as in 127.0.0.1:{}", text, text.substr(colon + 1));
  endpoint.host = host;
  endpoint.port = text.substr(colon + 1);
  return endpoint;
}

Result<std::vector<StreamProtocol::endpoint>> resolve(const Endpoint& endpoint) {
  std::vector<StreamProtocol::endpoint> addresses;
  if (endpoint.is_unix()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    endpoint.unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
    const std::size_t bytes = offsetof(sockaddr_un, sun_path) + endpoint.unix_path.size() + 1;
    addresses.emplace_back(&address, bytes);
    return addresses;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found); error != 0) {
    return fail(Code::invalid_argument, "{}: {}", endpoint.text(), ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    addresses.emplace_back(at->ai_addr, at->ai_addrlen);
  }
  return addresses;
}

bool is_local(const StreamProtocol::endpoint& address) noexcept {
  const auto* any = reinterpret_cast<const sockaddr*>(address.data());
  if (any->sa_family == AF_UNIX) return true;
  if (any->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(any)->sin_addr.s_addr) >> 24) == 127;
  }
  if (any->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(any)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
  }
  return false;
}

std::string to_text(const StreamProtocol::endpoint& address) {
  const auto* any = reinterpret_cast<const sockaddr*>(address.data());
  if (any->sa_family == AF_UNIX) {
    const std::size_t head = offsetof(sockaddr_un, sun_path);
    const char* path = reinterpret_cast<const sockaddr_un*>(any)->sun_path;
    return std::string(kUnixPrefix) +
           (address.size() > head ? std::string(path, strnlen(path, address.size() - head)) : "");
  }
  char host[INET6_ADDRSTRLEN] = {};
  if (any->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(any);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(any);
  ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(v4->sin_port));
}

}  // namespace kvingest::net
