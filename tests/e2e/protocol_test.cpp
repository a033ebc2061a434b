// The feed protocol, end to end: named sources, acknowledgements, limits and peers that misbehave.
//
// World: a kvingest of this build on loopback; where a test does not say otherwise, on an lmdb store of its own.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

Answer read_answer(TcpClient& peer) {
  const auto line = peer.read_line();
  REQUIRE(line);
  return Answer::parse(*line);
}

/// Connects and says hello; the answer is the first line.
TcpClient greet(const Service& service, const std::string& hello) {
  TcpClient peer = service.connect();
  peer.send_all("!kv hello " + hello + "\n");
  return peer;
}

void check_turned_away(TcpClient& peer, const std::string& code) {
  const Answer answer = read_answer(peer);
  CHECK(answer.word == "error");
  CHECK(answer.text("code") == code);
  CHECK(answer.line.ends_with(" closing"));
  peer.finish_sending();
  CHECK_FALSE(peer.read_line());
}

TEST_CASE("a source that resumes is told its next line, and what it sends again is dropped by number") {
  Service service;
  TcpClient first = greet(service, "source=ticks from=1");
  CHECK(read_answer(first).number("next") == 1);
  first.send_all("AAPL,187.1\nMSFT,410.5\n!kv sync\n");
  CHECK(read_answer(first).number("line") == 2);
  TcpClient second = greet(service, "source=ticks from=1");
  const Answer welcome = read_answer(second);
  CHECK(welcome.word == "welcome");
  CHECK(welcome.text("source") == "ticks");
  CHECK(welcome.number("next") == 3);
  CHECK(welcome.text("format") == "line");
  second.send_all("AAPL,187.1\nMSFT,410.5\nAAPL,187.2\n!kv sync\n");
  CHECK(read_answer(second).line == "!kv synced line=3 stored=1 rejected=0 blank=0 duplicate=2 seq=3 level=disk");
  check_balance(service.stop());
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"AAPL,187.1", "MSFT,410.5", "AAPL,187.2"});
}

TEST_CASE("lines that follow a hello at once are numbered from the next one") {
  Service service;
  for (const std::string round : {"a", "b"}) {
    TcpClient peer = greet(service, fmt::format("source=s\n{0}1\n{0}2\n!kv bye", round));
    CHECK(read_answer(peer).word == "welcome");
    CHECK(read_answer(peer).number("stored") == 2);
    CHECK_FALSE(peer.read_line());
  }
  service.stop();
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"a1", "a2", "b1", "b2"});
}

TEST_CASE("the newest hello owns a source: the older connection is told and can store nothing more") {
  Service service({.args = {"--cpu", "none"}});
  TcpClient old = greet(service, "source=s from=1");
  read_answer(old);
  old.send_all("old 1\n!kv sync\n");
  CHECK(read_answer(old).number("line") == 1);
  TcpClient fresh = greet(service, "source=s from=2");
  CHECK(read_answer(fresh).number("next") == 2);
  static_cast<void>(old.send_some("old 2\n", 100ms));
  check_turned_away(old, "superseded");
  fresh.send_all("new 2\n!kv sync\n");
  CHECK(read_answer(fresh).number("stored") == 1);
  check_balance(service.stop());
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"old 1", "new 2"});
}

TEST_CASE("a hello that makes no sense is refused with its reason, and the service goes on") {
  Service service;
  const std::pair<std::string, std::string> cases[] = {{"source=s from=9", "gap"},
                                                       {"source=@x", "bad_source"},
                                                       {"source=" + std::string(129, 'n'), "bad_source"},
                                                       {"source=\"a b\"", "bad_source"},
                                                       {"source=s from=0", "bad_from"},
                                                       {"source=s from=x", "bad_from"},
                                                       {"from=1", "bad_from"},
                                                       {"source=s ack=soon", "bad_ack"},
                                                       {"source=s colour=red", "bad_hello"},
                                                       {"source=s stray", "bad_hello"}};
  for (const auto& [hello, code] : cases) {
    CAPTURE(hello);
    TcpClient peer = greet(service, hello);
    check_turned_away(peer, code);
  }
  TcpClient late = service.connect();
  late.send_all("data\n!kv hello source=s\n");
  check_turned_away(late, "late_hello");
  CHECK(service.sync("still here\n").number("stored") == 1);
  service.stop();
}

TEST_CASE("acknowledgements rise, are durable and few") {
  Service service;
  TcpClient peer = greet(service, "source=a ack=20ms");
  read_answer(peer);
  constexpr std::uint64_t kLines = 200'000;
  peer.send_all(numbered_lines(kLines));
  std::uint64_t last = 0;
  int acks = 0;
  while (last < kLines) {
    const Answer answer = read_answer(peer);
    REQUIRE(answer.word == "ack");
    REQUIRE(answer.number("line") > last);
    last = answer.number("line");
    ++acks;
  }
  CHECK(acks < 1000);
  service.kill();
  CHECK(count_records(service.dir()) == kLines);
}

