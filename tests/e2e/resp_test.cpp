// Redis clients, end to end: what they read and write, in which order, and what of it survives.
//
// World: a kvingest of this build with --resp on loopback, on each engine where it matters.
#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "tests/e2e/e2e.hpp"
#include "tests/support/resp_peer.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

Service::Options with_resp(const std::string& store, std::vector<std::string> args = {}) {
  args.insert(args.end(), {"--resp", "127.0.0.1:0"});
  return {.store = store, .args = std::move(args)};
}

RespPeer client_of(const Service& service) {
  return RespPeer(service.address("resp"));
}

/// All of the lines are durable.
void feed(const Service& service, const std::string& lines) {
  CHECK(service.sync(lines).word == "synced");
}

Finished kvq_on(std::vector<std::string> args) {
  args.insert(args.begin(), program("kvq"));
  return run(std::move(args));
}

TEST_CASE("records are written and read, and what was answered survives kill -9, on every engine") {
  for (const std::string store : {"file", "mmap", "lmdb", "rocksdb"}) {
    CAPTURE(store);
    Service service(with_resp(store));
    RespPeer peer = client_of(service);
    const std::string odd("\0\xff\r\n", 4);
    CHECK(peer.ask({"PING"}) == "+PONG");
    CHECK(peer.ask({"SET", "a", odd}) == "+OK");
    CHECK(peer.ask({"GET", "a"}) == "\"" + odd + "\"");
    CHECK(peer.ask({"GET", "none"}) == "nil");
    CHECK(peer.ask({"MSET", "b", "1", "c", "2"}) == "+OK");
    CHECK(peer.ask({"MGET", "b", "none", "c"}) == "[\"1\" nil \"2\"]");
    CHECK(peer.ask({"EXISTS", "a", "b", "none", "a"}) == "3");
    CHECK(peer.ask({"DEL", "b", "none", "b"}) == "1");
    CHECK(peer.ask({"DBSIZE"}) == "2");
    CHECK(peer.ask({"STRLEN", "a"}) == "4");
    CHECK(peer.ask({"TYPE", "a"}) == "+string");
    CHECK(peer.ask({"TYPE", "b"}) == "+none");
    service.kill();
    CHECK(count_records(service.dir()) == 2);
  }
}

TEST_CASE("parts of values are those that Redis gives") {
  Service service(with_resp("map"));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"SET", "k", "This is a string"}) == "+OK");
  CHECK(peer.ask({"GETRANGE", "k", "0", "3"}) == "\"This\"");
  CHECK(peer.ask({"GETRANGE", "k", "-3", "-1"}) == "\"ing\"");
  CHECK(peer.ask({"GETRANGE", "k", "0", "-1"}) == "\"This is a string\"");
  CHECK(peer.ask({"GETRANGE", "k", "10", "100"}) == "\"string\"");
  CHECK(peer.ask({"GETRANGE", "k", "5", "2"}) == "\"\"");
  CHECK(peer.ask({"GETRANGE", "k", "-1", "-3"}) == "\"\"");
  CHECK(peer.ask({"GETRANGE", "none", "0", "-1"}) == "\"\"");
  CHECK(peer.ask({"GETRANGE", "k", "a", "2"}) == "-ERR value is not an integer or out of range");
}

TEST_CASE("conditions are decided in the order of the queue") {
  Service service(with_resp("lmdb", {"--durability", "kernel"}));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"SET", "a", "1", "XX"}) == "nil");
  CHECK(peer.ask({"SET", "a", "1", "NX"}) == "+OK");
  CHECK(peer.ask({"SET", "a", "2", "NX"}) == "nil");
  CHECK(peer.ask({"SET", "a", "2", "NX", "GET"}) == "\"1\"");
  CHECK(peer.ask({"SET", "a", "2", "xx", "get"}) == "\"1\"");
  CHECK(peer.ask({"SETNX", "a", "3"}) == "0");
  CHECK(peer.ask({"SETNX", "b", "3"}) == "1");
  CHECK(peer.ask({"SET", "a", "1", "NX", "XX"}) == "-ERR syntax error");
  // In one write, so that all of them are in one batch.
  std::string pipeline;
  for (int i = 0; i < 100; ++i) pipeline += resp_request({"SETNX", "c", std::to_string(i)});
  pipeline += resp_request({"DEL", "c"}) + resp_request({"DEL", "c"}) + resp_request({"SETNX", "c", "x"}) +
              resp_request({"GET", "c"});
  peer.stream().send_all(pipeline);
  CHECK(peer.answer() == "1");
  for (int i = 1; i < 100; ++i) CHECK(peer.answer() == "0");
  CHECK(peer.answer() == "1");
  CHECK(peer.answer() == "0");
  CHECK(peer.answer() == "1");
  CHECK(peer.answer() == "\"x\"");
}

