// The helpers of the other tests: a helper that cannot see a failure hides one.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/posix_fault.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/strace.hpp"
#include "tests/support/tcp_client.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a process reports its exit code, its output and the signal that ended it") {
  const Finished done =
      run({"sh", "-c", "echo out; echo err >&2; echo $WORD; pwd; exit 7"}, {.env = {{"WORD", "spoken"}}, .cwd = "/"});
  CHECK(done.exit == Exit{7, 0});
  CHECK(done.out == "out\nspoken\n/\n");
  CHECK(done.err == "err\n");
  Process sleeper({"sleep", "100"});
  CHECK(sleeper.running());
  sleeper.signal(SIGTERM);
  CHECK(sleeper.finish() == Exit{-1, SIGTERM});
  CHECK(run({"no-such-program-anywhere"}).exit.code == 127);
}

TEST_CASE("a wait that runs out is told from an end") {
  Process sleeper({"sleep", "100"});
  CHECK_FALSE(sleeper.wait(5ms).has_value());
  CHECK_THROWS(sleeper.finish(5ms));
  sleeper.kill();
  CHECK(sleeper.finish() == Exit{-1, SIGKILL});
}

TEST_CASE("a process can be talked to through pipes") {
  Process echo({"cat"}, {.pipe_input = true, .pipe_output = true});
  echo.input().send_all("one\ntwo");
  CHECK(echo.output().read_line() == "one");
  echo.input().close();
  CHECK(echo.output().read_to_end() == "two");
  CHECK(echo.finish() == Exit{0, 0});
}

TEST_CASE("a client sees lines, the end, and a reset") {
  TcpListener listener;
  TcpClient near(listener.address());
  TcpClient far = listener.accept();
  near.send_all("line\nrest");
  near.finish_sending();
  CHECK(far.read_line() == "line");
  CHECK(far.read_line() == std::nullopt);
  CHECK(far.read_to_end() == "rest");
  CHECK_FALSE(near.read_some(5ms).has_value());
  far.reset();
  CHECK(near.read_some(1000ms) == "");
  CHECK_THROWS(TcpClient("127.0.0.1:1"));
}

TEST_CASE("answers are taken apart, quoted values included") {
  const Answer answer = Answer::parse(R"(!kv error code=bad line=12 message="say \"hello\" again" closing)");
  CHECK(answer.word == "error");
  CHECK(answer.text("code") == "bad");
  CHECK(answer.number("line") == 12);
  CHECK(answer.text("message") == "say \"hello\" again");
  CHECK(answer.text("closing") == "closing");
  CHECK_THROWS(answer.number("code"));
  CHECK_THROWS(Answer::parse("synced"));
}

TEST_CASE("JSON numbers, texts, lists and nested objects are read") {
  const Json json = Json::parse(R"({"a":18446744073709551615,"b":{"c":["x",true,1.5]}})");
  CHECK(json["a"].number() == 18446744073709551615u);
  CHECK(json["b"]["c"][0].text() == "x");
  CHECK(json["b"]["c"].size() == 3);
  CHECK_THROWS(json["b"]["c"][2].number());
  CHECK_THROWS(json["missing"]);
  CHECK_THROWS(Json::parse("{"));
}

TEST_CASE("a failed, a shortened and an interrupted system call look like real ones") {
  TempDir dir;
  PosixFault fault;
  auto file = File::open(fault.table(), dir / "f", O_RDWR | O_CREAT);
  REQUIRE(file);
  fault.shorten(3);
  REQUIRE(file->write_at("0123456789", 0));
  iovec parts[] = {{const_cast<char*>("abcd"), 4}, {const_cast<char*>("efgh"), 4}};
  REQUIRE(file->write_at(std::span<iovec>(parts), 10));
  fault.heal();
  CHECK(file_text(dir / "f") == "0123456789abcdefgh");
  CHECK(fault.count(PosixFault::Call::pwrite) == 8);  // Four short ones, each interrupted before.

  fault.fail_next(PosixFault::Call::fdatasync, EIO);
  CHECK(file->sync_data().error().sys_errno == EIO);
  CHECK(file->sync_data());
  fault.fail_nth(2, ENOSPC, true);
  CHECK(file->write_at("x", 0));
  CHECK_FALSE(fault.has_failed());
  CHECK(file->write_at("y", 0).error().code == Code::no_space);
  CHECK(file->write_at("y", 0).error().code == Code::no_space);
  CHECK(fault.has_failed());
  CHECK(file_text(dir / "f").front() == 'x');
}