TEST_CASE("status shows counts and watermarks, bye answers like a sync and closes") {
  Service service;
  TcpClient peer = service.connect();
  peer.send_all("a\nb\n!kv sync\n");
  read_answer(peer);
  peer.send_all("!kv status\n!kv bye\n");
  const Answer status = read_answer(peer);
  CHECK(status.word == "status");
  CHECK(status.number("received") == 2);
  CHECK(status.number("pending") == 0);
  CHECK(status.number("stored") == 2);
  CHECK(status.number("on_disk") == 2);
  CHECK(read_answer(peer).word == "synced");
  CHECK_FALSE(peer.read_line());
  service.stop();
}

TEST_CASE("control lines that are none are kept as rejected messages, escaped ones are data") {
  Service service;
  TcpClient peer = service.connect();
  peer.send_all("one\n!kv frobnicate x=1\n!!kv sync not a command\n!kv\n!kv sync \"open\ntwo\n!kv sync\n");
  const Answer first = read_answer(peer);
  CHECK(first.text("code") == "control");
  CHECK(first.number("line") == 2);
  CHECK(read_answer(peer).number("line") == 5);
  const Answer synced = read_answer(peer);
  CHECK(synced.number("stored") == 4);
  CHECK(synced.number("rejected") == 2);
  CHECK(synced.text("rejected_lines") == "2,5");
  check_balance(service.stop());
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"one", "!kv sync not a command", "!kv", "two"});
}

TEST_CASE("kvfeed sends a file that looks like control lines as data, with a source and without") {
  const TempDir files;
  std::ofstream(files / "feed.txt") << "one\n!kv bye\n!!kv sync\n!kv hello source=x\ntwo\n";
  const std::vector<std::string> lines = {"one", "!kv bye", "!!kv sync", "!kv hello source=x", "two"};
  const std::vector<std::vector<std::string>> ways = {{}, {"--source", "s"}, {"--no-control"}};
  for (const auto& way : ways) {
    const bool raw = !way.empty() && way[0] == "--no-control";
    Service service({.args = raw ? way : std::vector<std::string>()});
    std::vector<std::string> feed = {
        program("kvfeed"), "--connect", service.address(), "--file", (files / "feed.txt").native(), "--quiet"};
    feed.insert(feed.end(), way.begin(), way.end());
    const Finished done = run(feed);
    CAPTURE(done.err);
    CHECK(done.exit.code == 0);
    service.stop();
    CHECK(scan_values(service.dir()) == lines);
  }
}

TEST_CASE("with --no-control every line is data, also one that looks like HTTP") {
  Service service({.args = {"--no-control"}});
  CHECK(send_and_finish(service.address(), "GET / HTTP/1.1\n!kv sync\n").empty());
  service.stop();
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"GET / HTTP/1.1", "!kv sync"});
}

TEST_CASE("other protocols on the port get one readable line and a close, however they are cut") {
  Service service({.store = "map"});
  for (const std::string& first :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n"s, "\x16\x03\x01\x02\x00\x01"s, "\xff\xfd\x18"s, "*1\r\n$4\r\nPING\r\n"s}) {
    for (const std::size_t piece : {std::size_t{1}, first.size()}) {
      TcpClient peer = service.connect();
      peer.no_delay();
      for (std::size_t at = 0; at < first.size(); at += piece) {
        static_cast<void>(peer.send_some(std::string_view(first).substr(at, piece), 100ms));
      }
      check_turned_away(peer, "wrong_protocol");
    }
  }
  CHECK(service.sync("\xff data may begin so\nGET a life\n*1 is a rating\n").number("stored") == 3);
  for (const std::string& first : {"\xff\xfe"
                                   "U\0T\0F\0"s,
                                   "\xff\xfc"s, "\xff\xff"s, "\x16\x03\x05"s, "GET"s, "*1\r"s}) {
    CAPTURE(first);
    CHECK(service.sync(first + "\n").number("stored") == 1);
  }
  CHECK(service.stop()["received"].number() == 9);
}

