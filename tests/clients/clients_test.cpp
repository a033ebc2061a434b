// Clients that others have made for Redis, unmodified.
//
// World: a kvingest of this build with --resp on loopback; redis-tools, hiredis, python3-redis and node-redis as Debian
// has them.
#include <fmt/format.h>

#ifdef KVINGEST_HAS_HIREDIS
#include <hiredis/hiredis.h>
#endif

#include <algorithm>
#include <memory>

#include "tests/support/catch.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"
#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

/// Empty when the command is there; else what to install.
std::optional<std::string> missing(std::vector<std::string> command, std::string_view package) {
  if (run(std::move(command)).exit == Exit{0, 0}) return std::nullopt;
  return fmt::format("{} is not installed", package);
}

struct World {
  Service service{{.store = "lmdb", .args = {"--resp", "127.0.0.1:0", "--durability", "kernel"}}};
  std::string port = service.address("resp").substr(service.address("resp").rfind(':') + 1);

  Finished cli(std::vector<std::string> words, std::string input = {}) const {
    words.insert(words.begin(), {"redis-cli", "-p", port});
    Process process(words, {.pipe_input = true});
    process.input().send_all(input);
    process.input().close();
    const Exit exit = process.finish();
    return {exit, process.out_text(), process.err_text()};
  }
};

TEST_CASE("redis-cli reads, writes, scans and pipes") {
  if (const auto reason = missing({"redis-cli", "--version"}, "redis-tools")) KV_SKIP(*reason);
  const World world;
  CHECK(world.cli({"set", "a", "1"}).out == "OK\n");
  CHECK(world.cli({"-3", "get", "a"}).out == "1\n");
  CHECK(world.cli({"kv.range", "a", "b"}).out == "a\n1\n");
  CHECK(world.cli({"nosuch"}).out.find("ERR unknown command 'nosuch'") != std::string::npos);
  std::string pipe;
  for (int i = 0; i < 20'000; ++i) pipe += fmt::format("SET k{} v{}\r\n", i, i);
  const Finished piped = world.cli({"--pipe"}, pipe);
  CAPTURE(piped.out, piped.err);
  CHECK(piped.out.find("errors: 0, replies: 20000") != std::string::npos);
  const Finished keys = world.cli({"--scan", "--pattern", "k1999*"});
  CHECK(std::ranges::count(keys.out, '\n') == 11);
  CHECK(world.cli({"--bigkeys"}).out.find("20001 strings") != std::string::npos);
  CHECK(world.cli({"info", "server"}).out.find("redis_version") != std::string::npos);
}

TEST_CASE("redis-cli completes and hints: it reads what the commands are") {
  if (const auto reason = missing({"redis-cli", "--version"}, "redis-tools")) KV_SKIP(*reason);
  const World world;
  const Finished help = world.cli({}, "help kv.tail\nhelp set\n");
  CAPTURE(help.out, help.err);
  CHECK(help.out.find("after [COUNT count] [BLOCK milliseconds]") != std::string::npos);
  CHECK(help.out.find("key value [NX|XX] [GET]") != std::string::npos);
}

TEST_CASE("redis-benchmark runs its usual tests without an error") {
  if (const auto reason = missing({"redis-benchmark", "--version"}, "redis-tools")) KV_SKIP(*reason);
  const World world;
  for (const std::string pipeline : {"1", "16"}) {
    const Finished done = run({"redis-benchmark", "-p", world.port, "-t", "ping,set,get,mset", "-n", "2000", "-c", "20",
                               "-P", pipeline, "-r", "1000", "--csv"});
    CAPTURE(done.out, done.err);
    CHECK(done.exit == Exit{0, 0});
    CHECK(done.out.find("\"MSET (10 keys)\"") != std::string::npos);
    CHECK((done.out + done.err).find("rror") == std::string::npos);
    CHECK((done.out + done.err).find("WARNING") == std::string::npos);
  }
}

#ifdef KVINGEST_HAS_HIREDIS
TEST_CASE("hiredis: requests in a row are answered in their order") {
  const World world;
  redisContext* const context = redisConnect("127.0.0.1", std::stoi(world.port));
  REQUIRE(context != nullptr);
  const std::unique_ptr<redisContext, decltype(&redisFree)> owner(context, redisFree);
  REQUIRE(context->err == 0);
  constexpr int kRequests = 500;
  for (int i = 0; i < kRequests; ++i) {
    REQUIRE(redisAppendCommand(context, "SET h:%d %b", i, "\0v", std::size_t{2}) == REDIS_OK);
    REQUIRE(redisAppendCommand(context, "GET h:%d", i) == REDIS_OK);
  }
  for (int i = 0; i < 2 * kRequests; ++i) {
    void* answer = nullptr;
    REQUIRE(redisGetReply(context, &answer) == REDIS_OK);
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(answer),
                                                                        freeReplyObject);
    const std::string text(reply->str, reply->len);
    CHECK(text == (i % 2 == 0 ? "OK" : std::string("\0v", 2)));
  }
}
#else
TEST_CASE("hiredis: requests in a row are answered in their order") {
  KV_SKIP("libhiredis-dev was not installed when this was built");
}
#endif

TEST_CASE("redis-py: single commands, transactions, pipelines and iterations") {
  if (const auto reason = missing({"/usr/bin/python3", "-c", "import redis"}, "python3-redis")) KV_SKIP(*reason);
  const World world;
  const Finished done =
      run({"/usr/bin/python3", (project_folder() / "tests/clients/redis_py.py").native(), world.port});
  CAPTURE(done.out, done.err);
  CHECK(done.exit == Exit{0, 0});
}

TEST_CASE("node-redis: single commands, transactions, pipelines and iterations") {
  const Process::Options modules{.env = {{"NODE_PATH", "/usr/share/nodejs"}}};
  const Finished found = run({"node", "-e", "require('redis')"}, modules);
  if (found.exit != Exit{0, 0}) KV_SKIP("node-redis is not installed");
  const World world;
  const Finished done = run({"node", (project_folder() / "tests/clients/node_redis.js").native(), world.port}, modules);
  CAPTURE(done.out, done.err);
  CHECK(done.exit == Exit{0, 0});
}

}  // namespace
}  // namespace kvingest::test
