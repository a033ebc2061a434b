// The feed, end to end: lines in over TCP, records out through kvq.
//
// World: a kvingest of this build on loopback, on a store directory of the test's own.
#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

ENGINE_SCENARIO(anything, "a plain feed is stored in order, answered and counted") {
  constexpr std::size_t kLines = 10'000;
  Service service(service_on(subject));
  const bool persistent = subject.engine().persistent;
  const Answer answer = service.sync(numbered_lines(kLines), "t1");
  CHECK(answer.word == "synced");
  CHECK(answer.text("tag") == "t1");
  CHECK(answer.number("line") == kLines);
  CHECK(answer.number("stored") == kLines);
  CHECK(answer.number("rejected") == 0);
  CHECK(answer.number("blank") == 0);
  CHECK(answer.number("duplicate") == 0);
  CHECK(answer.number("seq") == (persistent ? kLines : 0));
  CHECK(answer.text("level") == (persistent ? "disk" : "memory"));
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["received"].number() == kLines);
  CHECK(ledger["stored"].number() == kLines);
  CHECK(ledger["durable"].number() == kLines);
  CHECK(ledger["on_disk"].number() == (persistent ? kLines : 0));
  CHECK(ledger["level"].text() == (persistent ? "disk" : "memory"));
  CHECK(ledger["store"].text() == subject.engine().name);
  if (!persistent) return;
  CHECK(count_records(subject.dir()) == kLines);
  const bool same = joined(scan_values(subject.dir())) == numbered_lines(kLines);
  CHECK(same);
}

ENGINE_SCENARIO(persistent, "bytes are stored as they came: NUL, invalid UTF-8, tabs, backslashes, spaces") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte != '\n') all += static_cast<char>(byte);
  }
  const std::vector<std::string> odd{
      "a\0b"s,     "\0"s,   "\xff\xfe\x80"s, "tab\tand\\slash"s, "na\xc3\xafve \xe2\x82\xac"s,
      " spaces "s, "\xc3"s, "\r\r"s + "x",   all + "x",          "!"s};
  Service service(service_on(subject));
  CHECK(service.sync(joined(odd)).number("stored") == odd.size());
  service.stop();
  CHECK(scan_values(subject.dir()) == odd);
}

TEST_CASE("a stream cut by the network at any byte gives the same records") {
  const std::string stream = "one\ntwo\r\n\nthree \n!kv sync cut\nfour\n";
  const std::size_t cuts = stream.size() - 1;
  Service service({.store = "lmdb", .args = {"--durability", "kernel"}});
  for (std::size_t cut = 1; cut <= cuts; ++cut) {
    CAPTURE(cut);
    TcpClient peer = service.connect();
    peer.no_delay();
    peer.send_all(stream.substr(0, cut));
    wait_until_read(peer);
    peer.send_all(stream.substr(cut));
    const auto line = peer.read_line();
    REQUIRE(line.has_value());
    const Answer answer = Answer::parse(*line);
    CHECK(answer.word == "synced");
    CHECK(answer.number("line") == 4);
    CHECK(answer.number("stored") == 3);
    CHECK(answer.number("blank") == 1);
    peer.finish_sending();
    CHECK(peer.read_to_end() == "");
  }
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["stored"].number() == 4 * cuts);
  const std::vector<std::string> values = scan_values(service.dir());
  REQUIRE(values.size() == 4 * cuts);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i] == std::vector<std::string>{"one", "two", "three ", "four"}[i % 4]);
  }
}

TEST_CASE("a CR is kept with --keep-cr, also where a read ends between the two") {
  Service service({.store = "lmdb", .args = {"--keep-cr"}});
  TcpClient peer = service.connect();
  peer.no_delay();
  peer.send_all("one\r");
  wait_until_read(peer);
  peer.send_all("\ntwo\r\r\n\r\nthree\n!kv sync\r\n");  // Of a control line the CR always goes.
  const Answer answer = Answer::parse(peer.read_line().value());
  CHECK(answer.number("stored") == 4);
  CHECK(answer.number("blank") == 0);
  service.stop();
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"one\r", "two\r\r", "\r", "three"});
}

TEST_CASE("a stream that arrives byte by byte gives the same records") {
  Service service({.store = "map"});
  TcpClient peer = service.connect();
  peer.no_delay();
  for (const char byte : "one\ntwo\r\nthree\n!kv sync\n"s) peer.send_all(std::string_view(&byte, 1));
  const Answer answer = Answer::parse(peer.read_line().value());
  CHECK(answer.number("stored") == 3);
  CHECK(answer.text("tag").empty());
}

