#include "bench/probe.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/posix.hpp"
#include "base/thread.hpp"
#include "bench/clock.hpp"
#include "bench/statistics.hpp"
#include "feed/tcp.hpp"

namespace kvingest::bench {
namespace {

constexpr int kSyncs = 200;
constexpr int kBigSyncs = 16;
constexpr int kRoundTrips = 2'000;
constexpr std::size_t kCopyBytes = std::size_t{64} << 20;

/// The median over seven rounds of what one of `times` calls costs.
template <class Call>
double ns_each(int times, Call&& call) {
  std::vector<double> rounds;
  for (int round = 0; round < 7; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) call();
    rounds.push_back(ns_since(start) / times);
  }
  return median(std::move(rounds));
}

double measure_memcpy() {
  const std::vector<char> from(kCopyBytes, 'x');
  std::vector<char> to(kCopyBytes);
  const double ns = ns_each(1, [&] {
    std::memcpy(to.data(), from.data(), kCopyBytes);
    asm volatile("" : : "r"(to.data()) : "memory");  // The copy is wanted although nobody reads it.
  });
  return static_cast<double>(kCopyBytes) / ns;
}

/// The other side of a round trip: sends back what comes until the end.
void echo(feed::Stream& with, int cpu) {
  [[maybe_unused]] const auto pinned = pin_this_thread(cpu);  // Unpinned it measures all the same.
  with.send_at_once();
  char byte = 0;
  for (;;) {
    const auto got = with.receive(&byte, 1);
    if (!got || got->ended) return;
    if (got->bytes > 0 && !with.send_some({&byte, 1})) return;
  }
}

Result<double> round_trips(feed::Stream& with) {
  std::vector<double> times;
  with.send_at_once();
  for (int i = 0; i < kRoundTrips; ++i) {
    const auto start = Clock::now();
    char byte = 'x';
    KV_TRY(with.send_some({&byte, 1}));
    KV_TRY(with.receive(&byte, 1));
    times.push_back(ns_since(start) / 1'000);
  }
  return median(std::move(times));
}

Result<double> measure_loopback(const Placement& placement) {
  auto listener = feed::Listener::listen({"127.0.0.1", "0"});
  KV_TRY(listener);
  auto address = listener->address();
  KV_TRY(address);
  auto near = feed::Stream::connect(*feed::Address::parse(*address));
  KV_TRY(near);
  auto far = listener->accept();
  KV_TRY(far);
  if (!*far) return fail(Code::io_error, "accept a connection of our own: none came");
  std::thread other([&] { echo(**far, placement.ingest); });
  Result<double> median_us = round_trips(*near);
  if (const auto closed = near->half_close(); !closed) near->reset();
  other.join();
  return median_us;
}

}  // namespace

Result<std::vector<double>> measure_syncs(const std::filesystem::path& path, std::size_t bytes, int times) {
  auto file = File::open(Posix::real(), path, O_WRONLY | O_CREAT | O_TRUNC);
  KV_TRY(file);
  const std::string block(bytes, 'x');
  std::vector<double> took_us;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    KV_TRY(file->write_at(block, static_cast<std::uint64_t>(i) * bytes));
    KV_TRY(file->sync_data());
    took_us.push_back(ns_since(start) / 1'000);
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return took_us;
}

Result<ProbeFigures> probe_machine(const std::filesystem::path& dir, const Placement& placement) {
  ProbeFigures figures;
  figures.timer_ns = ns_each(10'000, [] { static_cast<void>(Clock::now()); });
  figures.syscall_ns = ns_each(10'000, [] { ::syscall(SYS_getppid); });
  figures.thread_us = ns_each(50, [] { std::thread([] {}).join(); }) / 1'000;
  figures.memcpy_gb_s = measure_memcpy();
  auto loopback = measure_loopback(placement);
  KV_TRY(loopback);
  figures.loopback_us = *loopback;
  auto small = measure_syncs(dir / "probe.tmp", 4096, kSyncs);
  KV_TRY(small);
  figures.sync_4k_us = median(*small);
  std::sort(small->begin(), small->end());
  figures.sync_4k_p99_us = (*small)[static_cast<std::size_t>(kSyncs * 99 / 100 - 1)];
  auto big = measure_syncs(dir / "probe.tmp", std::size_t{1} << 20, kBigSyncs);
  KV_TRY(big);
  figures.sync_1m_mb_s = static_cast<double>(1 << 20) / median(*std::move(big));
  return figures;
}

void write_probe(JsonWriter& json, const ProbeFigures& figures) {
  json.begin_object().field("timer_ns", figures.timer_ns).field("syscall_ns", figures.syscall_ns);
  json.field("thread_us", figures.thread_us).field("memcpy_gb_s", figures.memcpy_gb_s);
  json.field("loopback_us", figures.loopback_us).field("sync_4k_us", figures.sync_4k_us);
  json.field("sync_4k_p99_us", figures.sync_4k_p99_us).field("sync_1m_mb_s", figures.sync_1m_mb_s).end_object();
}

std::string probe_text(const ProbeFigures& f) {
  return fmt::format(
      "clock {:.0f} ns  system call {:.0f} ns  thread {:.0f} us  memcpy {:.1f} GB/s  loopback round trip {:.1f} us\n"
      "4 KiB write + fdatasync {:.0f} us, 99th percentile {:.0f} us  1 MiB write + fdatasync {:.0f} MB/s\n",
      f.timer_ns, f.syscall_ns, f.thread_us, f.memcpy_gb_s, f.loopback_us, f.sync_4k_us, f.sync_4k_p99_us,
      f.sync_1m_mb_s);
}

}  // namespace kvingest::bench
