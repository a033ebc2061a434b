// inflate.hpp -- undoes Content-Encoding while a body arrives, within bounds.
//
// libcurl's own decoding takes a gzip body that is cut in its middle for a whole one, and does not bound what comes
// out of it, so it is switched off. Several gzip members in a row are one body, as RFC 1952 has it.
//
// Threads: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kvingest/function_ref.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

class BodyDecoder {
 public:
  /// Takes a part of the decoded body; an error ends the transfer.
  using Output = FunctionRef<Result<void>(std::string_view bytes)>;

  BodyDecoder() = default;
  BodyDecoder(const BodyDecoder&) = delete;
  BodyDecoder& operator=(const BodyDecoder&) = delete;
  ~BodyDecoder() { clear(); }

  /// Begins a body. `encoding` is the value of Content-Encoding; bounds of 0 do not hold.
  /// Returns none, or bad_encoding with problem().
  Kind begin(std::string_view encoding, std::uint64_t bytes_max, unsigned ratio_max);
  /// Decodes a part. Returns none, too_large, bomb, bad_encoding, or sink.
  Kind write(std::string_view bytes, Output output);
  /// The last byte has come. Returns none or truncated.
  Kind finish();
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  void clear() noexcept;
  Kind say(Kind kind, std::string problem);
  Kind give(std::string_view bytes, Output output);

  bool inflating_ = false;
  bool member_open_ = false;   // A gzip member has begun and not ended.
  bool member_ended_ = false;  // The next byte begins another one.
  bool any_ = false;
  z_stream stream_{};
  std::uint64_t in_ = 0;
  std::uint64_t out_ = 0;
  std::uint64_t bytes_max_ = 0;
  unsigned ratio_max_ = 0;
  std::string problem_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace kvingest::http
