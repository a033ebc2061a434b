// first_bytes.hpp -- tells a peer that speaks another protocol from one that sends lines, by what it sends first.
//
// Four patterns and nothing else, since data may begin with any byte:
//
//   HTTP    ^(GET|POST|PUT|HEAD|OPTIONS|CONNECT) \S+ HTTP/1    RFC 9112, section 3
//   TLS     16 03 00..04                                       RFC 8446, section 5.1
//   telnet  FF FB, FF FD                                       RFC 854: IAC WILL, IAC DO; who begins cannot refuse, and
//                                                              FF FE is how text in UTF-16 begins
//   RESP    ^\*[0-9]+\r\n\$                                    Redis serialization protocol: a command
//
// Threads: a function without state.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvingest::net {

enum class FirstBytes : std::uint8_t {
  undecided,  ///< Could still become one of the patterns: more bytes are needed.
  lines,
  http,
  tls,
  telnet,
  resp,
};

/// What a stream that begins with `bytes` is. Decided within the first kFirstBytesMax bytes.
[[nodiscard]] FirstBytes recognize(std::string_view bytes) noexcept;

inline constexpr std::size_t kFirstBytesMax = 8 << 10;  // The longest request target that common servers take.

}  // namespace kvingest::net
