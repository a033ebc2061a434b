#include "bench/net_ways.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <vector>

#include "base/interrupt.hpp"
#include "base/thread.hpp"
#include "bench/bounds.hpp"
#include "bench/clock.hpp"
#include "feed/tcp.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kSendBytes = std::size_t{256} << 10;
constexpr std::string_view kLine = "Benchmark Message 1234567\n";

constexpr std::array kReceiveWays = {
    ReceiveWay{"recv 4K", ReceiveKind::receive, 4 << 10},
    ReceiveWay{"recv 64K", ReceiveKind::receive, 64 << 10},
    ReceiveWay{"recv 256K", ReceiveKind::receive, 256 << 10},
    ReceiveWay{"recv 1M", ReceiveKind::receive, 1 << 20},
    ReceiveWay{kNetworkLimit, ReceiveKind::low_water, 256 << 10},
    ReceiveWay{"epoll, 256K", ReceiveKind::epoll, 256 << 10},
    ReceiveWay{"MSG_TRUNC", ReceiveKind::truncate, 1 << 20},
    ReceiveWay{"splice to null", ReceiveKind::splice, 1 << 20},
    ReceiveWay{"recv 256K, lines counted", ReceiveKind::count, 256 << 10},
    ReceiveWay{"local socket, recv 256K", ReceiveKind::receive, 256 << 10, true},
};

/// Two connected ends.
struct Ends {
  feed::Stream sender;
  feed::Stream receiver;
};

Result<Ends> connect_over_tcp() {
  auto listener = feed::Listener::listen({"127.0.0.1", "0"});
  KV_TRY(listener);
  auto address = listener->address();
  KV_TRY(address);
  auto parsed = feed::Address::parse(*address);
  KV_TRY(parsed);
  auto sender = feed::Stream::connect(*parsed);
  KV_TRY(sender);
  for (int tick = 0; tick < 40 && !interrupted(); ++tick) {
    auto receiver = listener->accept();
    KV_TRY(receiver);
    if (*receiver) return Ends{*std::move(sender), *std::move(*receiver)};
  }
  return fail(Code::io_error, "accept a connection of our own: none came");
}

Result<Ends> connect_locally() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) return fail(errno, "make a socket pair");
  return Ends{feed::Stream(feed::Socket(fds[0])), feed::Stream(feed::Socket(fds[1]))};
}

/// The thread at the other end; it is joined with its object, and breaks off when the receiver has gone.
class Sender {
 public:
  template <class Send>
  Sender(feed::Stream& to, int cpu, Send send)
      : thread_([this, &to, cpu, send = std::move(send)] {
          if (const auto pinned = pin_this_thread(cpu); !pinned) result_ = pinned;
          if (result_) result_ = send(to);
          if (const auto closed = to.half_close(); !closed && result_) result_ = closed;
        }) {}
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() {
    if (thread_.joinable()) thread_.join();
  }
  Result<void> finish() {
    thread_.join();
    return result_;
  }

 private:
  Result<void> result_;
  std::thread thread_;
};

Result<void> send_all(feed::Stream& to, std::string_view bytes) {
  while (!bytes.empty()) {
    if (interrupted()) return fail(Code::io_error, "interrupted");
    auto sent = to.send_some(bytes);
    KV_TRY(sent);
    bytes.remove_prefix(*sent);
  }
  return {};
}

