// What the system sees, end to end: pinned threads, real syncs before answers, a failing disk, bounded memory.
//
// World: a kvingest of this build; strace watches, fails or delays its system calls.
#include <fmt/format.h>
#include <sched.h>

#include <regex>
#include <thread>

#include "tests/e2e/e2e.hpp"
#include "tests/support/strace.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> allowed_cpu_names() {
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  std::vector<std::string> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(std::to_string(cpu));
  }
  return cpus;
}

std::vector<std::string> feed_thread_cpus(const Service& service) {
  std::vector<std::string> cpus;
  for (const auto& [name, list] : thread_cpus(service.pid(), "kv-feed-")) cpus.push_back(list);
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

TEST_CASE("feed threads are pinned where they were told, as the system itself says") {
  const std::vector<std::string> cpus = allowed_cpu_names();
  Service first({.store = "map", .args = {"--cpu", cpus.front()}});
  CHECK(feed_thread_cpus(first) == std::vector<std::string>{cpus.front()});
  CHECK(first.sync("x\n").number("stored") == 1);
  if (cpus.size() < 2) return;
  Service by_default({.store = "map"});
  CHECK(feed_thread_cpus(by_default) == std::vector<std::string>{cpus.back()});
  Service two({.store = "map", .args = {"--cpu", cpus[0] + "," + cpus[1]}});
  CHECK(feed_thread_cpus(two) == std::vector<std::string>{cpus[0], cpus[1]});
  Service free_to_move({.store = "map", .args = {"--cpu", "none"}});
  const std::vector<std::string> unpinned = feed_thread_cpus(free_to_move);
  REQUIRE(unpinned.size() == 1);
  CHECK(unpinned != std::vector<std::string>{cpus.front()});
  CHECK(unpinned != std::vector<std::string>{cpus.back()});
}

std::size_t first_call(const std::vector<std::string>& calls, std::string_view text) {
  std::size_t at = 0;
  while (at < calls.size() && calls[at].find(text) == std::string::npos) ++at;
  return at;
}

ENGINE_SCENARIO(persistent, "a sync call returns before the answer is written") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  Service service(service_on(subject));
  CHECK(service.sync("warm\n").number("stored") == 1);
  Strace tracer(service.pid(),
                {"-e", "trace=recvmsg,recvfrom,read,readv,fsync,fdatasync,msync,sendmsg,sendto,write,writev"});
  CHECK(service.sync("traced line\n").number("stored") == 1);
  const std::vector<std::string> calls = tracer.detach();
  const std::size_t got = first_call(calls, "traced line");
  const std::size_t answered = first_call(calls, "!kv synced");
  REQUIRE(got < answered);
  REQUIRE(answered < calls.size());
  const std::regex synced("(fsync|fdatasync|msync)(\\(| resumed).*= 0");
  std::size_t syncs = 0;
  for (std::size_t i = got; i < answered; ++i) syncs += std::regex_search(calls[i], synced) ? 1 : 0;
  CAPTURE(std::vector<std::string>(calls.begin() + static_cast<std::ptrdiff_t>(got),
                                   calls.begin() + static_cast<std::ptrdiff_t>(answered)));
  CHECK(syncs > 0);
}

ENGINE_SCENARIO(persistent, "no answer comes when the sync fails, and the service ends with 1") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  Service service(service_on(subject));
  CHECK(service.sync("before\n").number("stored") == 1);
  {
    Strace failing(service.pid(), {"-e", "trace=fsync,fdatasync,msync,sync_file_range", "-e",
                                   "inject=fsync,fdatasync,msync:error=EIO"});
    const auto answer = service.try_sync("not to be acknowledged\n");
    if (answer) CHECK(answer->word != "synced");
    const auto later = service.process().running() ? std::optional<Answer>() : answer;
    if (later) CHECK(later->word != "synced");
    if (service.process().running()) service.process().signal(SIGTERM);
    CHECK(service.process().finish() == Exit{1, 0});
    CHECK(service.err_text().find("Input/output error") != std::string::npos);
  }
  const std::vector<std::string> found = scan_values(subject.dir());
  REQUIRE_FALSE(found.empty());
  CHECK(found.front() == "before");
  CHECK(found.size() <= 2);
}

TEST_CASE("a slow disk holds the sender back, memory stays bounded, and every line arrives") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  constexpr std::size_t kLines = 300'000;
  [[maybe_unused]] constexpr std::uint64_t kRssAnonKibMax = 64 * 1024;
  Service service({.store = "file", .args = {"--queue-bytes", "4M"}});
  std::string lines;
  for (std::size_t i = 0; i < kLines; ++i) lines += fmt::format("{} {}\n", std::string(180, 'y'), i);
  TcpClient peer = service.connect();
  std::size_t sent = 0;
  std::uint64_t worst_kib = 0;
  {
    // Every sync takes so long that the queue fills up, and the socket with it.
    Strace slow(service.pid(), {"-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_exit=400000"});
    const auto end = std::chrono::steady_clock::now() + 1500ms;
    while (sent < lines.size() && std::chrono::steady_clock::now() < end) {
      sent += peer.send_some(std::string_view(lines).substr(sent, 1 << 20), 100ms);
      worst_kib = std::max(worst_kib, status_kib(service.pid(), "RssAnon"));
    }
    CHECK(sent < lines.size());  // It was held back.
    slow.detach();
  }
  peer.send_all(std::string_view(lines).substr(sent));
  peer.send_all("!kv sync\n");
  const Answer answer = Answer::parse(peer.read_line().value());
  CHECK(answer.number("stored") == kLines);
  peer.close();
  INFO("largest RssAnon " << worst_kib << " KiB");
#ifndef KVINGEST_SANITIZED
  CHECK(worst_kib < kRssAnonKibMax);
#endif
  check_balance(service.stop());
}

}  // namespace
}  // namespace kvingest::test
