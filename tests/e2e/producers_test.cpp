// Many producers, end to end: idle ones, storms of them, more than there are descriptors, half-open ones; what they
// cost and that the others go on.
//
// World: a kvingest of this build on loopback; this process holds the other ends.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

/// As many descriptors as this process may have; false if that is less than `wanted`.
bool allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  if (limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= wanted;
}

std::size_t open_descriptors(pid_t pid) {
  const std::filesystem::directory_iterator all(fmt::format("/proc/{}/fd", pid));
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Clock ticks of processor time.
std::uint64_t cpu_ticks(pid_t pid) {
  std::string text = file_text(fmt::format("/proc/{}/stat", pid));
  text.erase(0, text.rfind(')') + 2);
  std::istringstream words(text);
  std::string word;
  for (int skipped = 0; skipped < 11; ++skipped) words >> word;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  words >> user >> system;
  return user + system;
}

[[maybe_unused]] std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("a thousand connections, most of them idle, cost little and hold nobody up") {
  constexpr std::size_t kIdle = 1'000;
  [[maybe_unused]] constexpr std::uint64_t kKibPerConnectionMax = 16;
  if (!allow_descriptors(kIdle + 200)) KV_SKIP("this process may not open so many descriptors");
  Service service({.store = "map", .args = {"--max-connections", "1010", "--durability", "memory"}});
  CHECK(service.sync("warm\n").number("stored") == 1);
  [[maybe_unused]] const std::uint64_t before_kib = status_kib(service.pid(), "RssAnon");
  std::vector<TcpClient> idle;
  for (std::size_t i = 0; i < kIdle; ++i) {
    idle.push_back(service.connect());
    idle.back().send_all("part of a line");  // So that each has been served.
  }
  wait_until_read(idle.back());
  for (int round = 0; round < 20; ++round) CHECK(service.sync(numbered_lines(1'000)).number("stored") == 1'000);
#ifndef KVINGEST_SANITIZED
  const std::uint64_t messages_kib = 20'000 / 5;  // What the store itself keeps of 20,000 messages: 200 bytes each.
  CHECK(status_kib(service.pid(), "RssAnon") < before_kib + kIdle * kKibPerConnectionMax + messages_kib);
#endif
  const std::uint64_t ticks = cpu_ticks(service.pid());
  CHECK_FALSE(idle.back().read_some(300ms));  // Nothing happens, and costs nothing.
  CHECK(cpu_ticks(service.pid()) - ticks <= 3);
  for (TcpClient& peer : idle) peer.send_all(" and its end\n!kv sync\n");
  for (TcpClient& peer : idle) CHECK(Answer::parse(peer.read_line().value()).number("stored") == 1);
  idle.clear();
  check_balance(service.stop());
}

TEST_CASE("connections on two workers: each keeps its order, none loses a line, and a busy one starves nobody") {
  constexpr std::size_t kPeers = 8;
  constexpr std::size_t kLines = 5'000;
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<std::string> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(std::to_string(cpu));
  }
  if (cpus.size() < 2) KV_SKIP("there is one CPU");
  Service service({.store = "lmdb", .args = {"--cpu", cpus[0] + "," + cpus[1], "--durability", "kernel"}});
  std::vector<TcpClient> peers;
  for (std::size_t i = 0; i < kPeers; ++i) peers.push_back(service.connect());
  CHECK(thread_cpus(service.pid(), "kv-feed-").size() == 2);
  for (std::size_t block = 0; block < 5; ++block) {
    for (std::size_t i = 0; i < kPeers; ++i) {
      std::string lines;
      for (std::size_t n = 0; n < kLines / 5; ++n) lines += fmt::format("p{} {}\n", i, block * kLines / 5 + n);
      peers[i].send_all(lines);
    }
  }
  for (TcpClient& peer : peers) {
    peer.send_all("!kv sync\n");
    CHECK(Answer::parse(peer.read_line().value()).number("stored") == kLines);
  }
  std::vector<std::size_t> next(kPeers, 0);
  std::size_t out_of_order = 0;
  for (const std::string& value : scan_values(service.dir())) {
    const auto peer = static_cast<std::size_t>(value.at(1) - '0');
    if (value.substr(3) != std::to_string(next.at(peer)++)) ++out_of_order;
  }
  CHECK(out_of_order == 0);
  CHECK(next == std::vector<std::size_t>(kPeers, kLines));
  // One connection sends without an end on each worker; others get their answers meanwhile.
  std::atomic<bool> done{false};
  std::vector<std::thread> greedy;
  for (std::size_t i = 0; i < 2; ++i) {
    greedy.emplace_back([&done, peer = &peers[i]] {
      const std::string lines = numbered_lines(10'000);
      while (!done) peer->send_some(lines, 100ms);
    });
  }
  for (int round = 0; round < 20; ++round) CHECK(service.sync("mine\n").number("stored") == 1);
  done = true;
  for (std::thread& thread : greedy) thread.join();
  peers.clear();
  check_balance(service.stop());
}

TEST_CASE("a storm of connections is served, and what they sent is stored once") {
  constexpr std::size_t kConnections = 600;
  if (!allow_descriptors(kConnections + 100)) KV_SKIP("this process may not open so many descriptors");
  Service service({.store = "lmdb", .args = {"--durability", "kernel"}});
  std::vector<TcpClient> peers;
  for (std::size_t i = 0; i < kConnections; ++i) {
    peers.push_back(service.connect());
    peers.back().send_all(fmt::format("line {}\n", i));
    peers.back().finish_sending();
  }
  for (TcpClient& peer : peers) CHECK(peer.read_to_end().empty());
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["stored"].number() == kConnections);
  std::vector<std::string> values = scan_values(service.dir());
  std::sort(values.begin(), values.end());
  CHECK(std::unique(values.begin(), values.end()) == values.end());
}

// UndefinedBehaviorSanitizer looks at objects through a pipe, for which it needs descriptors.
#ifndef KVINGEST_SANITIZED
TEST_CASE("without descriptors a peer is told, the log says it once, and there is room again when others leave") {
  constexpr rlim_t kFiles = 64;
  Service service({.store = "map", .process = {.files_max = kFiles}});
  std::vector<TcpClient> held;
  std::vector<TcpClient> refused;
  for (rlim_t i = 0; i < kFiles && refused.size() < 5; ++i) {
    TcpClient peer = service.connect();
    peer.send_all("!kv status\n");
    const auto line = peer.read_line();
    REQUIRE(line);
    const Answer answer = Answer::parse(*line);
    if (answer.word == "status") {
      held.push_back(std::move(peer));
      continue;
    }
    CHECK(answer.text("code") == "no_descriptors");
    CHECK(answer.line.ends_with(" closing"));
    CHECK_FALSE(peer.read_line());
    refused.push_back(std::move(peer));
  }
  CHECK(refused.size() == 5);
  CHECK(held.size() > 10);
  CHECK(occurrences(service.err_text(), "accept on") == 1);
  const std::uint64_t ticks = cpu_ticks(service.pid());
  CHECK_FALSE(held.back().read_some(300ms));  // Nothing happens, and costs nothing.
  CHECK(cpu_ticks(service.pid()) - ticks <= 5);
  held.back().send_all("still served\n!kv sync\n");
  CHECK(Answer::parse(held.back().read_line().value()).number("stored") == 1);
  held.clear();
  CHECK(eventually([&] {
    const auto answer = service.try_sync("after\n");
    return answer && answer->word == "synced";
  }));
  service.stop();
}
#endif

/// The service's end of `peer`, as a descriptor of ours; -1, with errno, when that is not allowed.
int other_end(const TcpClient& peer, pid_t pid) {
  sockaddr_in here{};
  socklen_t bytes = sizeof here;
  REQUIRE(::getsockname(peer.fd(), reinterpret_cast<sockaddr*>(&here), &bytes) == 0);
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  REQUIRE(process >= 0);
  int found = -1;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    const int number = std::stoi(entry.path().filename());
    const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, number, 0));
    if (copy < 0 && errno == EPERM) break;
    sockaddr_in there{};
    bytes = sizeof there;
    const bool named = copy >= 0 && ::getpeername(copy, reinterpret_cast<sockaddr*>(&there), &bytes) == 0;
    if (named && there.sin_family == AF_INET && there.sin_port == here.sin_port) {
      found = copy;
      break;
    }
    if (copy >= 0) ::close(copy);
  }
  ::close(process);
  return found;
}

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t bytes = sizeof value;
  REQUIRE(::getsockopt(fd, level, name, &value, &bytes) == 0);
  return value;
}

