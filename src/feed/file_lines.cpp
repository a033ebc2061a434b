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
  FileLines(File file, std::uint64_t count, ControlLike control_like)
      : file_(std::move(file)),
        fd_(file_.is_open() ? file_.fd() : STDIN_FILENO),
        left_(count),
        escapes_(control_like == ControlLike::escape),
        buffer_(kChunkBytes) {}

  Result<Chunk> next(std::uint64_t lines_max) override {
    const std::uint64_t wanted = std::min(lines_max, left_);
    if (wanted == 0) return Chunk{};
    auto chunk = take(wanted);
    while (chunk && chunk->bytes.empty() && !ended_) {
      KV_TRY(read_more());
      chunk = take(wanted);
    }
    KV_TRY(chunk);
    left_ -= chunk->lines;
    return chunk;
  }

 private:
  /// Whole lines from the front of what was read; part of one only when it fills the buffer.
  Result<Chunk> take(std::uint64_t lines_max) {
    const char* const front = buffer_.data() + begin_;
    const char* const end = buffer_.data() + end_;
    const char* at = front;
    std::uint64_t lines = 0;
    const bool full = end_ - begin_ == buffer_.size();
    while (lines < lines_max && at < end) {
      const bool begins_here = at != front || (!in_line_ && !escaped_);
      if (*at == '!' && escapes_ && begins_here) {
        const auto control = looks_like_control({at, static_cast<std::size_t>(end - at)});
        if (!control && at == front && full)
          return fail(Code::invalid_argument, "{}: a line begins with {} '!', too many to tell what it is", name(),
                      buffer_.size());
        if (control.value_or(false) && at == front) return escaped_ = true, Chunk{"!", 0};
        if (control.value_or(true)) break;
      }
      const auto* line_end = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      if (line_end == nullptr) break;
      at = line_end + 1;
      ++lines;
    }
    if (lines == 0 && full) at = end;
    const auto bytes = static_cast<std::size_t>(at - front);
    if (bytes > 0) in_line_ = lines == 0, escaped_ = false;
    begin_ += bytes;
    return Chunk{{front, bytes}, lines};
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
    if (got < 0) return fail(errno, "read {}", name());
    end_ += static_cast<std::size_t>(got);
    ended_ = got == 0;
    // The last line gets the LF that it lacks; the buffer has room, for a full one has been taken.
    if (ended_ && (end_ > 0 || in_line_)) buffer_[end_++] = '\n';
    return {};
  }

  [[nodiscard]] std::string name() const { return file_.is_open() ? file_.path().native() : "stdin"; }

  File file_;
  int fd_;
  std::uint64_t left_;
  bool escapes_;
  bool escaped_ = false;  ///< The `!` in front of the line that begins at begin_ is given out already.
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< What was read and not yet taken: [begin_, end_) of the buffer.
  std::size_t end_ = 0;
  bool in_line_ = false;  ///< The last chunk ended inside a line.
  bool ended_ = false;    ///< There is nothing more to read.
};

}  // namespace

std::optional<bool> looks_like_control(std::string_view line) {
  constexpr std::string_view kWord = "kv ";
  const std::size_t marks = std::min(line.find_first_not_of('!'), line.size());
  if (marks == 0 && !line.empty()) return false;
  const std::string_view rest = line.substr(marks, kWord.size());
  if (rest == kWord) return true;
  if (rest.size() < kWord.size() && kWord.starts_with(rest)) return std::nullopt;
  return false;
}

Result<std::unique_ptr<LineSource>> file_lines(const std::filesystem::path& path, std::uint64_t count,
                                               ControlLike control_like) {
  if (path == "-") return std::make_unique<FileLines>(File(), count, control_like);
  auto file = File::open(Posix::real(), path, O_RDONLY);
  KV_TRY(file);
  return std::make_unique<FileLines>(*std::move(file), count, control_like);
}

}  // namespace kvingest::feed
