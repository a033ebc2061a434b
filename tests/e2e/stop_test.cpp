// How a run ends, end to end: by signal, by STOP, by kill -9, and what is left then.
//
// World: a kvingest of this build on loopback, on a store directory of the test's own.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

/// A peer that keeps its connection open holds a stop back for so long at most.
const std::vector<std::string> kShortDrain{"--drain-timeout", "100ms"};

TEST_CASE("SIGTERM and SIGINT store all that the kernel had taken, answer, and print a ledger that balances") {
  for (const int signal : {SIGTERM, SIGINT}) {
    constexpr std::size_t kLines = 1'000;
    Service service({.store = "lmdb"});
    TcpClient peer = service.connect();
    CHECK(service.sync("").word == "synced");
    service.process().signal(SIGSTOP);  // So that nothing below is read before the signal to end is there.
    peer.send_all(numbered_lines(kLines) + "!kv sync last\n");
    wait_until_taken(peer);
    service.process().signal(signal);
    service.process().signal(SIGCONT);
    CHECK(Answer::parse(peer.read_line().value()).text("tag") == "last");
    CHECK(peer.read_to_end() == "");
    peer.close();
    CHECK(service.process().finish() == Exit{0, 0});
    const Json ledger = Json::parse(service.process().out_text());
    check_balance(ledger);
    CHECK(ledger["received"].number() == kLines);
    CHECK(ledger["stored"].number() == kLines);
    CHECK(ledger["on_disk"].number() == kLines);
    CHECK(count_records(service.dir()) == kLines);
  }
}

TEST_CASE("a peer that never closes holds a stop back only for --drain-timeout") {
  Service service({.store = "map", .args = kShortDrain});
  TcpClient peer = service.connect();
  peer.send_all("line\n");
  wait_until_read(peer);
  service.process().signal(SIGTERM);
  CHECK(service.process().wait(3s) == Exit{0, 0});
  CHECK(Json::parse(service.process().out_text())["stored"].number() == 1);
}

TEST_CASE("a second signal ends a stop that waits for its peers") {
  Service service({.store = "map", .args = {"--drain-timeout", "60s"}});
  TcpClient peer = service.connect();
  peer.send_all("line\n");
  wait_until_read(peer);
  CHECK(eventually([&] {
    service.process().signal(SIGTERM);
    return !service.process().running();
  }));
  CHECK(service.process().finish() == Exit{-1, SIGTERM});
}