/// Pins the calling thread for as long as it lives, and gives it its CPUs back.
class PinnedHere {
 public:
  explicit PinnedHere(int cpu) {
    CPU_ZERO(&before_);
    known_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0;
    pinned_ = pin_this_thread(cpu);
  }
  PinnedHere(const PinnedHere&) = delete;
  PinnedHere& operator=(const PinnedHere&) = delete;
  ~PinnedHere() {
    if (known_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  [[nodiscard]] const Result<void>& result() const noexcept { return pinned_; }

 private:
  cpu_set_t before_;
  bool known_ = false;
  Result<void> pinned_;
};

/// Receives until the end in one way.
class Discarder {
 public:
  Discarder(const feed::Stream& from, const ReceiveWay& way) : from_(from), way_(way), buffer_(way.buffer_bytes) {}

  Result<void> operator()() {
    switch (way_.kind) {
      case ReceiveKind::low_water:
        ::setsockopt(from_.fd(), SOL_SOCKET, SO_RCVLOWAT, &kDiscardLowWaterBytes, sizeof kDiscardLowWaterBytes);
        return receive_all(false);
      case ReceiveKind::receive:
        return receive_all(false);
      case ReceiveKind::count:
        return receive_all(true);
      case ReceiveKind::epoll:
        return receive_when_ready();
      case ReceiveKind::truncate:
        return receive_nothing();
      case ReceiveKind::splice:
        return splice_all();
    }
    return {};
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }

 private:
  Result<void> receive_all(bool counts) {
    while (!interrupted()) {
      auto got = from_.receive(buffer_.data(), buffer_.size());
      KV_TRY(got);
      if (got->ended) return {};
      bytes_ += got->bytes;
      if (counts) lines_ += count_line_ends(buffer_.data(), got->bytes);
    }
    return fail(Code::io_error, "interrupted");
  }

  Result<void> receive_when_ready() {
    const feed::Socket poll(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!poll.is_open() || ::epoll_ctl(poll.fd(), EPOLL_CTL_ADD, from_.fd(), &event) != 0) return fail(errno, "epoll");
    while (!interrupted()) {
      const int ready = ::epoll_wait(poll.fd(), &event, 1, static_cast<int>(feed::kTick.count()));
      if (ready < 0 && errno != EINTR) return fail(errno, "epoll_wait");
      while (ready > 0) {
        const ssize_t got = ::recv(from_.fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        if (got == 0) return {};
        if (got < 0 && errno == EAGAIN) break;
        if (got < 0 && errno != EINTR) return fail(errno, "receive");
        bytes_ += got > 0 ? static_cast<std::uint64_t>(got) : 0;
      }
    }
    return fail(Code::io_error, "interrupted");
  }

  Result<void> receive_nothing() {
    while (!interrupted()) {
      const ssize_t got = ::recv(from_.fd(), nullptr, buffer_.size(), MSG_TRUNC);
      if (got == 0) return {};
      if (got < 0 && errno != EINTR && errno != EAGAIN) return fail(errno, "receive");
      bytes_ += got > 0 ? static_cast<std::uint64_t>(got) : 0;
    }
    return fail(Code::io_error, "interrupted");
  }

  Result<void> splice_all() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail(errno, "make a pipe");
    const feed::Socket out_of(fds[0]);
    const feed::Socket into(fds[1]);
    ::fcntl(into.fd(), F_SETPIPE_SZ,
            static_cast<int>(way_.buffer_bytes));  // Refused to some users: then it is smaller.
    const feed::Socket nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!nothing.is_open()) return fail(errno, "open /dev/null");
    while (!interrupted()) {
      const ssize_t got = ::splice(from_.fd(), nullptr, into.fd(), nullptr, way_.buffer_bytes, SPLICE_F_MOVE);
      if (got == 0) return {};
      if (got < 0 && errno != EINTR && errno != EAGAIN) return fail(errno, "splice from a socket");
      for (ssize_t left = std::max<ssize_t>(got, 0); left > 0;) {
        const ssize_t gone =
            ::splice(out_of.fd(), nullptr, nothing.fd(), nullptr, static_cast<std::size_t>(left), SPLICE_F_MOVE);
        if (gone <= 0) return fail(gone == 0 ? EIO : errno, "splice to /dev/null");
        left -= gone;
        bytes_ += static_cast<std::uint64_t>(gone);
      }
    }
    return fail(Code::io_error, "interrupted");
  }

  const feed::Stream& from_;
  const ReceiveWay& way_;
  std::vector<char> buffer_;
  std::uint64_t bytes_ = 0;
  std::uint64_t lines_ = 0;
};

/// Lines without an end in between, as large as a send.
const std::string& lines_to_send() {
  static const std::string instance = [] {
    std::string text;
    while (text.size() < kSendBytes) text += kLine;
    text.resize(kSendBytes);
    return text;
  }();
  return instance;
}

// ---- Streams of values ------------------------------------------------------------------------------------------

constexpr std::size_t kBlockValues = std::size_t{1} << 16;
constexpr std::size_t kBlockHead = 8;  // Bytes of the block, and values in it, four bytes each.

std::uint64_t sum_of(std::span<const std::uint32_t> values) {
  std::uint64_t sum = 0;
  for (const std::uint32_t value : values) sum += value;
  return sum;
}

Result<std::uint64_t> send_values(feed::Stream& to, codec::Form form, ValueAt value_at, std::uint64_t count) {
  std::vector<std::uint32_t> values(kBlockValues);
  std::vector<char> room(kBlockHead + codec::encoded_bytes_max<std::uint32_t>(kBlockValues));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count;) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockValues, count - i));
    const std::span<std::uint32_t> block(values.data(), taken);
    for (std::uint32_t& value : block) value = value_at(i++);
    sum += sum_of(block);
    const char* const end = codec::encode_array<std::uint32_t>(form, block, room.data() + kBlockHead);
    const auto bytes = static_cast<std::size_t>(end - room.data());
    codec::put_fixed(room.data(), static_cast<std::uint32_t>(bytes - kBlockHead));
    codec::put_fixed(room.data() + 4, static_cast<std::uint32_t>(taken));
    KV_TRY(send_all(to, {room.data(), bytes}));
  }
  return sum;
}

