#include "tests/e2e/e2e.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>
#include <stdexcept>

namespace kvingest::test {
namespace {

/// "0100007F:15B3", as /proc/net/tcp spells an address.
std::string proc_spelling(const sockaddr_in& address) {
  return fmt::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
}

struct Queued {
  std::uint64_t unacknowledged = 0;
  std::uint64_t unread = 0;
};

/// Bytes in the queues of the socket with these two ends; none if it is gone.
Queued queued(const std::string& local, const std::string& remote) {
  std::istringstream text(file_text("/proc/net/tcp"));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string number, from, to, state, queues;
    words >> number >> from >> to >> state >> queues;
    if (from != local || to != remote) continue;
    return {std::stoull(queues.substr(0, 8), nullptr, 16), std::stoull(queues.substr(9), nullptr, 16)};
  }
  return {};
}

struct Ends {
  std::string here;
  std::string there;
};

Ends ends_of(const TcpClient& peer) {
  sockaddr_in here{}, there{};
  socklen_t bytes = sizeof here;
  if (::getsockname(peer.fd(), reinterpret_cast<sockaddr*>(&here), &bytes) != 0 ||
      ::getpeername(peer.fd(), reinterpret_cast<sockaddr*>(&there), &bytes) != 0)
    throw std::runtime_error("not a connected socket");
  return {proc_spelling(here), proc_spelling(there)};
}

}  // namespace

Service::Options service_on(const Subject& subject, std::vector<std::string> args) {
  return {.store = store_name(subject), .dir = subject.dir(), .args = std::move(args)};
}

void wait_until_taken(const TcpClient& peer) {
  const Ends ends = ends_of(peer);
  if (!eventually([&] { return queued(ends.here, ends.there).unacknowledged == 0; }))
    throw std::runtime_error("what was sent is not taken");
}

void wait_until_read(const TcpClient& peer) {
  wait_until_taken(peer);
  const Ends ends = ends_of(peer);
  if (!eventually([&] { return queued(ends.there, ends.here).unread == 0; }))
    throw std::runtime_error("what was sent is not read");
}

void check_balance(const Json& ledger) {
  CHECK(ledger["received"].number() == ledger["stored"].number() + ledger["rejected"].number() +
                                           ledger["blank"].number() + ledger["duplicate"].number());
}

std::map<std::string, std::string> thread_cpus(pid_t pid, std::string_view prefix) {
  std::map<std::string, std::string> found;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    std::string name = file_text(task.path() / "comm");
    name.resize(name.find('\n'));
    if (!name.starts_with(prefix)) continue;
    std::istringstream status(file_text(task.path() / "status"));
    for (std::string word; status >> word;) {
      if (word == "Cpus_allowed_list:") status >> found[name];
    }
  }
  return found;
}

Finished run_kvingest(std::vector<std::string> args, const Process::Options& options) {
  args.insert(args.begin(), program("kvingest"));
  return run(std::move(args), options);
}

void check_refused(const Finished& done, int code, std::string_view word) {
  CAPTURE(done.err, done.out, word);
  CHECK(done.exit == Exit{code, 0});
  CHECK(done.err.find(word) != std::string::npos);
  CHECK(done.err.size() < 2000);
}

}  // namespace kvingest::test