TEST_CASE("SIGTERM under fire: what the ledger says is what the store holds") {
  Service service({.store = "mmap"});
  std::atomic<bool> done{false};
  std::string answer;
  TcpClient peer = service.connect();
  std::thread sender([&] {
    const std::string block = numbered_lines(500);
    while (!done) static_cast<void>(peer.send_some(block, 10ms));
    peer.finish_sending();
    answer = peer.read_to_end();
  });
  const bool under_way = eventually([&] { return service.sync("x\n").number("seq") > 10'000; });
  done = true;  // What was sent until here is on its way when the signal comes.
  const Json ledger = service.stop();
  sender.join();
  REQUIRE(under_way);
  CHECK(answer.empty());
  check_balance(ledger);
  CHECK(ledger["stored"].number() == count_records(service.dir()));
  CHECK(ledger["on_disk"].number() == ledger["stored"].number());
}

TEST_CASE("the ledger for people names the total on a line of its own") {
  TempDir temp;
  Process process({program("kvingest"), "--store", "lmdb", "--dir", (temp / "db").native(), "--listen", "127.0.0.1:0",
                   "--port-file", (temp / "ports").native()});
  const auto ports = wait_for_ports(process, temp / "ports");
  CHECK(send_and_finish(ports.at("feed"), "a\n\nb\n") == "");
  process.signal(SIGTERM);
  CHECK(process.finish() == Exit{0, 0});
  const std::string out = process.out_text();
  CAPTURE(out);
  CHECK(out.find("Total Messages Ingested: 3\n") == 0);
  CHECK(out.find("received 3  stored 2  rejected 0  blank 1  duplicate 0  durable 2  on_disk 2\n") !=
        std::string::npos);
  CHECK(out.find("durability disk  level disk  store lmdb") != std::string::npos);
}

ENGINE_SCENARIO(persistent, "a feed that is pulled ends at STOP, which is not stored") {
  TcpListener feed;
  Process process({program("kvingest"), "--store", store_name(subject), "--dir", subject.dir().native(), "--connect",
                   feed.address(), "--json"});
  TcpClient server = feed.accept();
  server.send_all(numbered_lines(5'000));
  server.send_all("STOP\n");
  server.finish_sending();
  CHECK(process.finish() == Exit{0, 0});
  const Json ledger = Json::parse(process.out_text());
  check_balance(ledger);
  CHECK(ledger["received"].number() == 5'000);
  CHECK(ledger["on_disk"].number() == 5'000);
  CHECK(count_records(subject.dir()) == 5'000);
}

TEST_CASE("a pulled feed that breaks is connected to again, also when nobody listens at first") {
  int port = 0;
  {
    const TcpListener reserved;
    port = reserved.port();
  }
  TempDir temp;
  Process process({program("kvingest"), "--store", "lmdb", "--dir", (temp / "db").native(), "--connect",
                   fmt::format("127.0.0.1:{}", port), "--json"});
  CHECK(eventually([&] { return !process.err_text().empty() || !process.running(); }));
  CHECK(process.running());
  TcpListener feed(port);
  feed.accept().send_all("one\ntwo\n");  // Closed properly, without STOP.
  {
    TcpClient broken = feed.accept();
    broken.send_all("three\n");
    wait_until_read(broken);
    broken.reset();
  }
  TcpClient last = feed.accept();
  last.send_all("four\nSTOP\nnot read any more\n");
  last.finish_sending();
  CHECK(process.finish() == Exit{0, 0});
  CHECK(Json::parse(process.out_text())["received"].number() == 4);
  CHECK(scan_values(temp / "db") == std::vector<std::string>{"one", "two", "three", "four"});
}

TEST_CASE("the stop line can be another one, and none for a feed that is pushed") {
  TcpListener feed;
  TempDir temp;
  Process process({program("kvingest"), "--store", "lmdb", "--dir", (temp / "db").native(), "--connect", feed.address(),
                   "--stop-line", "THE END", "--json"});
  TcpClient server = feed.accept();
  server.send_all("STOP\nTHE ENDING\nTHE END\n");
  server.finish_sending();
  CHECK(process.finish() == Exit{0, 0});
  CHECK(scan_values(temp / "db") == std::vector<std::string>{"STOP", "THE ENDING"});

  Service pushed({.store = "lmdb"});
  CHECK(pushed.sync("STOP\nafter\n").number("stored") == 2);
}

TEST_CASE("kvfeed serves a client and pushes to a server") {
  TempDir temp;
  Process feed({program("kvfeed"), "--listen", "127.0.0.1:0", "--port-file", (temp / "ports").native(), "--messages",
                "20000", "--batch", "256"});
  const std::string address = wait_for_ports(feed, temp / "ports").begin()->second;
  const Finished pulled = run_kvingest({"--store", "mmap", "--dir", (temp / "db").native(), "--connect", address});
  CAPTURE(pulled.err);
  CHECK(pulled.exit.code == 0);
  CHECK(pulled.out.find("Total Messages Ingested: 20000\n") == 0);
  CHECK(feed.finish() == Exit{0, 0});

  Service service({.store = "lmdb"});
  const Finished pushed = run({program("kvfeed"), "--connect", service.address(), "--messages", "20000"});
  CAPTURE(pushed.err);
  CHECK(pushed.exit.code == 0);
  service.kill();  // Its exit said: all is durable.
  CHECK(count_records(service.dir()) == 20'000);
}

/// Sends one long stream, made beforehand so that nothing but the service holds it up: lines with a sync behind each
/// block of them, until the connection breaks. Far more than a round needs.
class Sender {
 public:
  explicit Sender(const Service& service) : peer_(service.connect()) {
    thread_ = std::thread([this] { sent_bytes_ = peer_.send_some(stream(), 10s); });
  }
  ~Sender() { join(); }

  static std::string line(std::size_t n) { return fmt::format("line {} {}", n, std::string(n % 50, '.')); }

  /// The next acknowledged line; nullopt once the connection is gone.
  std::optional<std::uint64_t> acknowledged() {
    const auto answer = peer_.read_line();
    if (!answer) return std::nullopt;
    return Answer::parse(*answer).number("line");
  }
  /// Once the connection is gone: how many lines went out whole.
  std::size_t lines_sent() {
    join();
    const std::string_view sent = std::string_view(stream()).substr(0, sent_bytes_);
    const auto ends = static_cast<std::size_t>(std::count(sent.begin(), sent.end(), '\n'));
    return ends - ends / (kBlock + 1);  // The syncs are no lines.
  }

 private:
  static constexpr std::size_t kBlock = 200;
  static constexpr std::size_t kBlocks = 4'000;  // Some 30 MB: one group may take megabytes, with all their syncs.

  static const std::string& stream() {
    static const std::string made = [] {
      std::string lines;
      for (std::size_t n = 0; n < kBlocks * kBlock;) {
        lines += line(n) + "\n";
        if (++n % kBlock == 0) lines += "!kv sync\n";
      }
      return lines;
    }();
    return made;
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  TcpClient peer_;
  std::size_t sent_bytes_ = 0;  // The thread's, until it is joined.
  std::thread thread_;
};

void kill_9_campaign(const Subject& subject, const std::string& level) {
  std::mt19937_64 random(test_seed());
  const std::size_t rounds = torture_rounds(3);
  std::size_t interrupted = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    CAPTURE(round, level, test_seed());
    std::filesystem::remove_all(subject.dir());
    Service service(service_on(subject, {"--durability", level}));
    std::uint64_t acknowledged = 0;
    std::size_t sent = 0;
    {
      Sender sender(service);
      for (std::size_t left = 1 + random() % 20; left > 0; --left) acknowledged = sender.acknowledged().value();
      service.kill();
      while (const auto more = sender.acknowledged()) acknowledged = *more;
      sent = sender.lines_sent();
    }
    if (sent > acknowledged) ++interrupted;
    const std::vector<std::string> found = scan_values(subject.dir());
    CHECK(found.size() >= acknowledged);
    CHECK(found.size() <= sent);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i) wrong += found[i] == Sender::line(i) ? 0 : 1;
    CHECK(wrong == 0);
    const Finished verified = run({program("kvq"), "verify", "--dir", subject.dir().native()});
    CAPTURE(verified.out, verified.err);
    CHECK(verified.exit.code == 0);
    Service again(service_on(subject));
    CHECK(again.sync("after\n").number("seq") == found.size() + 1);
    again.stop();
    CHECK(count_records(subject.dir()) == found.size() + 1);
  }
  CHECK(interrupted * 10 >= rounds * 8);
}

ENGINE_SCENARIO(persistent, "acknowledged lines survive kill -9 at disk") {
  kill_9_campaign(subject, "disk");
}

ENGINE_SCENARIO(persistent, "acknowledged lines survive kill -9 at kernel") {
  kill_9_campaign(subject, "kernel");
}

/// A service manager's socket, as systemd has it.
class Manager {
 public:
  Manager() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    const timeval bound{.tv_sec = 20, .tv_usec = 0};
    REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound) == 0);
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Manager() { ::close(fd_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  [[nodiscard]] std::string path() const { return (temp_ / "notify").native(); }
  [[nodiscard]] std::string next() const {
    char text[256];
    const ssize_t got = ::recv(fd_, text, sizeof text, 0);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  TempDir temp_;
  int fd_;
};

TEST_CASE("a service manager is told when producers are served and when they are not, a reload touches no connection") {
  const Manager manager;
  Service service({.store = "lmdb", .process = {.env = {{"NOTIFY_SOCKET", manager.path()}}}});
  CHECK(manager.next().starts_with("READY=1\n"));
  TcpClient peer = service.connect();
  peer.send_all("one\n!kv sync\n");
  CHECK(peer.read_line());
  service.process().signal(SIGHUP);
  peer.send_all("two\n!kv sync\n");
  CHECK(Answer::parse(peer.read_line().value()).number("stored") == 2);
  peer.close();
  CHECK(service.stop()["stored"].number() == 2);
  CHECK(manager.next().starts_with("STOPPING=1\n"));
}

TEST_CASE("the port can be listened on again right after a crash") {
  TempDir temp;
  Service first({.store = "lmdb", .dir = temp / "db"});
  const std::string address = first.address();
  TcpClient peer = first.connect();
  peer.send_all("x\n!kv sync\n");
  CHECK(peer.read_line().has_value());
  first.kill();
  Service second({.store = "lmdb", .dir = temp / "db", .args = {"--listen", address}, .listen = false});
  CHECK(second.address() == address);
  CHECK(second.sync("y\n").number("seq") == 2);
}

TEST_CASE("a demo runs from any folder and leaves nothing behind") {
  TempDir folder;
  TempDir temp;
  const Finished done =
      run_kvingest({"--demo", "20000"}, {.env = {{"TMPDIR", temp.path().native()}}, .cwd = folder.path()});
  CAPTURE(done.out, done.err);
  CHECK(done.exit.code == 0);
  CHECK(done.out.find("Total Messages Ingested: 20000\n") != std::string::npos);
  CHECK(done.out.find("messages/second ") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(std::filesystem::is_empty(temp.path()));
}

}  // namespace
}  // namespace kvingest::test
