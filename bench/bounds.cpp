#include "bench/bounds.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/interrupt.hpp"
#include "base/port_file.hpp"
#include "base/posix.hpp"
#include "base/thread.hpp"
#include "feed/tcp.hpp"

namespace kvingest::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReceiveBytes = 256 * 1024;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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
  std::uint64_t count = 0;
#ifdef __SSE2__
  const __m128i line_end = _mm_set1_epi8('\n');
  while (bytes >= 16) {
    // A lane counts down from 0 by one for each match, so it must be added up after 255 steps at most.
    const std::size_t steps = std::min<std::size_t>(bytes / 16, 255);
    __m128i lanes = _mm_setzero_si128();
    for (std::size_t i = 0; i < steps; ++i, from += 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
      lanes = _mm_sub_epi8(lanes, _mm_cmpeq_epi8(block, line_end));
    }
    const __m128i sums = _mm_sad_epu8(lanes, _mm_setzero_si128());
    count += static_cast<std::uint64_t>(_mm_cvtsi128_si64(sums)) +
             static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_srli_si128(sums, 8)));
    bytes -= steps * 16;
  }
#endif
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
    if (!*got) continue;
    if (**got == 0) break;
    report.bytes += **got;
    report.messages += count_line_ends(buffer.data(), **got);
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
