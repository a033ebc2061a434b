// Who may connect: tokens for producers and Redis clients, and that they are kept.
//
// World: a kvingest of this build with a token file of its own.
#include <fmt/format.h>

#include "tests/e2e/e2e.hpp"
#include "tests/support/resp_peer.hpp"

namespace kvingest::test {
namespace {

constexpr std::string_view kWriter = "writer-token-1234567890";
constexpr std::string_view kReader = "reader-token-1234567890";

struct Guarded {
  explicit Guarded(std::vector<std::string> args = {}) {
    write_text(file, fmt::format("# who may connect\nwriter rw {}\n\nreader ro {}\n", kWriter, kReader));
    args.insert(args.end(), {"--resp", "127.0.0.1:0", "--token-file", file.native()});
    service.emplace(Service::Options{.store = "lmdb", .args = std::move(args)});
  }

  [[nodiscard]] RespPeer client() const { return RespPeer(service->address("resp")); }
  [[nodiscard]] std::string feed(const std::string& bytes) const {
    return send_and_finish(service->address("feed"), bytes);
  }

  TempDir temp;
  std::filesystem::path file = temp / "tokens";
  std::optional<Service> service;
};

TEST_CASE("a Redis client without a token may only say who it is, and not much at once") {
  const Guarded world;
  RespPeer peer = world.client();
  CHECK(peer.ask({"GET", "a"}) == "-NOAUTH Authentication required.");
  CHECK(peer.ask({"SET", "a", "1"}) == "-NOAUTH Authentication required.");
  CHECK(peer.ask({"COMMAND"}) == "-NOAUTH Authentication required.");
  CHECK(peer.ask({"NOSUCH"}).starts_with("-ERR unknown command"));
  CHECK(peer.ask({"HELLO", "3"}).starts_with("-NOAUTH HELLO must be called"));
  CHECK(peer.ask({"AUTH", "wrong"}) == "-WRONGPASS invalid username-password pair or user is disabled.");
  CHECK(peer.ask({"AUTH", "reader", std::string(kWriter)}).starts_with("-WRONGPASS"));
  RespPeer bomb = world.client();
  bomb.stream().send_all("*1\r\n$16385\r\n");
  CHECK(bomb.answer() == "-ERR Protocol error: unauthenticated bulk length");
  CHECK_FALSE(bomb.stream().read_line());
}

TEST_CASE("a token that may read does not write, and one that may write does") {
  const Guarded world;
  RespPeer peer = world.client();
  CHECK(peer.ask({"AUTH", std::string(kReader)}) == "+OK");
  CHECK(peer.ask({"GET", "a"}) == "nil");
  CHECK(peer.ask({"SET", "a", "1"}) == "-NOPERM this user has no permissions to run the 'set' command");
  CHECK(peer.ask({"MULTI"}) == "+OK");
  CHECK(peer.ask({"SET", "a", "1"}).starts_with("-NOPERM"));
  CHECK(peer.ask({"EXEC"}).starts_with("-EXECABORT"));
  CHECK(peer.ask({"AUTH", "writer", std::string(kWriter)}) == "+OK");
  CHECK(peer.ask({"SET", "a", std::string(20'000, 'v')}) == "+OK");
  CHECK(peer.ask({"RESET"}) == "+RESET");
  CHECK(peer.ask({"GET", "a"}).starts_with("-NOAUTH"));
  CHECK(peer.ask({"HELLO", "2", "AUTH", "default", std::string(kReader)}).starts_with("[\"server\""));
  CHECK(peer.ask({"STRLEN", "a"}) == "20000");
}

TEST_CASE("a producer begins with a hello that has a token, or nothing of it is taken") {
  const Guarded world;
  CHECK(world.feed("line\n").starts_with("!kv error code=unauthorized"));
  CHECK(world.feed("line without end").starts_with("!kv error code=unauthorized"));
  CHECK(world.feed("!kv sync\n").starts_with("!kv error code=unauthorized"));
  CHECK(world.feed("!kv hello token=wrong\nline\n").starts_with("!kv error code=unauthorized"));
  CHECK(world.feed(fmt::format("!kv hello token={}\nline\n", kReader)).find("may read and not feed") !=
        std::string::npos);
  CHECK(world.feed(std::string(100'000, 'x')).starts_with("!kv error code=unauthorized"));
  const std::string answers = world.feed(fmt::format("!kv hello source=s token={}\none\ntwo\n!kv sync\n", kWriter));
  CHECK(answers.starts_with("!kv welcome source=s next=1"));
  CHECK(answers.find("!kv synced line=2 stored=2") != std::string::npos);
  CHECK(world.client().ask({"PING"}).starts_with("-NOAUTH"));
}

TEST_CASE("a hello that comes in pieces is put together") {
  const Guarded world;
  TcpClient peer = world.service->connect();
  peer.no_delay();
  for (const char byte : fmt::format("!kv hello token={}\n", kWriter)) peer.send_all(std::string(1, byte));
  CHECK(peer.read_line().value_or("").starts_with("!kv welcome"));
}

TEST_CASE("tokens are exchanged by a signal, who is in stays in, and a bad file changes nothing") {
  Guarded world;
  RespPeer before = world.client();
  CHECK(before.ask({"AUTH", std::string(kWriter)}) == "+OK");
  constexpr std::string_view kNew = "another-token-1234567890";
  write_text(world.file, "writer rw short\n");
  world.service->process().signal(SIGHUP);
  REQUIRE(eventually([&] { return world.service->err_text().find("at least 16") != std::string::npos; }));
  CHECK(world.client().ask({"AUTH", std::string(kWriter)}) == "+OK");
  write_text(world.file, fmt::format("writer rw {}\n", kNew));
  world.service->process().signal(SIGHUP);
  REQUIRE(eventually([&] { return world.client().ask({"AUTH", std::string(kNew)}) == "+OK"; }));
  CHECK(world.client().ask({"AUTH", std::string(kWriter)}).starts_with("-WRONGPASS"));
  CHECK(before.ask({"SET", "a", "1"}) == "+OK");
  CHECK(world.service->err_text().find("token-1234567890") == std::string::npos);
}

TEST_CASE("the status page asks for a token, and health does not") {
  const Guarded world({"--http", "127.0.0.1:0"});
  const auto page = [&](const std::string& path, const std::string& header) {
    TcpClient peer = world.service->connect("http");
    peer.send_all(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n", path, header));
    return peer.read_to_end();
  };
  CHECK(page("/status", "").starts_with("HTTP/1.1 401"));
  CHECK(page("/metrics", "Authorization: Bearer wrong\r\n").starts_with("HTTP/1.1 401"));
  CHECK(page("/status", fmt::format("Authorization: Bearer {}\r\n", kReader)).starts_with("HTTP/1.1 200"));
  CHECK(page("/healthz", "").starts_with("HTTP/1.1 200"));
  for (const char* const records : {"/keys", "/value?key=a", "/series"})
    CHECK(page(records, "").starts_with("HTTP/1.1 401"));
  CHECK_THAT(page("/", ""), contains_text("id=\"token-form\""));  // The page itself holds nothing, and asks for it.
}

TEST_CASE("kvq asks by its directory without a token, and over the network with one") {
  const Guarded world;
  CHECK(world.service->try_sync("x\n")->text("code") == "unauthorized");
  const auto kvq = [&](std::vector<std::string> args, std::map<std::string, std::string> env = {}) {
    args.insert(args.begin(), {program("kvq"), "count"});
    return run(args, {.env = std::move(env)});
  };
  CHECK(kvq({"--dir", world.service->dir().native()}).out == "0\n");
  const std::string address = world.service->address("resp");
  CHECK(kvq({"--connect", address}).err.find("NOAUTH") != std::string::npos);
  CHECK(kvq({"--connect", address}, {{"KVQ_TOKEN", std::string(kReader)}}).out == "0\n");
  CHECK(kvq({"--connect", address}, {{"KVQ_TOKEN", "wrong"}}).exit.code == 3);
}

TEST_CASE("a token file that is wrong in a line is a usage error that does not show the line") {
  const TempDir temp;
  for (const std::string text : {"writer rx secret-token-1234567890\n", "writer rw short\n", "# none\n"}) {
    write_text(temp / "tokens", text);
    const Finished done = run_kvingest({"--token-file", (temp / "tokens").native(), "--dir", (temp / "db").native()});
    check_refused(done, 2, "tokens");
    CHECK(done.err.find("secret-token") == std::string::npos);
  }
  check_refused(run_kvingest({"--token-file", (temp / "none").native()}), 2, "none");
}

}  // namespace
}  // namespace kvingest::test
