#include "tests/support/resp_peer.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <stdexcept>

namespace kvingest::test {

std::string resp_request(const std::vector<std::string>& words) {
  std::string request = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) request += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return request;
}

std::string RespPeer::line(std::chrono::milliseconds bound) {
  auto read = stream_.read_line(bound);
  if (!read || read->empty()) throw std::runtime_error("closed where an answer should be");
  if (read->back() == '\r') read->pop_back();
  return *read;
}

std::string RespPeer::answer(std::chrono::milliseconds bound) {
  const std::string first = line(bound);
  const std::string rest = first.substr(1);
  const auto list = [&](std::size_t count, char open, char close) {
    std::string text(1, open);
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : " ") + answer(bound);
    return text + close;
  };
  switch (first[0]) {
    case '+':
    case '-':
      return first;
    case ':':
      return rest;
    case '_':
      return "nil";
    case '$':
    case '=': {
      if (rest == "-1") return "nil";
      const auto bytes = static_cast<std::size_t>(std::stoull(rest));
      return "\"" + stream_.read_exactly(bytes + 2, bound).substr(0, bytes) + "\"";
    }
    case '*':
    case '~':
      return rest == "-1" ? "nil" : list(std::stoull(rest), '[', ']');
    case '%':
      return list(2 * std::stoull(rest), '{', '}');
    default:
      throw std::runtime_error("no answer of RESP: " + first);
  }
}

TcpClient connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up("socket");
  TcpClient peer(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("connect to " + path);
  return peer;
}

}  // namespace kvingest::test
