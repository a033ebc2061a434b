#include "query/resp_client.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "net/resp_writer.hpp"

namespace kvingest::query {
namespace {

constexpr int kDepthMax = 4;  // Of arrays in arrays: what KV.ADMIN answers has two.
constexpr std::int64_t kBulkBytesMax = std::int64_t{128} << 20;
constexpr std::int64_t kItemsMax = std::int64_t{1} << 24;
constexpr std::size_t kReplyLineBytesMax = std::size_t{64} << 10;
constexpr std::size_t kReplyReadBytes = std::size_t{64} << 10;

/// "ERR io_error: cannot read" becomes an error of that code.
Error error_of(std::string_view line, std::string_view place) {
  constexpr std::string_view kPrefix = "ERR ";
  Error error{Code::io_error, 0, fmt::format("{} says: {}", place, line)};
  if (!line.starts_with(kPrefix)) return error;
  const std::string_view word = line.substr(kPrefix.size(), line.find(':') - kPrefix.size());
  constexpr std::array kCodes{Code::invalid_argument, Code::too_large, Code::unsupported, Code::busy,
                              Code::no_space,         Code::corrupt,   Code::locked,      Code::failed};
  const auto code = std::ranges::find(kCodes, word, [](Code one) { return to_string(one); });
  if (code == kCodes.end()) return error;
  return {*code, 0, std::string(line.substr(line.find(':') + 2))};
}

}  // namespace

Result<RespClient> RespClient::connect(const Service& service) {
  const auto addresses = net::resolve(service.endpoint);
  KV_TRY(addresses);
  int error = ECONNREFUSED;
  for (const auto& address : *addresses) {
    const int fd = ::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail(errno, "socket");
    RespClient client(fd, service.endpoint.text());
    if (::connect(fd, address.data(), static_cast<socklen_t>(address.size())) != 0) {
      error = errno;
      continue;
    }
    if (!service.token.empty()) KV_TRY(client.ask({"AUTH", service.token}));
    return client;
  }
  return fail(error, "connect to {}", service.endpoint.text());
}

RespClient::RespClient(RespClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      place_(std::move(other.place_)),
      unread_(std::move(other.unread_)),
      at_(other.at_) {}

RespClient::~RespClient() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RespReply> RespClient::ask(std::span<const std::string_view> words) {
  std::string request;
  net::RespWriter to(request, 2);
  to.array(words.size());
  for (const std::string_view word : words) to.bulk(word);
  KV_TRY(send(request));
  return read_reply(0);
}

Result<void> RespClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return fail(errno, "send to {}", place_);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> RespClient::fill() {
  unread_.erase(0, std::exchange(at_, 0));
  const std::size_t before = unread_.size();
  unread_.resize(before + kReplyReadBytes);
  ssize_t got = 0;
  do {
    got = ::recv(fd_, unread_.data() + before, kReplyReadBytes, 0);
  } while (got < 0 && errno == EINTR);
  unread_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return fail(errno, "receive from {}", place_);
  if (got == 0) return fail(Code::io_error, "{} closed the connection before it answered", place_);
  return {};
}

Result<std::string> RespClient::read_line() {
  while (true) {
    const std::size_t end = unread_.find("\r\n", at_);
    if (end != std::string::npos) {
      std::string line = unread_.substr(at_, end - at_);
      at_ = end + 2;
      return line;
    }
    if (unread_.size() - at_ > kReplyLineBytesMax)
      return fail(Code::io_error, "{} answers with a line without end", place_);
    KV_TRY(fill());
  }
}

Result<std::string> RespClient::read_bytes(std::size_t bytes) {
  while (unread_.size() - at_ < bytes + 2) KV_TRY(fill());
  std::string read = unread_.substr(at_, bytes);
  at_ += bytes + 2;
  return read;
}

Result<std::int64_t> RespClient::number_of(std::string_view line) const {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error == std::errc() && end == line.data() + line.size()) return number;
  return fail(Code::io_error, "{} answers '{}' where a number is to be; is it kvingest's --resp?", place_, line);
}

Result<RespReply> RespClient::read_reply(int depth) {
  const auto line = read_line();
  KV_TRY(line);
  const std::string_view rest = std::string_view(*line).substr(std::min<std::size_t>(line->size(), 1));
  const char kind = line->empty() ? ' ' : line->front();
  if (kind == '+') return RespReply{.kind = RespReply::Kind::text, .text = std::string(rest)};
  if (kind == '-') return tl::unexpected<Error>(error_of(rest, place_));
  if (kind != ':' && kind != '$' && kind != '*') {
    return fail(Code::io_error, "{} answers '{}': this is not RESP; is it kvingest's --resp?", place_,
                line->substr(0, 80));
  }
  const auto number = number_of(rest);
  KV_TRY(number);
  if (kind == ':') return RespReply{.kind = RespReply::Kind::integer, .integer = *number};
  if (*number < 0) return RespReply{};
  if (*number > (kind == '$' ? kBulkBytesMax : kItemsMax) || depth == kDepthMax) {
    return fail(Code::io_error, "{} answers with more than can be taken", place_);
  }
  if (kind == '$') {
    auto text = read_bytes(static_cast<std::size_t>(*number));
    KV_TRY(text);
    return RespReply{.kind = RespReply::Kind::text, .text = *std::move(text)};
  }
  RespReply reply{.kind = RespReply::Kind::array};
  for (std::int64_t i = 0; i < *number; ++i) {
    auto item = read_reply(depth + 1);
    KV_TRY(item);
    reply.items.push_back(*std::move(item));
  }
  return reply;
}

}  // namespace kvingest::query