TEST_CASE("a transaction is one step, and sees what it has written") {
  Service service(with_resp("mmap"));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"EXEC"}) == "-ERR EXEC without MULTI");
  CHECK(peer.ask({"MULTI"}) == "+OK");
  CHECK(peer.ask({"MULTI"}) == "-ERR MULTI calls can not be nested");
  for (const auto& words : std::vector<std::vector<std::string>>{{"SET", "m", "1"},
                                                                 {"GET", "m"},
                                                                 {"DEL", "m"},
                                                                 {"GET", "m"},
                                                                 {"SET", "n", "2"},
                                                                 {"MGET", "m", "n"},
                                                                 {"PING"}})
    CHECK(peer.ask(words) == "+QUEUED");
  CHECK(peer.ask({"EXEC"}) == "[+OK \"1\" 1 nil +OK [nil \"2\"] +PONG]");
  CHECK(peer.ask({"MULTI"}) == "+OK");
  CHECK(peer.ask({"SET", "n"}) == "-ERR wrong number of arguments for 'set' command");
  CHECK(peer.ask({"SET", "n", "3"}) == "+QUEUED");
  CHECK(peer.ask({"EXEC"}) == "-EXECABORT Transaction discarded because of previous errors.");
  CHECK(peer.ask({"GET", "n"}) == "\"2\"");
  CHECK(peer.ask({"MULTI"}) == "+OK");
  CHECK(peer.ask({"SET", "n", "3"}) == "+QUEUED");
  CHECK(peer.ask({"DISCARD"}) == "+OK");
  CHECK(peer.ask({"GET", "n"}) == "\"2\"");
  CHECK(peer.ask({"WATCH", "n"}).starts_with("-ERR WATCH is not supported"));
}

TEST_CASE("what cannot be kept is refused with a reason, and what is not known has Redis' words") {
  Service service(with_resp("map"));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"NOSUCH", "x"}) == "-ERR unknown command 'NOSUCH', with args beginning with: 'x' ");
  CHECK(peer.ask({"GET"}) == "-ERR wrong number of arguments for 'get' command");
  CHECK(peer.ask({"SET", "x", "1", "EX", "10"}).starts_with("-ERR records do not expire"));
  CHECK(peer.ask({"SELECT", "0"}) == "+OK");
  CHECK(peer.ask({"SELECT", "1"}).starts_with("-ERR DB index is out of range"));
  CHECK(peer.ask({"SUBSCRIBE", "c"}).starts_with("-ERR SUBSCRIBE is not supported"));
  CHECK(peer.ask({"FLUSHDB"}).find("--allow-flush") != std::string::npos);
  CHECK(peer.ask({"SET", "", "1"}).starts_with("-ERR an empty key"));
  CHECK(peer.ask({"SET", std::string(512, 'k'), "1"}).starts_with("-ERR a key of 512 bytes"));
  CHECK(peer.ask({"GET", std::string(512, 'k')}) == "nil");
  CHECK(peer.ask({"CONFIG", "SET", "save", "1"}).starts_with("-ERR CONFIG SET"));
  CHECK(peer.ask({"AUTH", "x"}).starts_with("-ERR AUTH <password> called"));
  CHECK(peer.ask({"DBSIZE"}) == "0");
  CHECK(peer.ask({"QUIT"}) == "+OK");
  CHECK_FALSE(peer.stream().read_line());
}