TEST_CASE("a power failure takes back what was not synced, and nothing else") {
  TempDir dir;
  const std::string old_text(4096, 'o');
  write_text(dir / "old", old_text);
  PosixFault fault;
  DiskModel& disk = fault.watch_disk();
  {
    auto old_file = File::open(fault.table(), dir / "old", O_RDWR);
    REQUIRE(old_file);
    REQUIRE(old_file->write_at("synced", 0));
    REQUIRE(old_file->sync_data());
    CHECK(disk.unsynced() == 0);
    REQUIRE(old_file->write_at("lost", 1000));
    REQUIRE(old_file->write_at("beyond", 5000));
    REQUIRE(old_file->truncate(100));
    auto made = File::open(fault.table(), dir / "made", O_RDWR | O_CREAT);
    REQUIRE(made);
    REQUIRE(made->write_at("data", 0));
    REQUIRE(made->sync_data());  // Of the file, not of its name.
    REQUIRE(fault.table().rename((dir / "old").c_str(), (dir / "moved").c_str()) == 0);
    CHECK(disk.unsynced() == 5);
  }
  disk.lose([](std::string_view) { return false; });
  CHECK(file_text(dir / "moved") == "synced" + old_text.substr(6));

  write_text(dir / "old", "replaced");
  std::size_t names_lost = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    REQUIRE(replace_file(fault.table(), dir / "old", "first"));
    CHECK(disk.unsynced() == 0);
    auto file = File::open(fault.table(), dir / "next", O_RDWR | O_CREAT | O_TRUNC);
    REQUIRE(file);
    REQUIRE(file->write_at("second", 0));
    REQUIRE(file->sync_all());
    REQUIRE(fault.table().rename((dir / "next").c_str(), (dir / "old").c_str()) == 0);
    file->reset();
    disk.lose(seed);
    const std::string text = file_text(dir / "old");
    CHECK((text == "first" || text == "second"));
    if (text == "first") ++names_lost;
  }
  CHECK(names_lost > 0);
  CHECK(names_lost < 50);
}

TEST_CASE("a power failure may keep some sectors of a write and lose others") {
  TempDir dir;
  PosixFault fault;
  DiskModel& disk = fault.watch_disk();
  std::size_t torn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto file = File::open(fault.table(), dir / "f", O_RDWR | O_CREAT);
    REQUIRE(file);
    REQUIRE(file->write_at(std::string(8 * 512, '.'), 0));
    REQUIRE(file->sync_all());
    REQUIRE(sync_directory(fault.table(), dir.path()));
    REQUIRE(file->write_at(std::string(8 * 512, 'x'), 0));
    file->reset();
    disk.lose(seed);
    const std::string text = file_text(dir / "f");
    REQUIRE(text.size() == 8 * 512);
    const auto kept = std::count(text.begin(), text.end(), 'x');
    CHECK(kept % 512 == 0);
    if (kept > 0 && kept < 8 * 512) ++torn;
  }
  CHECK(torn > 10);
}

TEST_CASE("a small file system fills up") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs small(256 << 10);
  CHECK_THROWS(write_text(small / "too-much", std::string(1 << 20, 'x')));
}

TEST_CASE("strace sees calls and fails them") {
  if (const auto reason = strace_missing()) KV_SKIP(*reason);
  Process echo({"cat"}, {.pipe_input = true, .pipe_output = true});
  Strace tracer(echo.pid(), {"-e", "trace=write"});
  echo.input().send_all("seen\n");
  CHECK(echo.output().read_line() == "seen");
  const auto calls = tracer.detach();
  REQUIRE_FALSE(calls.empty());
  CHECK(calls.front().find("write(1, \"seen\\n\", 5") != std::string::npos);

  TempDir dir;
  auto words = strace_command((dir / "calls").native(), {"-e", "trace=write", "-e", "inject=write:error=ENOSPC"});
  words.insert(words.end(), {"sh", "-c", "echo x"});
  CHECK(run(words).exit.code != 0);
}

}  // namespace
}  // namespace kvingest::test