TEST_CASE("varint framing carries any bytes, and a bad length closes only its connection") {
  const auto frame = [](std::string_view message) {
    std::string bytes;
    std::size_t length = message.size();
    for (; length >= 128; length >>= 7) bytes += static_cast<char>(length | 128);
    return (bytes += static_cast<char>(length)).append(message);
  };
  Service service({.args = {"--framing", "varint", "--max-line", "1K"}});
  TcpClient peer = service.connect();
  peer.send_all(frame("a\nb") + frame("") + frame(std::string(1000, '\0')) + frame(std::string(5000, 'z')) +
                frame("!kv sync t"));
  const auto length = static_cast<unsigned char>(peer.read_exactly(1)[0]);
  const Answer synced = Answer::parse(peer.read_exactly(length));
  CHECK(synced.number("stored") == 2);
  CHECK(synced.number("blank") == 1);
  CHECK(synced.number("rejected") == 1);
  TcpClient bad = service.connect();
  bad.send_all(frame("good") + std::string(11, '\xff'));
  CHECK(bad.read_exactly(40).find("code=bad_frame") != std::string::npos);
  check_balance(service.stop());
  CHECK(scan_values(service.dir()) == std::vector<std::string>{"a\nb", std::string(1000, '\0'), "good"});
}

TEST_CASE("strict mode closes at the first rejected message and keeps what came before") {
  Service service({.args = {"--strict", "--max-line", "10"}});
  TcpClient peer = service.connect();
  peer.send_all("good\n" + std::string(20, 'x') + "\nnever\n");
  check_turned_away(peer, "rejected");
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["stored"].number() == 1);
  CHECK(ledger["rejected"].number() == 1);
}

TEST_CASE("beyond --max-connections and --max-sources a peer is told, and room is made again") {
  Service service({.args = {"--max-connections", "3", "--max-sources", "1"}});
  TcpClient first = greet(service, "source=a");
  read_answer(first);
  TcpClient second = greet(service, "source=b");
  check_turned_away(second, "too_many_sources");
  second.close();
  std::vector<TcpClient> held;
  std::optional<TcpClient> refused;
  for (int i = 0; i < 20 && !refused; ++i) {
    TcpClient peer = service.connect();
    peer.send_all("!kv status\n");
    if (read_answer(peer).word == "error") {
      refused = std::move(peer);
    } else {
      held.push_back(std::move(peer));
    }
  }
  REQUIRE(refused);
  CHECK(held.size() <= 2);
  held.clear();
  first.close();
  for (int i = 0; i < 1000; ++i) {
    TcpClient peer = service.connect();
    static_cast<void>(peer.send_some("!kv status\n", 100ms));
    if (const auto line = peer.read_line(); line && line->starts_with("!kv status")) break;
    REQUIRE(i < 999);
  }
  service.stop();
}

TEST_CASE("a peer that never reads its answers costs bounded memory and stops nobody") {
  Service service({.store = "map"});
  TcpClient deaf = service.connect();
  deaf.receive_buffer(4096);
  std::string syncs;
  for (int i = 0; i < 20'000; ++i) syncs += "!kv sync aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 20; ++i) {
    if (deaf.send_some(syncs, 200ms) < syncs.size()) break;
    REQUIRE(i < 19);  // Blocked at last: it is not read any more.
  }
  CHECK(service.sync("another\n").number("stored") == 1);
#ifndef KVINGEST_SANITIZED
  CHECK(status_kib(service.pid(), "RssAnon") < 64 * 1024);
#endif
  deaf.reset();
  service.stop();
}

TEST_CASE("an idle connection is closed after --idle-timeout, a busy one is not") {
  Service service({.args = {"--idle-timeout", "300ms"}});
  TcpClient idle = service.connect();
  idle.send_all("one\n");
  CHECK_FALSE(idle.read_line());
  CHECK(service.sync("two\n").number("stored") == 1);
  CHECK(service.stop()["stored"].number() == 2);
}

TEST_CASE("the columns of a csv source are kept: a connection that resumes behind the header uses them") {
  const std::vector<std::string> args = {"--format", "csv", "--header", "--key", "{symbol}/{date}"};
  Service service({.args = args});
  TcpClient first = greet(service, "source=bars from=1");
  read_answer(first);
  first.send_all("symbol,date,close\nA,2024-01-02,1\n!kv sync\n");
  CHECK(read_answer(first).number("stored") == 1);
  TcpClient second = greet(service, "source=bars from=3");
  CHECK(read_answer(second).number("next") == 3);
  second.send_all("B,2024-01-02,2\n!kv sync\n");
  CHECK(read_answer(second).number("stored") == 1);
  TcpClient third = greet(service, "source=bars from=1");
  read_answer(third);
  third.send_all("symbol,date,close\nA,2024-01-02,1\nB,2024-01-02,2\nC,2024-01-02,3\n!kv sync\n");
  const Answer synced = read_answer(third);
  CHECK(synced.number("stored") == 1);
  CHECK(synced.number("duplicate") == 3);
  check_balance(service.stop());
  CHECK(count_records(service.dir()) == 3);
}