TEST_CASE("flushing erases everything in one step where it is allowed") {
  Service service(with_resp("lmdb", {"--allow-flush", "--durability", "kernel"}));
  RespPeer peer = client_of(service);
  feed(service, numbered_lines(1'000));
  CHECK(peer.ask({"SET", "a", "1"}) == "+OK");
  CHECK(peer.ask({"FLUSHDB"}) == "+OK");
  CHECK(peer.ask({"DBSIZE"}) == "0");
  CHECK(peer.ask({"SET", "b", "1"}) == "+OK");
  service.stop();
  CHECK(count_records(service.dir()) == 1);
  CHECK(kvq_on({"audit", "--dir", service.dir().native()}).exit.code == 0);
}

TEST_CASE("the ledger balances over records of feeds and of clients, by number and by key") {
  for (const std::string key : {"{seq}", "k/{seq}", "{line}"}) {
    CAPTURE(key);
    Service service(with_resp("mmap", {"--key", key}));
    RespPeer peer = client_of(service);
    feed(service, numbered_lines(100));
    for (int i = 0; i < 20; ++i) CHECK(peer.ask({"SET", fmt::format("name {}", i % 10), "v"}) == "+OK");
    CHECK(peer.ask({"SETNX", "name 1", "v"}) == "0");
    CHECK(peer.ask({"DEL", "name 1", "name 2"}) == "2");
    const std::string numbered = key == "{seq}"     ? std::string("\0\0\0\0\0\0\0\x05", 8)
                                 : key == "k/{seq}" ? fmt::format("k/{:020}", 5)
                                                    : "Benchmark Message 5";
    CHECK(peer.ask({"GET", numbered}) != "nil");
    CHECK(peer.ask({"DEL", numbered}) == "1");
    if (key != "{line}") CHECK(peer.ask({"SET", numbered, "v"}).starts_with("-ERR keys that hold an arrival number"));
    const Json ledger = service.stop();
    check_balance(ledger);
    CHECK(ledger["received"].number() == 121);
    CHECK(ledger["stored"].number() == 120);
    CHECK(ledger["blank"].number() == 1);
    const Finished audit = kvq_on({"audit", "--dir", service.dir().native()});
    CAPTURE(audit.out);
    CHECK(audit.exit.code == 0);
    CHECK(audit.out.find("source @resp: received 21  stored 20") != std::string::npos);
  }
}

TEST_CASE("iterating gives every key that stays, whatever is written meanwhile and over a restart") {
  const TempDir temp;
  std::set<std::string> stays;
  std::set<std::string> seen;
  std::string cursor = "0";
  const auto step = [&](RespPeer& peer) {
    const std::string page = peer.ask({"SCAN", cursor, "COUNT", "37"});
    std::size_t at = 1;
    std::vector<std::string> words;
    while ((at = page.find('"', at)) != std::string::npos) {
      const std::size_t end = page.find('"', at + 1);
      words.push_back(page.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    cursor = words.at(0);
    seen.insert(words.begin() + 1, words.end());
  };
  Service::Options options = with_resp("lmdb", {"--key", "{line}", "--durability", "kernel"});
  options.dir = temp / "db";
  {
    Service service(options);
    std::string lines;
    for (int i = 0; i < 1'000; ++i) {
      stays.insert(fmt::format("stays {:04}", i));
      lines += fmt::format("stays {:04}\ngoes {:04}\n", i, i);
    }
    CHECK(service.sync(lines).number("stored") == 2'000);
    RespPeer peer = client_of(service);
    step(peer);
    for (int i = 0; i < 15; ++i) {
      CHECK(peer.ask({"DEL", fmt::format("goes {:04}", i * 60), *seen.rbegin() + "x"}) != "2");
      CHECK(peer.ask({"SET", fmt::format("a new {}", i), "v"}) == "+OK");
      step(peer);
    }
    service.stop();
  }
  Service service(options);
  RespPeer peer = client_of(service);
  // The key behind the cursor is gone, too: what was seen comes again, and nothing is left out.
  for (int i = 0; i < 1'000; ++i) peer.send({"DEL", fmt::format("goes {:04}", i)});
  for (int i = 0; i < 1'000; ++i) peer.answer();
  for (int steps = 0; cursor != "0"; ++steps) {
    REQUIRE(steps < 1'000);
    step(peer);
  }
  for (const std::string& key : stays) CHECK(seen.contains(key));
  CHECK(peer.ask({"SCAN", "0", "MATCH", "stays 000[0-2]", "COUNT", "100"}) ==
        "[\"0\" [\"stays 0000\" \"stays 0001\" \"stays 0002\"]]");
  CHECK(peer.ask({"SCAN", "x"}) == "-ERR invalid cursor");
  CHECK(peer.ask({"SCAN", "0", "COUNT", "0"}) == "-ERR syntax error");
  CHECK(peer.ask({"SCAN", "0", "TYPE", "list", "COUNT", "10000"}).ends_with(" []]"));
}

TEST_CASE("ranges are in key order, both ways, with bounds and limits") {
  Service service(with_resp("mmap"));
  feed(service, numbered_lines(2'500, "m"));
  RespPeer peer = client_of(service);
  const auto key = [](int number) {
    const auto byte = [&](int shift) { return static_cast<char>((number >> shift) & 0xFF); };
    return "\"" + std::string(6, '\0') + byte(8) + byte(0) + "\"";
  };
  CHECK(peer.ask({"KV.RANGE", "3", "5"}) == "[" + key(3) + " \"m 2\" " + key(4) + " \"m 3\"]");
  CHECK(peer.ask({"KV.RANGE", "", "", "REV", "LIMIT", "1"}) == "[" + key(2'500) + " \"m 2499\"]");
  CHECK(peer.ask({"KV.RANGE", "5", "3"}) == "[]");
  const std::string all = peer.ask({"KV.RANGE", "", "", "LIMIT", "100000"});
  std::size_t rows = 0;
  for (std::size_t at = all.find(" \"m "); at != std::string::npos; at = all.find(" \"m ", at + 1)) ++rows;
  CHECK(rows == 2'500);
  CHECK(peer.ask({"KV.RANGE", "a", "b", "LIMIT"}) == "-ERR syntax error");
}

TEST_CASE("a follower gets each record that arrives, and waits for it") {
  Service service(with_resp("lmdb", {"--key", "k/{seq}"}));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"KV.TAIL", "$"}) == "nil");
  feed(service, "one\ntwo\n");
  CHECK(peer.ask({"KV.TAIL", "0", "COUNT", "1"}) == fmt::format("[1 [\"k/{:020}\" \"one\"]]", 1));
  CHECK(peer.ask({"KV.TAIL", "1"}) == fmt::format("[2 [\"k/{:020}\" \"two\"]]", 2));
  CHECK(peer.ask({"KV.TAIL", "2", "BLOCK", "10"}) == "nil");
  peer.send({"KV.TAIL", "2", "BLOCK", "0"});
  CHECK_FALSE(peer.stream().read_some(50ms));
  feed(service, "three\n");
  CHECK(peer.answer() == fmt::format("[3 [\"k/{:020}\" \"three\"]]", 3));
  CHECK(peer.ask({"PING"}) == "+PONG");
  peer.send({"KV.TAIL", "3", "BLOCK", "0"});  // It is let go when the service stops.
  check_balance(service.stop());
  Service by_line(with_resp("lmdb", {"--key", "{line}"}));
  CHECK(client_of(by_line).ask({"KV.TAIL", "0"}).starts_with("-ERR KV.TAIL follows arrival numbers"));
}

TEST_CASE("a client that asks and half-closes gets every answer") {
  Service service(with_resp("mmap"));
  RespPeer peer = client_of(service);
  for (int i = 0; i < 100; ++i) peer.send({"SET", std::to_string(i), "v"});
  peer.send({"GET", "99"});
  peer.stream().finish_sending();
  for (int i = 0; i < 100; ++i) CHECK(peer.answer() == "+OK");
  CHECK(peer.answer() == "\"v\"");
  CHECK_FALSE(peer.stream().read_line());
}

TEST_CASE("attacks end their own connection, and cost no memory") {
  Service service(with_resp("map"));
  const std::vector<std::string> attacks = {"*2147483647\r\n", "*1\r\n$2147483647\r\n",   "*1\r\n$-7\r\n",
                                            "*1\r\n:1\r\n",    std::string(200'000, 'A'), "*1\r\n*1\r\n*1\r\n"};
  for (const std::string& attack : attacks) {
    CAPTURE(attack.substr(0, 40));
    RespPeer peer = client_of(service);
    static_cast<void>(peer.stream().send_some(attack, 1s));
    const auto line = peer.stream().read_line();
    REQUIRE(line);
    CHECK(line->starts_with("-ERR Protocol error: "));
    CHECK(peer.stream().read_to_end().empty());
  }
  RespPeer web = client_of(service);
  web.stream().send_all("POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a 1\r\n");
  CHECK(web.stream().read_to_end().starts_with("-ERR unknown command 'POST'"));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"DBSIZE"}) == "0");
#ifndef KVINGEST_SANITIZED
  CHECK(status_kib(service.pid(), "RssAnon") < 100'000);
#endif
}

TEST_CASE("half requests and unread answers are held within bounds, and harm nobody else") {
  Service service(with_resp("map"));
  RespPeer other = client_of(service);
  const std::string value(std::size_t{1} << 20, 'v');
  CHECK(other.ask({"SET", "big", value}) == "+OK");
  // Twenty half requests of 30 MB each, against a bound of 256 MiB.
  std::vector<RespPeer> half;
  for (int i = 0; i < 20; ++i) {
    half.push_back(client_of(service));
    static_cast<void>(half.back().stream().send_some(
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$40000000\r\n" + std::string(30'000'000, 'x'), 2s));
    CHECK(other.ask({"PING"}) == "+PONG");
  }
  // One that asks for 200 MiB and reads none of it.
  RespPeer slow = client_of(service);
  std::string asks;
  for (int i = 0; i < 200; ++i) asks += resp_request({"GET", "big"});
  slow.stream().send_all(asks);
  for (int i = 0; i < 100; ++i) CHECK(other.ask({"PING"}) == "+PONG");
#ifndef KVINGEST_SANITIZED
  CHECK(status_kib(service.pid(), "RssAnon") < 600'000);
#endif
  half.clear();
  for (int i = 0; i < 200; ++i) REQUIRE(slow.answer().size() == value.size() + 2);
}

TEST_CASE("more clients than are allowed are told so") {
  Service service(with_resp("map", {"--max-clients", "2"}));
  RespPeer one = client_of(service);
  RespPeer two = client_of(service);
  CHECK(one.ask({"PING"}) == "+PONG");
  CHECK(two.ask({"PING"}) == "+PONG");
  CHECK(client_of(service).answer() == "-ERR max number of clients reached");
  CHECK(one.ask({"QUIT"}) == "+OK");
  CHECK(eventually([&] {
    RespPeer three = client_of(service);
    static_cast<void>(three.stream().send_some("PING\r\n", 1s));
    return three.stream().read_line().value_or("").starts_with("+PONG");
  }));
}

TEST_CASE("HELLO chooses the version, and the client's own commands answer") {
  Service service(with_resp("map"));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"HELLO", "4"}) == "-NOPROTO unsupported protocol version");
  CHECK(peer.ask({"HELLO", "3", "SETNAME", "me"}).starts_with("{\"server\" \"kvingest\""));
  CHECK(peer.ask({"GET", "none"}) == "nil");
  CHECK(peer.ask({"CLIENT", "GETNAME"}) == "\"me\"");
  CHECK(peer.ask({"CLIENT", "SETINFO", "LIB-NAME", "x"}) == "+OK");
  CHECK(peer.ask({"CLIENT", "SETNAME", "a b"}).starts_with("-ERR Client names"));
  CHECK(peer.ask({"CONFIG", "GET", "app*"}) == "{\"appendfsync\" \"no\" \"appendonly\" \"no\"}");
  CHECK(peer.ask({"COMMAND", "COUNT"}) != "0");
  CHECK(peer.ask({"COMMAND", "INFO", "get", "nosuch"}) == "[[\"get\" 2 [+readonly +fast] 1 1 1 [] [] [] []] nil]");
  CHECK(peer.ask({"COMMAND", "DOCS", "set"}).find("\"pure-token\"") != std::string::npos);
  CHECK(peer.ask({"INFO"}).find("connected_clients:1") != std::string::npos);
  CHECK(peer.ask({"INFO", "keyspace"}) == "\"txt:# Keyspace\r\n\"");
  CHECK(peer.ask({"ECHO", "hi"}) == "\"hi\"");
  CHECK(peer.ask({"RESET"}) == "+RESET");
}

TEST_CASE("kvq works on a store in use, through the directory and over the network") {
  for (const std::string store : {"file", "mmap", "lmdb", "rocksdb"}) {
    CAPTURE(store);
    const TempDir temp;
    Service service(with_resp(store));
    feed(service, numbered_lines(1'500));
    const auto by_dir = [&](std::vector<std::string> args) {
      args.insert(args.end(), {"--dir", service.dir().native()});
      return kvq_on(std::move(args));
    };
    const auto by_net = [&](std::vector<std::string> args) {
      args.insert(args.end(), {"--connect", service.address("resp")});
      return kvq_on(std::move(args));
    };
    struct stat status {};
    REQUIRE(::stat((service.dir() / "control.sock").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
    CHECK(by_net({"count"}).out == "1500\n");
    CHECK(by_dir({"count"}).out == "1500\n");
    CHECK(by_net({"get", "3"}).out == "Benchmark Message 2");
    CHECK(by_net({"tail", "-n", "1"}).out == "1500\tBenchmark Message 1499\n");
    CHECK(by_net({"scan"}).out == by_dir({"scan"}).out);
    CHECK(by_net({"scan", "--reverse", "--limit", "1200"}).out == by_dir({"scan", "--reverse", "--limit", "1200"}).out);
    CHECK(by_net({"audit"}).exit.code == 0);
    CHECK(by_net({"verify"}).out.starts_with("sound: 1500 records"));
    CHECK(by_net({"stats"}).out.find(store) != std::string::npos);
    CHECK(by_dir({"verify"}).exit.code == 0);
    CHECK(by_dir({"compact"}).exit.code == 0);
    CHECK(by_net({"compact"}).err.find("control.sock") != std::string::npos);
    CHECK(by_dir({"delete", "--to", "11"}).out == "erased 10\n");
    const Finished backup = by_dir({"backup", (temp / "copy").native()});
    CAPTURE(backup.err);
    CHECK(backup.exit.code == 0);
    CHECK(count_records(temp / "copy") == 1'490);
    service.stop();
    CHECK_FALSE(std::filesystem::exists(service.dir() / "control.sock"));
    CHECK(by_dir({"audit"}).exit.code == 0);
    CHECK(by_net({"count"}).exit.code == 3);
  }
}

TEST_CASE("kvq tail follows a running service") {
  Service service(with_resp("mmap"));
  feed(service, "one\ntwo\n");
  Process tail({program("kvq"), "tail", "-f", "-n", "1", "--dir", service.dir().native()});
  REQUIRE(eventually([&] { return tail.out_text() == "2\ttwo\n"; }));
  feed(service, "three\n");
  CHECK(eventually([&] { return tail.out_text() == "2\ttwo\n3\tthree\n"; }));
  tail.signal(SIGINT);
  CHECK(tail.finish().code == 130);
}

TEST_CASE("a store that drops its oldest arrivals takes no writes of clients") {
  Service service(with_resp("mmap", {"--retain-bytes", "1M"}));
  RespPeer peer = client_of(service);
  CHECK(peer.ask({"SET", "a", "1"}).starts_with("-ERR this store drops its oldest arrivals"));
  CHECK(peer.ask({"DEL", "a"}).starts_with("-ERR this store drops its oldest arrivals"));
  CHECK(peer.ask({"GET", "a"}) == "nil");
}

TEST_CASE("many clients share the syncs of their writes") {
  constexpr int kClients = 200;
  Service service(with_resp("mmap"));
  std::vector<RespPeer> peers;
  for (int i = 0; i < kClients; ++i) peers.push_back(client_of(service));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < kClients; ++i) peers[static_cast<std::size_t>(i)].send({"SET", fmt::format("k{}", i), "v"});
    for (RespPeer& peer : peers) CHECK(peer.answer() == "+OK");
  }
  CHECK(peers[0].ask({"DBSIZE"}) == std::to_string(kClients));
  check_balance(service.stop());
}

}  // namespace
}  // namespace kvingest::test
