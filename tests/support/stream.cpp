#include "tests/support/stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace kvingest::test {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds left_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return std::max(left, std::chrono::milliseconds{0});
}

// Sockets must not raise SIGPIPE in the test; pipes fall back to write().
ssize_t send_quietly(int fd, std::string_view bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno == ENOTSOCK) return ::write(fd, bytes.data(), bytes.size());
  return sent;
}

}  // namespace

void give_up(std::string_view what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

Stream::Stream(int fd) : fd_(fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
    unread_ = std::move(other.unread_);
  }
  return *this;
}

void Stream::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool Stream::wait_for(short events, std::chrono::milliseconds bound) const {
  const auto end = Clock::now() + bound;
  pollfd waiting{fd_, events, 0};
  while (true) {
    const int ready = ::poll(&waiting, 1, static_cast<int>(left_until(end).count()));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw std::runtime_error(fmt::format("poll: {}", std::strerror(errno)));
  }
}

std::size_t Stream::send_some(std::string_view bytes, std::chrono::milliseconds patience) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = send_quietly(fd_, bytes.substr(done));
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (!wait_for(POLLOUT, patience)) return done;
    } else if (errno != EINTR) {
      return done;
    }
  }
  return done;
}

void Stream::send_all(std::string_view bytes, std::chrono::milliseconds bound) {
  const std::size_t sent = send_some(bytes, bound);
  if (sent < bytes.size())
    throw std::runtime_error(fmt::format("sent {} of {} bytes: {}", sent, bytes.size(), std::strerror(errno)));
}

bool Stream::fill(std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  while (true) {
    char chunk[65536];
    const ssize_t got = ::read(fd_, chunk, sizeof chunk);
    if (got > 0) {
      unread_.append(chunk, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0 || errno == ECONNRESET) return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) throw std::runtime_error(fmt::format("read: {}", std::strerror(errno)));
    if (!wait_for(POLLIN, left_until(end)))
      throw std::runtime_error(
          fmt::format("nothing to read within {} ms; unread so far: \"{}\"", bound.count(), unread_.substr(0, 200)));
  }
}

std::optional<std::string> Stream::read_line(std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  std::size_t seen = 0;
  while (true) {
    if (const auto at = unread_.find('\n', seen); at != std::string::npos) {
      std::string line = unread_.substr(0, at);
      unread_.erase(0, at + 1);
      return line;
    }
    seen = unread_.size();
    if (!fill(left_until(end))) return std::nullopt;
  }
}

std::string Stream::read_to_end(std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  while (fill(left_until(end))) {
  }
  return std::exchange(unread_, {});
}

std::string Stream::read_exactly(std::size_t bytes, std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  while (unread_.size() < bytes) {
    if (!fill(left_until(end)))
      throw std::runtime_error(fmt::format("the stream ended after {} of {} bytes", unread_.size(), bytes));
  }
  std::string taken = unread_.substr(0, bytes);
  unread_.erase(0, bytes);
  return taken;
}

std::optional<std::string> Stream::read_some(std::chrono::milliseconds bound) {
  if (unread_.empty()) {
    if (!wait_for(POLLIN, bound)) return std::nullopt;
    if (!fill(kWaitMax)) return std::string();
  }
  return std::exchange(unread_, {});
}

}  // namespace kvingest::test