TEST_CASE("peers that are gone without a word are found: keep-alive and a user timeout are on") {
  Service service({.store = "map"});
  TcpClient peer = service.connect();
  peer.send_all("x\n!kv sync\n");
  CHECK(peer.read_line());
  const int fd = other_end(peer, service.pid());
  if (fd < 0) KV_SKIP("the service's socket cannot be looked at: pidfd_getfd is not allowed");
  CHECK(option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 120'000);
  CHECK(option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  CHECK(option(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option(fd, IPPROTO_TCP, TCP_KEEPCNT) == 60);
  ::close(fd);
}

TEST_CASE("thousands of connections that come and go leave no memory and no descriptor behind") {
  const std::size_t cycles = torture_rounds(10) * 1'000;
  Service service({.store = "null", .args = {"--durability", "memory"}});
  const auto cycle = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      TcpClient peer = service.connect();
      peer.send_all("one\npart");
      if (i % 3 == 0) {
        peer.finish_sending();
        REQUIRE(peer.read_to_end().empty());
      } else if (i % 3 == 1) {
        peer.reset();
      }  // Else it just closes.
    }
    CHECK(eventually([&] { return open_descriptors(service.pid()) < 64; }));
  };
  cycle(500);  // What is allocated once is there now.
  const std::size_t descriptors = open_descriptors(service.pid());
  [[maybe_unused]] const std::uint64_t kib = status_kib(service.pid(), "RssAnon");
  cycle(cycles);
  CHECK(eventually([&] { return open_descriptors(service.pid()) <= descriptors; }));
#ifndef KVINGEST_SANITIZED
  INFO("RssAnon " << kib << " KiB, then " << status_kib(service.pid(), "RssAnon"));
  CHECK(status_kib(service.pid(), "RssAnon") < kib + 2'048);
#endif
  check_balance(service.stop());
}

}  // namespace
}  // namespace kvingest::test