/// Takes blocks apart as they come.
class BlockReader {
 public:
  explicit BlockReader(codec::Form form)
      : form_(form), bytes_(2 * (kBlockHead + codec::encoded_bytes_max<std::uint32_t>(kBlockValues))) {}

  [[nodiscard]] std::span<char> room() { return {bytes_.data() + filled_, bytes_.size() - filled_}; }
  Result<void> take(std::size_t received) {
    filled_ += received;
    std::size_t at = 0;
    while (filled_ - at >= kBlockHead) {
      const auto block = codec::get_fixed<std::uint32_t>(bytes_.data() + at);
      const auto count = codec::get_fixed<std::uint32_t>(bytes_.data() + at + 4);
      if (block > bytes_.size() / 2 || count > kBlockValues) return fail(Code::corrupt, "a block of {} bytes", block);
      if (filled_ - at - kBlockHead < block) break;
      const std::span<std::uint32_t> values(values_.data(), count);
      KV_TRY(codec::decode_array<std::uint32_t>(form_, {bytes_.data() + at + kBlockHead, block}, values));
      sum_ += sum_of(values);
      count_ += count;
      at += kBlockHead + block;
    }
    std::copy(bytes_.begin() + static_cast<std::ptrdiff_t>(at), bytes_.begin() + static_cast<std::ptrdiff_t>(filled_),
              bytes_.begin());
    filled_ -= at;
    return {};
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  codec::Form form_;
  std::vector<char> bytes_;
  std::vector<std::uint32_t> values_ = std::vector<std::uint32_t>(kBlockValues);
  std::size_t filled_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

std::span<const ReceiveWay> receive_ways() noexcept {
  return kReceiveWays;
}

Result<std::uint64_t> send_and_discard(const ReceiveWay& way, std::uint64_t bytes, const Placement& placement) {
  auto ends = way.is_local ? connect_locally() : connect_over_tcp();
  KV_TRY(ends);
  std::optional<feed::Stream> receiver(std::move(ends->receiver));
  Sender sender(ends->sender, placement.feed, [bytes](feed::Stream& to) -> Result<void> {
    const std::string& lines = lines_to_send();
    for (std::uint64_t left = bytes; left > 0;) {
      const std::uint64_t part = std::min<std::uint64_t>(left, lines.size());
      KV_TRY(send_all(to, std::string_view(lines).substr(0, part)));
      left -= part;
    }
    return {};
  });
  const PinnedHere pinned(placement.ingest);  // Behind the sender's start, which would inherit it.
  Discarder discard(*receiver, way);
  const auto received = pinned.result() ? discard() : pinned.result();
  if (!received) receiver.reset();  // Or the sender would wait for somebody to take the rest.
  const auto sent = sender.finish();
  KV_TRY(received);
  KV_TRY(sent);
  if (discard.bytes() != bytes) return fail(Code::corrupt, "{} bytes were sent, {} received", bytes, discard.bytes());
  return discard.lines();
}

Result<StreamedValues> stream_values(codec::Form form, ValueAt value_at, std::uint64_t count,
                                     const Placement& placement) {
  auto ends = connect_over_tcp();
  KV_TRY(ends);
  std::optional<feed::Stream> receiver(std::move(ends->receiver));
  ::setsockopt(receiver->fd(), SOL_SOCKET, SO_RCVLOWAT, &kDiscardLowWaterBytes, sizeof kDiscardLowWaterBytes);
  std::uint64_t sent_sum = 0;
  StreamedValues streamed;
  BlockReader reader(form);
  const auto start = Clock::now();
  Sender sender(ends->sender, placement.feed, [&sent_sum, form, value_at, count](feed::Stream& to) -> Result<void> {
    auto sum = send_values(to, form, value_at, count);
    KV_TRY(sum);
    sent_sum = *sum;
    return {};
  });
  const auto receive = [&]() -> Result<void> {
    while (!interrupted()) {
      const std::span<char> room = reader.room();
      auto got = receiver->receive(room.data(), room.size());
      KV_TRY(got);
      if (got->ended) return {};
      streamed.bytes += got->bytes;
      KV_TRY(reader.take(got->bytes));
    }
    return fail(Code::io_error, "interrupted");
  };
  const PinnedHere pinned(placement.ingest);
  const auto received = pinned.result() ? receive() : pinned.result();
  streamed.seconds = seconds_since(start);
  if (!received) receiver.reset();
  const auto sent = sender.finish();
  KV_TRY(received);
  KV_TRY(sent);
  if (reader.count() != count || reader.sum() != sent_sum)
    return fail(Code::corrupt, "{} values of sum {} were sent, {} of sum {} came", count, sent_sum, reader.count(),
                reader.sum());
  return streamed;
}

}  // namespace kvingest::bench
