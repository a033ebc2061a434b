// A disk that fills up in mid-feed, end to end: reading pauses and says why, what is stored can be read, and the feed
// goes on by itself when there is room. A start on a full disk works, as often as it is tried.
//
// World: a kvingest of this build with its store on a small tmpfs of the test's own.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/e2e.hpp"
#include "tests/support/tmpfs.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kDiskBytes = std::size_t{24} << 20;
constexpr std::size_t kRoomBytes = std::size_t{256} << 20;
constexpr std::uint64_t kBlockLines = 200;

/// Lines that a disk fills up with soon, numbered.
std::string block(std::uint64_t first) {
  std::string lines;
  for (std::uint64_t i = first; i < first + kBlockLines; ++i)
    lines += fmt::format("{} {}\n", i, std::string(1000, 'x'));
  return lines + "!kv sync\n";
}

Service::Options on_small_disk(const Subject& subject, const Tmpfs& disk) {
  Service::Options options = service_on(subject, {"--http", "127.0.0.1:0"});
  options.dir = disk / "db";
  if (subject.engine().name == "mmap") options.store += ",segment=1M";
  return options;
}

struct Fill {
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
};

/// Sends blocks until the answer is that reading has paused.
Fill fill(TcpClient& peer) {
  Fill done;
  for (int blocks = 0; blocks < 1000; ++blocks) {
    peer.send_all(block(done.sent));
    done.sent += kBlockLines;
    const auto line = peer.read_line();
    REQUIRE(line);
    const Answer answer = Answer::parse(*line);
    if (answer.word == "paused") {
      CHECK(answer.text("reason") == "no_space");
      CHECK(answer.number("since") > 0);
      return done;
    }
    REQUIRE(answer.word == "synced");
    done.acknowledged = answer.number("line");
  }
  FAIL("the disk never filled up");
  return done;
}

/// Others take what is left of the disk, to the last block.
void take_all_blocks(const Tmpfs& disk) {
  std::ofstream others(disk / "others", std::ios::binary);
  const std::string kib(1024, 'o');
  while (others.write(kib.data(), static_cast<std::streamsize>(kib.size())).flush()) continue;
}

/// The values are those of the lines from 0 on, in order.
void check_in_order(const std::vector<std::string>& values) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i].starts_with(fmt::format("{} ", i)) ? 0 : 1;
  CHECK(wrong == 0);
}

ENGINE_SCENARIO(persistent, "a disk full in mid-feed pauses reading, and the feed goes on when there is room") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs disk(kDiskBytes);
  Service service(on_small_disk(subject, disk));
  TcpClient peer = service.connect();
  const Fill full = fill(peer);
  CHECK(full.acknowledged > 0);
  {
    TcpClient other = service.connect();
    other.send_all("!kv status\n");
    const Answer status = Answer::parse(other.read_line().value());
    CHECK(status.text("paused") == "no_space");
    CHECK(status.number("on_disk") >= full.acknowledged);
    CHECK(service.http_answer("/status").find("\"paused\":\"no_space\"") != std::string::npos);
    CHECK(service.http_answer("/healthz").find("503") != std::string::npos);
    CHECK(service.http_answer("/metrics").find("kvingest_paused{reason=\"no_space\"} 1") != std::string::npos);
    if (subject.engine().shared_readers) CHECK(count_records(disk / "db") >= full.acknowledged);
  }
  disk.resize(kRoomBytes);
  const Answer answer = Answer::parse(peer.read_line().value());
  CHECK(answer.word == "synced");
  CHECK(answer.number("line") == full.sent);
  CHECK(answer.number("stored") == full.sent);
  peer.send_all(block(full.sent));
  CHECK(Answer::parse(peer.read_line().value()).number("stored") == full.sent + kBlockLines);
  CHECK(service.http_answer("/status").find("\"paused\":\"\"") != std::string::npos);
  peer.close();
  const Json ledger = service.stop();
  check_balance(ledger);
  CHECK(ledger["received"].number() == full.sent + kBlockLines);
  CHECK(ledger["on_disk"].number() == full.sent + kBlockLines);
  const auto values = scan_values(disk / "db");
  CHECK(values.size() == full.sent + kBlockLines);
  check_in_order(values);
}

ENGINE_SCENARIO(persistent,
                "a service that is stopped on a full disk says what it does not hold, and the store is sound") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs disk(kDiskBytes);
  TempDir temp;
  const std::string store = store_name(subject) + (subject.engine().name == "mmap" ? ",segment=1M" : "");
  Process process({program("kvingest"), "--store", store, "--dir", (disk / "db").native(), "--listen", "127.0.0.1:0",
                   "--port-file", (temp / "ports").native(), "--drain-timeout", "100ms"});
  TcpClient peer(wait_for_ports(process, temp / "ports").at("feed"));
  const Fill full = fill(peer);
  process.signal(SIGTERM);
  const Answer answer = Answer::parse(peer.read_line().value());
  CHECK(answer.word == "error");
  CHECK(answer.text("code") == "not_stored");
  peer.close();
  CHECK(process.finish() == Exit{1, 0});
  const std::string ledger = process.out_text();
  CAPTURE(ledger);
  // The last block came in one piece or in several, the first of which may have had room.
  const std::uint64_t stored = std::stoull(ledger.substr(ledger.find("  stored ") + 9));
  CHECK((stored >= full.acknowledged && stored < full.sent));
  CHECK(ledger.find(fmt::format("received {}  stored {}  rejected 0  blank 0  duplicate 0  pending {}  durable {}",
                                full.sent, stored, full.sent - stored, stored)) != std::string::npos);
  const std::string log = process.err_text();
  CAPTURE(log);
  CHECK(log.find("the pending messages are not stored, send them again") != std::string::npos);
  CHECK(log.find("unknown") == std::string::npos);
  CHECK(run({program("kvq"), "verify", "--dir", (disk / "db").native()}).exit.code == 0);
  CHECK(count_records(disk / "db") == stored);
}

ENGINE_SCENARIO(persistent,
                "a service that is killed on a full disk starts there again, and nothing acknowledged is lost") {
  if (const auto reason = mounting_missing()) KV_SKIP(*reason);
  Tmpfs disk(kDiskBytes);
  Fill full;
  {
    Service service(on_small_disk(subject, disk));
    TcpClient peer = service.connect();
    full = fill(peer);
    service.kill();
  }
  take_all_blocks(disk);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    Service service(on_small_disk(subject, disk));
    TcpClient peer = service.connect();
    peer.send_all("!kv status\n");
    CHECK(Answer::parse(peer.read_line().value()).number("stored") >= full.acknowledged);
    peer.send_some(block(full.sent), 2000ms);  // May find room, or not.
    CHECK(peer.read_line());
    service.kill();
  }
  std::filesystem::remove(disk / "others");
  disk.resize(kRoomBytes);
  Service service(on_small_disk(subject, disk));
  CHECK(service.sync("after\n").number("stored") == 1);
  check_balance(service.stop());
  const auto values = scan_values(disk / "db");
  REQUIRE(values.size() > full.acknowledged);
  CHECK(values.back() == "after");
  check_in_order({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(full.acknowledged)});
}

}  // namespace
}  // namespace kvingest::test
