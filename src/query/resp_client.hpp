// resp_client.hpp -- asks a running kvingest over RESP, one request after the other.
//
// Threads:  one. Lifetime: closes its connection when it goes.
// Errors:   connect() fails with io_error; ask() with the error that was answered, by its code where it names one, or
//           with io_error when the connection is lost or what comes is no answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/result.hpp"
#include "net/endpoint.hpp"

namespace kvingest::query {

struct RespReply {
  enum class Kind : std::uint8_t { null, text, integer, array };
  Kind kind = Kind::null;
  std::string text;
  std::int64_t integer = 0;
  std::vector<RespReply> items;
};

/// A running kvingest, and who asks it.
struct Service {
  net::Endpoint endpoint;
  std::string token;  ///< Empty: none is said.
};

class RespClient {
 public:
  static Result<RespClient> connect(const Service& service);
  RespClient(RespClient&& other) noexcept;
  RespClient& operator=(RespClient&&) = delete;
  ~RespClient();

  Result<RespReply> ask(std::span<const std::string_view> words);
  Result<RespReply> ask(std::initializer_list<std::string_view> words) {
    return ask(std::span(words.begin(), words.size()));
  }

 private:
  RespClient(int fd, std::string place) : fd_(fd), place_(std::move(place)) {}

  Result<void> send(std::string_view bytes);
  Result<void> fill();
  Result<std::string> read_line();
  Result<std::string> read_bytes(std::size_t bytes);
  Result<RespReply> read_reply(int depth);
  Result<std::int64_t> number_of(std::string_view line) const;

  int fd_ = -1;
  std::string place_;
  std::string unread_;
  std::size_t at_ = 0;
};

}  // namespace kvingest::query
