#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/interrupt.hpp"
#include "base/posix.hpp"
#include "feed/line_source.hpp"

namespace kvingest::feed {
namespace {

class FileLines final : public LineSource {
 public:
  /// `file` is closed for stdin, whose descriptor is not ours to close.
  FileLines(File file, std::uint64_t count)
      : file_(std::move(file)), fd_(file_.is_open() ? file_.fd() : STDIN_FILENO), left_(count), buffer_(kChunkBytes) {}

  Result<Chunk> next(std::uint64_t lines_max) override {
    const std::uint64_t wanted = std::min(lines_max, left_);
    if (wanted == 0) return Chunk{};
    Chunk chunk = take(wanted);
    while (chunk.bytes.empty() && !ended_) {
      KV_TRY(read_more());
      chunk = take(wanted);
    }
    left_ -= chunk.lines;
    return chunk;
  }

 private:
  /// Whole lines from the front of what was read; part of one only when it fills the buffer.
  Chunk take(std::uint64_t lines_max) {
    const char* const front = buffer_.data() + begin_;
    const char* const end = buffer_.data() + end_;
    const char* at = front;
    std::uint64_t lines = 0;
    while (lines < lines_max && at < end) {
      const auto* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      if (line_end == nullptr) break;
      at = line_end + 1;
      ++lines;
    }
    const bool full = end_ - begin_ == buffer_.size();
    if (lines == 0 && full) at = end;
    const auto bytes = static_cast<std::size_t>(at - front);
    if (bytes > 0) in_line_ = lines == 0;
    begin_ += bytes;
    return {{front, bytes}, lines};
  }

  Result<void> read_more() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) {
      ended_ = interrupted();
      return {};
    }
    if (got < 0) return fail(errno, "read {}", file_.is_open() ? file_.path().native() : "stdin");
    end_ += static_cast<std::size_t>(got);
    ended_ = got == 0;
    // The last line gets the LF that it lacks; the buffer has room, for a full one has been taken.
    if (ended_ && (end_ > 0 || in_line_)) buffer_[end_++] = '\n';
    return {};
  }

  File file_;
  int fd_;
  std::uint64_t left_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< What was read and not yet taken: [begin_, end_) of the buffer.
  std::size_t end_ = 0;
  bool in_line_ = false;  ///< The last chunk ended inside a line.
  bool ended_ = false;    ///< There is nothing more to read.
};

}  // namespace

Result<std::unique_ptr<LineSource>> file_lines(const std::filesystem::path& path, std::uint64_t count) {
  if (path == "-") return std::make_unique<FileLines>(File(), count);
  auto file = File::open(Posix::real(), path, O_RDONLY);
  KV_TRY(file);
  return std::make_unique<FileLines>(*std::move(file), count);
}

}  // namespace kvingest::feed
