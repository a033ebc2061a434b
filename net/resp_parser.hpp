// resp_parser.hpp -- requests of the Redis protocol, cut out of a stream: arrays of bulk strings, or inline words.
//
//   *2\r\n$3\r\nGET\r\n$1\r\na\r\n        and        GET a\r\n        are the words {"GET", "a"}
//
// Nothing is set aside because a length announces it: memory grows with what has arrived. What breaks the protocol, or
// one of the limits, is answered with Redis' own text, and the connection is to be closed, since the stream's next
// request cannot be found.
//
// Threads:  one. Lifetime: words point into the input of the last call of next(), or into the parser.
// Errors:   Step::broken; problem() is the text for the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvingest::net {

inline constexpr std::size_t kInlineBytesMax = std::size_t{64} << 10;

/// What a request may announce. Redis has the same limits, the last one aside, which it calls the query buffer's.
struct RespLimits {
  std::size_t words_max = std::size_t{1} << 20;
  std::size_t word_bytes_max = std::size_t{64} << 20;
  std::size_t request_bytes_max = (std::size_t{64} << 20) + (std::size_t{1} << 20);  ///< Of all its words.
  bool authenticated = true;  ///< Else the texts say that more would be allowed.

  /// Of a peer that has not said who it is.
  static constexpr RespLimits of_stranger() { return {10, 16'384, std::size_t{256} << 10, false}; }
};

class RespParser {
 public:
  enum class Step : std::uint8_t {
    more,     ///< The request goes on behind the input.
    command,  ///< words() has it.
    broken,   ///< problem() says why.
  };

  /// Looks for the request that begins at the front of `input`: all that has come since the last done(). Until the
  /// request is complete each call gets the same bytes with more behind them, and goes on where the last one stopped.
  Step next(std::string_view input);

  /// The request is dealt with: returns how many bytes it had, and begins anew.
  std::size_t done() noexcept;

  /// The words of the request; none: the peer sent an empty line or array, which has no answer.
  [[nodiscard]] const std::vector<std::string_view>& words() const noexcept { return words_; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  void limit(const RespLimits& limits) noexcept { limits_ = limits; }
  /// Beside the input.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return pieces_.capacity() * sizeof(Piece) + words_.capacity() * sizeof(std::string_view);
  }

 private:
  struct Piece {
    std::size_t offset;
    std::size_t bytes;
  };
  enum class Line : std::uint8_t { more, found, broken };

  Step next_array(std::string_view input);
  Step next_inline(std::string_view input);
  Step read_word(std::string_view input);
  Line read_length(std::string_view input, std::string_view what, std::int64_t& value);
  Step fail(std::string_view problem);

  RespLimits limits_;
  std::size_t at_ = 0;          // Behind what has been understood of the request.
  std::size_t searched_ = 0;    // Up to where the end of the present line has been looked for.
  std::size_t words_left_ = 0;  // Of the array.
  std::size_t word_bytes_ = 0;  // Of the word whose length has been read.
  std::size_t request_bytes_ = 0;
  bool in_array_ = false;
  bool has_word_bytes_ = false;
  bool complete_ = false;
  std::vector<Piece> pieces_;
  std::vector<std::string> inline_words_;
  std::vector<std::string_view> words_;
  std::string problem_;
};

/// Splits a line at blanks; words in double quotes may hold \n \r \t \b \a \xNN and \", those in single quotes \'.
/// False where a quote is not closed, or has something other than a blank behind it.
[[nodiscard]] bool split_quoted(std::string_view line, std::vector<std::string>& words);

}  // namespace kvingest::net
