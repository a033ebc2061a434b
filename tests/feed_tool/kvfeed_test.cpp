// kvfeed as a process, with a plain socket at its other end.
#include <algorithm>
#include <chrono>
#include <csignal>

#include "base/thread.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"
#include "tests/support/tcp_client.hpp"

namespace kvingest::test {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> kvfeed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program("kvfeed"));
  return arguments;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A kvfeed that pushes to us.
struct Push {
  explicit Push(std::vector<std::string> arguments, const Process::Options& options = {})
      : process(with_address(std::move(arguments)), options), peer(listener.accept()) {}
  std::vector<std::string> with_address(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--connect", listener.address()});
    return kvfeed(std::move(arguments));
  }
  TcpListener listener;
  Process process;
  TcpClient peer;
};

/// A kvfeed that serves us.
struct Serve {
  explicit Serve(std::vector<std::string> arguments)
      : process(with_port_file(std::move(arguments))), address(wait_for_ports(process, dir / "ports").at("feed")) {}
  std::vector<std::string> with_port_file(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0", "--port-file", (dir / "ports").string()});
    return kvfeed(std::move(arguments));
  }
  TempDir dir;
  Process process;
  std::string address;
};

TEST_CASE("several connections get a batch each in turn, and every one is waited for") {
  TcpListener listener;
  Process process(kvfeed({"--connect", listener.address(), "--connections", "3", "--messages", "10", "--batch", "2",
                          "--json", "--quiet"}));
  std::vector<TcpClient> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(listener.accept());
  const auto line = [](int n) { return "Benchmark Message " + std::to_string(n) + "\n"; };
  CHECK(peers[0].read_to_end() == line(0) + line(1) + line(6) + line(7));
  CHECK(peers[1].read_to_end() == line(2) + line(3) + line(8) + line(9));
  CHECK(peers[2].read_to_end() == line(4) + line(5));
  peers[0].close();
  peers[2].close();
  CHECK_FALSE(process.wait(milliseconds(100)));  // The second one has not closed.
  peers[1].close();
  CHECK(process.finish() == Exit{0});
  CHECK(Json::parse(process.out_text())["sent"].number() == 10);
}

TEST_CASE("a source asks to be told what is durable as often as it was said, or not at all") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {{{}, " ack=100ms"},
                                                                    {{"--ack", "10ms"}, " ack=10ms"},
                                                                    {{"--ack", "0"}, " ack=0ms"},
                                                                    {{"--ack", "none"}, ""},
                                                                    {{"--latency"}, " ack=0ms"}};
  for (const auto& [options, ack] : cases) {
    std::vector<std::string> arguments = {"--source", "s", "--messages", "1", "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Push push(arguments);
    CHECK(push.peer.read_line() == "!kv hello source=s" + ack);
    push.peer.send_all("!kv welcome source=s next=1 format=line\n");
    CHECK(push.peer.read_line() == "Benchmark Message 0");
    CHECK(push.peer.read_line() == "!kv sync");
    push.peer.send_all("!kv synced line=1 stored=1 rejected=0 blank=0 duplicate=0 seq=1 level=disk\n");
    CHECK(push.process.finish() == Exit{0});
  }
}

