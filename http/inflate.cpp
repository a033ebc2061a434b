#include "http/inflate.hpp"

namespace kvingest::http {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
// Small bodies of one repeated byte are no bomb: the ratio is looked at from here on.
constexpr std::uint64_t kHarmlessBytes = 256 * 1024;
constexpr int kGzipOrZlib = 15 + 32;

}  // namespace

void BodyDecoder::clear() noexcept {
  if (inflating_) inflateEnd(&stream_);
  inflating_ = false;
}

Kind BodyDecoder::say(Kind kind, std::string problem) {
  problem_ = std::move(problem);
  return kind;
}

Kind BodyDecoder::begin(std::string_view encoding, std::uint64_t bytes_max, unsigned ratio_max) {
  clear();
  member_open_ = member_ended_ = any_ = false;
  in_ = out_ = 0;
  bytes_max_ = bytes_max;
  ratio_max_ = ratio_max;
  problem_.clear();
  if (encoding.empty() || encoding == "identity") return Kind::none;
  if (encoding != "gzip" && encoding != "x-gzip" && encoding != "deflate") {
    return say(Kind::bad_encoding, fmt::format("the body is encoded as '{}', which was not asked for", encoding));
  }
  stream_ = {};
  if (inflateInit2(&stream_, kGzipOrZlib) != Z_OK) return say(Kind::bad_encoding, "zlib could not be started");
  inflating_ = true;
  if (!buffer_) buffer_ = std::make_unique<char[]>(kBufferBytes);
  return Kind::none;
}

Kind BodyDecoder::give(std::string_view bytes, Output output) {
  out_ += bytes.size();
  if (bytes_max_ != 0 && out_ > bytes_max_) {
    return say(Kind::too_large, fmt::format("the body is larger than {} bytes", bytes_max_));
  }
  if (inflating_ && ratio_max_ != 0 && out_ > kHarmlessBytes && out_ / ratio_max_ > in_) {
    return say(Kind::bomb,
               fmt::format("{} compressed bytes became more than {}: over {} times as many", in_, out_, ratio_max_));
  }
  auto taken = output(bytes);
  return taken ? Kind::none : say(Kind::sink, std::move(taken.error().text));
}

Kind BodyDecoder::write(std::string_view bytes, Output output) {
  any_ = any_ || !bytes.empty();
  in_ += bytes.size();
  if (!inflating_) return give(bytes, output);
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  while (stream_.avail_in > 0) {
    if (member_ended_ && inflateReset(&stream_) != Z_OK) return say(Kind::bad_encoding, "zlib is stuck");
    member_ended_ = false;
    member_open_ = true;
    int status = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.get());
      stream_.avail_out = kBufferBytes;
      status = ::inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        return say(Kind::bad_encoding, fmt::format("the body is not what its Content-Encoding says: {}",
                                                   stream_.msg != nullptr ? stream_.msg : "damaged"));
      }
      const std::size_t got = kBufferBytes - stream_.avail_out;
      if (const Kind wrong = got > 0 ? give({buffer_.get(), got}, output) : Kind::none; wrong != Kind::none)
        return wrong;
    } while (status == Z_OK && stream_.avail_out == 0);
    if (status == Z_STREAM_END) {
      member_open_ = false;
      member_ended_ = true;
    }
    if (status == Z_BUF_ERROR) break;
  }
  return Kind::none;
}

Kind BodyDecoder::finish() {
  const bool cut = inflating_ && any_ && member_open_;
  clear();
  return cut ? say(Kind::truncated, "the compressed body ends in its middle") : Kind::none;
}

}  // namespace kvingest::http
