#include "bench/bounds.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "base/interrupt.hpp"
#include "base/port_file.hpp"
#include "base/posix.hpp"
#include "base/thread.hpp"
#include "bench/clock.hpp"
#include "feed/tcp.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{256} << 10;

/// Waits for the connection. Fails with: io_error, also when an interrupt came first.
Result<feed::Stream> accept_one(feed::Listener& listener) {
  while (!interrupted()) {
    auto client = listener.accept();
    KV_TRY(client);
    if (*client) return std::move(**client);
  }
  return fail(Code::io_error, "interrupted");
}

}  // namespace

std::uint64_t count_line_ends(const char* from, std::size_t bytes) noexcept {
  // Counts in lanes of bytes, which compilers turn into vector instructions; added up before a lane can overflow.
  constexpr std::size_t kLanes = 16;
  std::uint64_t count = 0;
  while (bytes >= kLanes) {
    std::array<std::uint8_t, kLanes> lanes{};
    const std::size_t steps = std::min<std::size_t>(bytes / kLanes, std::numeric_limits<std::uint8_t>::max());
    for (std::size_t step = 0; step < steps; ++step, from += kLanes) {
      for (std::size_t i = 0; i < kLanes; ++i)
        lanes[i] = static_cast<std::uint8_t>(lanes[i] + (from[i] == '\n' ? 1 : 0));
    }
    for (const std::uint8_t lane : lanes) count += lane;
    bytes -= steps * kLanes;
  }
  return count + static_cast<std::uint64_t>(std::count(from, from + bytes, '\n'));
}

Result<BoundReport> discard_feed(const std::filesystem::path& port_file, std::optional<int> cpu) {
  if (cpu) KV_TRY(pin_this_thread(*cpu));
  auto listener = feed::Listener::listen({"127.0.0.1", "0"});
  KV_TRY(listener);
  auto place = listener->address();
  KV_TRY(place);
  KV_TRY(write_port_file(port_file, std::array{ListenerPlace{"feed", *place}}));
  auto client = accept_one(*listener);
  KV_TRY(client);

  const auto start = Clock::now();
  ::setsockopt(client->fd(), SOL_SOCKET, SO_RCVLOWAT, &kDiscardLowWaterBytes, sizeof kDiscardLowWaterBytes);
  std::vector<char> buffer(kReceiveBytes);
  BoundReport report;
  while (!interrupted()) {
    auto got = client->receive(buffer.data(), buffer.size());
    KV_TRY(got);
    if (got->ended) break;
    report.bytes += got->bytes;
    report.messages += count_line_ends(buffer.data(), got->bytes);
  }
  report.seconds = seconds_since(start);
  return report;
}

Result<BoundReport> seek_and_write(const std::filesystem::path& path, std::uint64_t count, std::optional<int> cpu) {
  if (cpu) KV_TRY(pin_this_thread(*cpu));
  auto file = File::open(Posix::real(), path, O_RDWR | O_CREAT | O_TRUNC);
  KV_TRY(file);
  std::array<char, kSeekWriteBytes> record;
  record.fill('x');
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto offset = static_cast<off_t>(i * kSeekWriteBytes);
    if (::lseek(file->fd(), offset, SEEK_SET) != offset) return fail(errno, "lseek {} to {}", path.native(), offset);
    const ssize_t written = ::write(file->fd(), record.data(), record.size());
    if (written != static_cast<ssize_t>(record.size()))
      return fail(written < 0 ? errno : EIO, "write {} at {}", path.native(), offset);
  }
  return BoundReport{count, count * kSeekWriteBytes, seconds_since(start)};
}

}  // namespace kvingest::bench