TEST_CASE("a push sends every line and no STOP, and ends well only when the server closes") {
  Push push({"--messages", "100000", "--json"});
  CHECK(push.peer.read_to_end() == numbered_lines(100'000));
  CHECK_FALSE(push.process.wait(milliseconds(300)));  // We have read its end; it waits for ours.
  push.peer.close();
  CHECK(push.process.finish() == Exit{0});
  const Json result = Json::parse(push.process.out_text());
  CHECK(result["sent"].number() == 100'000);
  CHECK(result["bytes"].number() == numbered_lines(100'000).size());
  CHECK(result["complete"].text() == "true");
}

TEST_CASE("a served feed ends with STOP") {
  Serve serve({"--messages", "1000", "--batch", "7", "--message", "n={n}"});
  TcpClient client(serve.address);
  std::string expected;
  for (int n = 0; n < 1000; ++n) expected += "n=" + std::to_string(n) + "\n";
  CHECK(client.read_to_end() == expected + "STOP\n");
  client.close();
  CHECK(serve.process.finish() == Exit{0});
  CHECK(holds(serve.process.out_text(), "sent 1000  bytes "));
}

TEST_CASE("a served client that keeps its side open is not waited for when it has everything") {
  Serve serve({"--messages", "10"});
  TcpClient client(serve.address);
  CHECK(serve.process.finish() == Exit{0});
  CHECK(client.read_to_end() == numbered_lines(10) + "STOP\n");
}

TEST_CASE("only one client is served") {
  Serve serve({"--messages", "3000000"});
  TcpClient client(serve.address);
  CHECK(client.read_line() == "Benchmark Message 0");
  CHECK_THROWS(TcpClient(serve.address, milliseconds(5'000)));
}

TEST_CASE("a client that is slower than the feed gets every byte") {
  Serve serve({"--messages", "1000000", "--batch", "100000"});
  TcpClient client(serve.address);
  client.receive_buffer(256 << 10);
  std::string got;
  while (const auto line = client.read_line()) got += *line + "\n";
  CHECK(got == numbered_lines(1'000'000) + "STOP\n");
  client.close();
  CHECK(serve.process.finish() == Exit{0});
}

TEST_CASE("a reset by the server is an error that says how much was sent") {
  Push push({"--messages", "100000000"});
  static_cast<void>(push.peer.read_exactly(1'000'000));
  push.peer.reset();
  CHECK(push.process.finish() == Exit{1});
  CHECK(holds(push.process.err_text(), "; sent "));
  CHECK_FALSE(holds(push.process.err_text(), "sent 0 lines"));
}

TEST_CASE("a server that closes without taking everything is an error") {
  Push push({"--messages", "100000000"});
  push.peer.close();
  CHECK(push.process.finish() == Exit{1});
}

TEST_CASE("an error that the server answers is shown, and the exit code says it") {
  Push push({"--messages", "5"});
  CHECK(push.peer.read_to_end() == numbered_lines(5));
  push.peer.send_all("!kv paused reason=no_space\n!kv error code=unauthorized message=\"no token\" closing\n");
  push.peer.close();
  CHECK(push.process.finish() == Exit{1});
  CHECK(holds(push.process.err_text(), "code=unauthorized message=\"no token\""));
  CHECK_FALSE(holds(push.process.err_text(), "paused"));
}

TEST_CASE("nobody listening and a port in use are said with the address") {
  std::string address;
  {
    const TcpListener gone;
    address = gone.address();
  }
  const Finished refused = run(kvfeed({"--connect", address}));
  CHECK(refused.exit == Exit{1});
  CHECK(holds(refused.err, "connect to " + address + ": Connection refused"));

  const TcpListener taken;
  const Finished in_use = run(kvfeed({"--listen", taken.address()}));
  CHECK(in_use.exit == Exit{1});
  CHECK(holds(in_use.err, "listen on " + taken.address() + ": Address already in use"));
}

TEST_CASE("a port is free again right after a crash") {
  std::string address;
  {
    Serve serve({"--messages", "100000000"});
    address = serve.address;
    TcpClient client(address);
    CHECK(client.read_line());
    serve.process.kill();
  }
  Process again(kvfeed({"--listen", address, "--messages", "1"}));
  TcpClient client;
  CHECK(eventually([&] {
    try {
      client = TcpClient(address);
      return true;
    } catch (const std::exception&) {
      return false;  // Not listening yet.
    }
  }));
  CHECK(client.read_to_end() == numbered_lines(1) + "STOP\n");
}

TEST_CASE("a file and stdin are sent as they are") {
  const TempDir dir;
  write_text(dir / "f", "one\r\n\ntwo\xff");
  Push file({"--file", (dir / "f").string()});
  CHECK(file.peer.read_to_end() == "one\r\n\ntwo\xff\n");

  Push piped({"--file", "-"}, {.pipe_input = true});
  piped.process.input().send_all("first\n");
  CHECK(piped.peer.read_line() == "first");  // At once, although the batch is not full.
  piped.process.input().send_all("second");
  piped.process.input().close();
  CHECK(piped.peer.read_to_end() == "second\n");
  piped.peer.close();
  CHECK(piped.process.finish() == Exit{0});

  const TcpListener listener;
  const Finished missing = run(kvfeed({"--connect", listener.address(), "--file", "/no/such/file"}));
  CHECK(missing.exit == Exit{1});
  CHECK(holds(missing.err, "/no/such/file"));
}

TEST_CASE("synthetic trades are as many as asked for") {
  Push push({"--ticks", "--messages", "5000", "--seed", "3"});
  const std::string sent = push.peer.read_to_end();
  CHECK(std::count(sent.begin(), sent.end(), '\n') == 5'000);
  CHECK(std::count(sent.begin(), sent.end(), ',') == 15'000);
}

TEST_CASE("an open loop takes the time its rate asks for, from the first line on") {
  Push push({"--messages", "600", "--rate", "2000", "--json"});
  CHECK(push.peer.read_to_end() == numbered_lines(600));
  push.peer.close();
  CHECK(push.process.finish() == Exit{0});
  const double seconds = std::stod(Json::parse(push.process.out_text())["seconds"].text());
  CHECK(seconds >= 0.299);
}

TEST_CASE("an interval is slept after each batch") {
  Push push({"--messages", "100", "--batch", "10", "--interval-us", "10000", "--json"});
  CHECK(push.peer.read_to_end() == numbered_lines(100));
  push.peer.close();
  CHECK(push.process.finish() == Exit{0});
  CHECK(std::stod(Json::parse(push.process.out_text())["seconds"].text()) >= 0.1);
}

TEST_CASE("an interrupted push ends at the end of a line, with exit code 130") {
  Push push({"--messages", "1000000000"});
  CHECK(push.peer.read_line());
  push.process.signal(SIGTERM);
  const std::string rest = push.peer.read_to_end();
  CHECK(push.process.finish() == Exit{130});
  CHECK(rest.back() == '\n');
  CHECK(holds(push.process.err_text(), "interrupted after "));
}

TEST_CASE("an interrupted push to a peer that takes nothing ends, too") {
  Push push({"--messages", "1000000000"});
  CHECK(push.peer.read_line());
  push.process.signal(SIGINT);
  CHECK(push.process.finish(milliseconds(20'000)) == Exit{130});
}

TEST_CASE("an interrupt ends the wait for a client") {
  Serve serve({});
  serve.process.signal(SIGINT);
  CHECK(serve.process.finish() == Exit{130});
}

TEST_CASE("the feed is pinned where it is asked to be, and a CPU that is not ours is refused") {
  const auto cpus = allowed_cpus();
  REQUIRE(cpus);
  const std::string cpu = std::to_string(cpus->back());
  Serve serve({"--cpu", cpu});
  CHECK(holds(file_text("/proc/" + std::to_string(serve.process.pid()) + "/status"),
              "Cpus_allowed_list:\t" + cpu + "\n"));

  const Finished refused = run(kvfeed({"--listen", "127.0.0.1:0", "--cpu", "8000"}));
  CHECK(refused.exit == Exit{2});
  CHECK(holds(refused.err, "CPU 8000"));
  CHECK(holds(refused.err, format_cpus(*cpus)));
}

TEST_CASE("wrong usage exits with 2 and one sentence") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "either --listen or --connect"},
      {{"--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1"}, "either --listen or --connect"},
      {{"--connect", "127.0.0.1"}, "'127.0.0.1' is not HOST:PORT"},
      {{"--connect", "127.0.0.1:70000"}, "is not HOST:PORT"},
      {{"--connect", "127.0.0.1:1", "--ticks", "--file", "-"}, "--ticks and --file"},
      {{"--connect", "127.0.0.1:1", "--batch", "0"}, "--batch: '0'"},
      {{"--connect", "127.0.0.1:1", "--mesages", "1"}, "did you mean --messages?"},
      {{"--connect", "127.0.0.1:1", "--port-file", "x"}, "--port-file needs --listen"},
      {{"--connect", "127.0.0.1:1", "--message", "a\nb"}, "--message must be one line"},
      {{"--connect", "127.0.0.1:1", "--source", "s", "--no-control"}, "--source needs control lines"},
  };
  for (const auto& [arguments, sentence] : cases) {
    const Finished done = run(kvfeed(arguments));
    INFO(done.err);
    CHECK(done.exit == Exit{2});
    CHECK(done.out.empty());
    CHECK(holds(done.err, sentence));
  }
}

}  // namespace
}  // namespace kvingest::test