TEST_CASE("a header that differs from the store's columns is refused with its line, in this run and the next") {
  const std::vector<std::string> args = {"--format", "csv", "--header", "--key", "{symbol}/{date}"};
  const TempDir temp;
  const auto refused = [](const Service& service, const std::string& hello) {
    TcpClient peer = service.connect();
    if (!hello.empty()) {
      peer.send_all("!kv hello " + hello + "\n");
      read_answer(peer);
    }
    peer.send_all("date,symbol\n2024-01-02,A\n!kv sync\n");
    const Answer error = read_answer(peer);
    CHECK(error.text("code") == "header_changed");
    CHECK(error.number("line") == 1);
    CHECK(error.line.find("symbol,date,close") != std::string::npos);
    const Answer synced = read_answer(peer);
    CHECK(synced.number("stored") == 0);
    CHECK(synced.text("rejected_lines") == "1,2");
  };
  {
    Service service({.store = "lmdb", .dir = temp / "db", .args = args});
    CHECK(service.sync("symbol,date,close\nA,2024-01-02,1\n").number("stored") == 1);
    refused(service, "");
    refused(service, "source=s from=1");
    CHECK(service.sync("symbol,date,close\nB,2024-01-02,1\n").number("stored") == 1);
    check_balance(service.stop());
  }
  CHECK(run({program("kvq"), "export", "--format", "csv", "--dir", (temp / "db").native()}).out ==
        "symbol,date,close\nA,2024-01-02,1\nB,2024-01-02,1\n");
  CHECK(run({program("kvq"), "stats", "--dir", (temp / "db").native()}).out.find("symbol,date,close") !=
        std::string::npos);
  {
    Service service({.store = "lmdb", .dir = temp / "db", .args = args});
    refused(service, "");
    service.stop();
  }
  std::vector<std::string> other = {"--store",        "lmdb",        "--dir",    (temp / "db").native(),
                                    "--listen",       "127.0.0.1:0", "--format", "csv",
                                    "--columns",      "symbol,date", "--header", "--key",
                                    "{symbol}/{date}"};
  check_refused(run_kvingest(other), 3, "'symbol,date,close', which a header named, not 'symbol,date'");
  Service forced(
      {.dir = temp / "db", .args = {"--format", "csv", "--header", "--key", "{symbol}/{date}", "--force-template"}});
  CHECK(forced.sync("date,symbol\n2024-01-03,C\n").number("stored") == 1);
  forced.stop();
  CHECK(run({program("kvq"), "export", "--format", "csv", "--prefix", "C", "--dir", (temp / "db").native()}).out ==
        "date,symbol\n2024-01-03,C\n");
}

TEST_CASE("connections that send different headers at once agree on one of them") {
  Service service({.args = {"--format", "csv", "--header", "--cpu", "none", "--durability", "kernel"}});
  std::vector<TcpClient> peers;
  for (int i = 0; i < 20; ++i) peers.push_back(service.connect());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].send_all(i % 2 == 0 ? "a,b\n1,2\n!kv bye\n" : "b,a\n3,4\n!kv bye\n");
  }
  std::uint64_t stored = 0;
  for (TcpClient& peer : peers) {
    std::string last;
    while (const auto line = peer.read_line()) last = *line;
    stored += Answer::parse(last).number("stored");
  }
  CHECK(stored == 10);
  check_balance(service.stop());
  std::vector<std::string> values = scan_values(service.dir());
  CHECK(std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end());
}

TEST_CASE("a named source's cut last line is forgotten, since it will be sent again") {
  Service service;
  TcpClient peer = greet(service, "source=s from=1");
  read_answer(peer);
  peer.send_all("whole\nhal");
  peer.finish_sending();
  CHECK_FALSE(peer.read_line());
  TcpClient again = greet(service, "source=s");
  CHECK(read_answer(again).number("next") == 2);
  const Json ledger = service.stop();
  CHECK(ledger["received"].number() == 1);
  CHECK(ledger["rejected"].number() == 0);
}

TEST_CASE("kvfeed --source says which lines were rejected, also where a control line is longer than a message may be") {
  Service service({.args = {"--max-line", "12"}});
  const TempDir files;
  std::ofstream(files / "feed.txt") << "short\nthis is too long\nshort\n";
  Process feed({program("kvfeed"), "--connect", service.address(), "--file", (files / "feed.txt").native(), "--source",
                "f", "--json", "--quiet"});
  CHECK(feed.finish().code == 0);
  const Json result = Json::parse(feed.out_text());
  CHECK(result["durable"].number() == 3);
  CHECK(result["rejected"].number() == 1);
  CHECK(result["rejected_lines"].text() == "2");
  service.stop();
}

}  // namespace
}  // namespace kvingest::test