TEST_CASE("a sync answers for the lines before it, each connection for its own") {
  Service service({.store = "lmdb"});
  TcpClient one = service.connect();
  TcpClient other = service.connect();
  one.send_all("a\nb\n!kv sync first\nc\n!kv sync second\n");
  const Answer first = Answer::parse(one.read_line().value());
  const Answer second = Answer::parse(one.read_line().value());
  CHECK(first.text("tag") == "first");
  CHECK(first.number("line") == 2);
  CHECK(second.text("tag") == "second");
  CHECK(second.number("line") == 3);
  CHECK(second.number("stored") == 3);
  other.send_all("!kv sync\n");
  const Answer nothing = Answer::parse(other.read_line().value());
  CHECK(nothing.number("line") == 0);
  CHECK(nothing.number("stored") == 0);
  CHECK(nothing.number("seq") == 3);
}

TEST_CASE("an acknowledged line can be read from the store at once") {
  Service service({.store = "lmdb"});
  for (int i = 1; i <= 5; ++i) {
    CHECK(service.sync("line\n").word == "synced");
    CHECK(count_records(service.dir()) == static_cast<std::uint64_t>(i));
  }
}

TEST_CASE("a message beyond --max-line is rejected and its neighbours live") {
  Service service({.store = "lmdb", .args = {"--max-line", "1K"}});
  for (const std::size_t bytes : {1024u, 1025u, 5'000u, 3'000'000u}) {
    CAPTURE(bytes);
    const Answer answer = service.sync("before\n" + std::string(bytes, 'y') + "\nafter\n");
    CHECK(answer.number("line") == 3);
    CHECK(answer.number("stored") == (bytes > 1024 ? 2 : 3));
    CHECK(answer.number("rejected") == (bytes > 1024 ? 1 : 0));
  }
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["rejected"].number() == 3);
  const std::vector<std::string> values = scan_values(service.dir());
  CHECK(std::count(values.begin(), values.end(), "before") == 4);
  CHECK(std::count(values.begin(), values.end(), "after") == 4);
  CHECK(std::count(values.begin(), values.end(), std::string(1024, 'y')) == 1);
  CHECK(values.size() == 9);
}

TEST_CASE("a peer that vanishes in mid-line leaves whole lines and a reject, one that closes properly its last line") {
  Service service({.store = "lmdb"});
  {
    TcpClient peer = service.connect();
    peer.send_all("whole\npart of a li");
    wait_until_read(peer);
    peer.reset();
  }
  CHECK(send_and_finish(service.address(), "last line without an end") == "");
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["received"].number() == 3);
  CHECK(ledger["stored"].number() == 2);
  CHECK(ledger["rejected"].number() == 1);
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"whole", "last line without an end"});
}

TEST_CASE("that a half-closed connection ends is an answer: its lines are durable") {
  Service service({.store = "lmdb"});
  CHECK(send_and_finish(service.address(), numbered_lines(1'000)) == "");
  service.kill();
  CHECK(count_records(service.dir()) == 1'000);
}

TEST_CASE("columns of a csv feed make keys, and kvq finds a record by its key") {
  Service service({.store = "lmdb", .args = {"--format", "csv", "--header", "--key", "{symbol}/{date}"}});
  const Answer answer =
      service.sync("symbol,date,close\nAAA,2020-01-02,10.5\nBBB,2020-01-02,\"1,5\"\nAAA,2020-01-03\n");
  CHECK(answer.number("line") == 4);
  CHECK(answer.number("blank") == 1);
  CHECK(answer.number("stored") + answer.number("rejected") == 3);
  service.stop();
  const Finished found = run({program("kvq"), "get", "BBB/2020-01-02", "--dir", service.dir().native()});
  CHECK(found.exit.code == 0);
  CHECK(found.out == "BBB,2020-01-02,\"1,5\"");
  CHECK(run({program("kvq"), "get", "BBB/2020-01-03", "--dir", service.dir().native()}).exit.code == 1);
}

TEST_CASE("a run ends by itself after --messages, with exactly that many") {
  TempDir temp;
  Process limited({program("kvingest"), "--store", "map", "--listen", "127.0.0.1:0", "--messages", "500", "--json",
                   "--drain-timeout", "100ms", "--port-file", (temp / "ports").native()});
  const auto ports = wait_for_ports(limited, temp / "ports");
  TcpClient peer(ports.at("feed"));
  peer.send_some(numbered_lines(800), 1000ms);
  CHECK(limited.finish() == Exit{0, 0});
  CHECK(Json::parse(limited.out_text())["received"].number() == 500);
}

}  // namespace
}  // namespace kvingest::test
