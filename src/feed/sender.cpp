#include "feed/sender.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/interrupt.hpp"

namespace kvingest::feed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// After an interrupt, how many ticks a peer gets to take the rest of a line.
constexpr int kTicksToEndLine = 4;
/// An open loop wakes up for what is due, but not more often than this: each wake-up costs some microseconds.
constexpr nanoseconds kWakeEvery{100'000};
/// How long a client that has taken everything is given to close first.
constexpr auto kCloseGrace = std::chrono::seconds(1);
constexpr std::size_t kErrorTextBytesMax = 4096;

/// Sleeps until `then`, or an interrupt.
void sleep_until(Clock::time_point then) {
  for (auto now = Clock::now(); now < then && !interrupted(); now = Clock::now()) {
    // In slices, because a signal may come just before the sleep begins.
    const nanoseconds slice = std::min<nanoseconds>(then - now, kTick);
    const timespec time{.tv_sec = slice.count() / 1'000'000'000, .tv_nsec = slice.count() % 1'000'000'000};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  }
}

class Pacer {
 public:
  explicit Pacer(const Pace& pace) : pace_(pace), start_(Clock::now()) {
    // The kernel may put off a wake-up by the timer slack, 50 us by default: longer than the intervals asked for here.
    if (pace.interval.count() > 0 || pace.lines_per_second > 0) ::prctl(PR_SET_TIMERSLACK, 1UL);
  }

  /// Waits until lines are due behind the first `sent`, and returns how many of `wanted`; 0 after an interrupt.
  std::uint64_t wait(std::uint64_t sent, std::uint64_t wanted) {
    if (pace_.lines_per_second == 0) return interrupted() ? 0 : wanted;
    while (!interrupted()) {
      const auto now = Clock::now();
      const std::uint64_t due = lines_due(now);
      if (due > sent) return std::min(due - sent, wanted);
      sleep_until(std::max(due_at(sent), std::min(now + kWakeEvery, due_at(sent + wanted - 1))));
    }
    return 0;
  }

  /// When line `sent` is meant to go: now, unless the loop is open.
  [[nodiscard]] Clock::time_point due(std::uint64_t sent) const {
    return pace_.lines_per_second > 0 ? due_at(sent) : Clock::now();
  }

  void after_batch() const {
    if (pace_.interval.count() > 0) sleep_until(Clock::now() + pace_.interval);
  }

 private:
  /// Line n, from 0, is due at n / rate seconds.
  [[nodiscard]] Clock::time_point due_at(std::uint64_t line) const {
    const double seconds = static_cast<double>(line) / static_cast<double>(pace_.lines_per_second);
    return start_ + std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
  }
  [[nodiscard]] std::uint64_t lines_due(Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - start_).count();
    return 1 + static_cast<std::uint64_t>(seconds * static_cast<double>(pace_.lines_per_second));
  }

  Pace pace_;
  Clock::time_point start_;
};

/// Sends all of `chunk`. After an interrupt only as far as the peer takes it soon: a line should not be cut.
Result<void> send_all(Stream& to, const Chunk& chunk, Sent& sent, Progress& progress) {
  std::string_view left = chunk.bytes;
  std::uint64_t lines_left = chunk.lines;
  for (int ticks_left = kTicksToEndLine; !left.empty() && ticks_left > 0;) {
    auto count = to.send_some(left);
    KV_TRY(count);
    const std::string_view part = left.substr(0, *count);
    left.remove_prefix(*count);
    // Counting is for what was cut: of a chunk that went in one piece the number is known.
    const std::uint64_t lines =
        left.empty() ? lines_left : static_cast<std::uint64_t>(std::count(part.begin(), part.end(), '\n'));
    lines_left -= lines;
    sent.lines += lines;
    sent.bytes += part.size();
    if (!part.empty()) sent.in_line = part.back() != '\n';
    progress.update(sent.lines);
    if (interrupted()) --ticks_left;
  }
  return {};
}

/// Keeps the lines of the peer's answers that report an error.
class ErrorLines {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c != '\n' && line_.size() < kErrorTextBytesMax) line_ += c;
      if (c == '\n') end_line();
    }
  }
  std::string take() {
    end_line();
    return std::move(errors_);
  }

 private:
  void end_line() {
    if (line_.starts_with("!kv error") && errors_.size() < kErrorTextBytesMax) errors_ += line_ + "\n";
    line_.clear();
  }

  std::string line_;
  std::string errors_;
};

}  // namespace

Result<void> send_lines(std::span<Stream> to, LineSource& source, const Pace& pace, Sent& sent, Progress& progress,
                        BatchSent on_batch) {
  Pacer pacer(pace);
  std::size_t turn = 0;
  std::uint64_t batch_left = pace.batch_lines;
  for (;;) {
    const std::uint64_t wanted = pacer.wait(sent.lines, batch_left);
    if (wanted == 0) return {};
    auto chunk = source.next(wanted);
    KV_TRY(chunk);
    if (chunk->bytes.empty()) return {};
    const auto due = pacer.due(sent.lines);
    KV_TRY(send_all(to[turn], *chunk, sent, progress));
    on_batch(sent.lines, due);
    batch_left -= chunk->lines;
    if (batch_left > 0) continue;
    batch_left = pace.batch_lines;
    turn = (turn + 1) % to.size();
    pacer.after_batch();
  }
}

Result<void> send_lines(std::span<Stream> to, LineSource& source, const Pace& pace, Sent& sent, Progress& progress) {
  return send_lines(to, source, pace, sent, progress, [](std::uint64_t, Clock::time_point) {});
}

Result<void> send_stop(Stream& to, std::string_view line) {
  const std::string bytes = std::string(line) + "\n";
  Sent uncounted;
  Progress silent(nullptr, "", 0);
  return send_all(to, {bytes, 1}, uncounted, silent);
}

Result<Farewell> finish_push(Stream& with, const Sent& sent, Progress& progress) {
  Farewell farewell;
  ErrorLines errors;
  std::array<char, 4096> buffer;
  while (!farewell.closed && !interrupted()) {
    auto got = with.receive(buffer.data(), buffer.size());
    KV_TRY(got);
    progress.update(sent.lines);
    farewell.closed = got->ended;
    errors.add({buffer.data(), got->bytes});
  }
  farewell.errors = errors.take();
  return farewell;
}

Result<void> finish_serving(Stream& with, const Sent& sent, Progress& progress) {
  KV_TRY(with.half_close());
  std::array<char, 4096> buffer;
  std::optional<Clock::time_point> taken;
  while (!interrupted() && !(taken && Clock::now() > *taken + kCloseGrace)) {
    auto got = with.receive(buffer.data(), buffer.size());
    KV_TRY(got);
    if (got->ended) return {};
    progress.update(sent.lines);
    if (!taken && with.unsent_bytes() == 0) taken = Clock::now();
  }
  return {};
}

}  // namespace kvingest::feed
