// Memory, end to end: whatever a peer does, kvingest takes no more than --queue-bytes, --line-bytes and 256 KiB for
// each busy connection.
//
// World: a kvingest of this build with small budgets; peers that send one thing over and over and read nothing. What is
// looked at is the anonymous memory of the process beyond what it took before. A sanitizer takes memory of its own.
#ifndef KVINGEST_SANITIZED
#include <fmt/format.h>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::uint64_t kMib = 1024;  // In KiB, as /proc has it.
constexpr std::uint64_t kQueueKib = 4 * kMib;
constexpr std::uint64_t kLinesKib = 4 * kMib;
constexpr std::uint64_t kConnectionKib = 256;

std::string times(std::size_t count, const std::string& text) {
  std::string all;
  all.reserve(count * text.size());
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// A kvingest with the budgets above, and the most memory it has been seen to take beyond what it began with.
class Bounded {
 public:
  explicit Bounded(const std::string& store, std::vector<std::string> args)
      : service_(options(store, std::move(args))) {
    TcpClient first = service_.connect();  // What is made once is there now.
    first.send_all(numbered_lines(1'000));
    first.finish_sending();
    static_cast<void>(first.read_to_end());
    before_kib_ = status_kib(service_.pid(), "RssAnon");
  }

  [[nodiscard]] const Service& service() const { return service_; }
  void look() { worst_kib_ = std::max(worst_kib_, status_kib(service_.pid(), "RssAnon")); }
  /// Sends `bytes` over and over until `total` bytes are taken, or the service takes no more.
  void pour(TcpClient& peer, std::string_view bytes, std::size_t total) {
    for (std::size_t sent = 0; sent < total; sent += bytes.size()) {
      const bool taken = peer.send_some(bytes, 200ms) == bytes.size();
      look();
      if (!taken) return;
    }
  }
  void check(std::uint64_t connections) {
    look();
    INFO("RssAnon before " << before_kib_ << " KiB, at most " << worst_kib_ << " KiB");
    CHECK(worst_kib_ < before_kib_ + kQueueKib + kLinesKib + connections * kConnectionKib);
    service_.stop();
  }

 private:
  static Service::Options options(const std::string& store, std::vector<std::string> args) {
    args.insert(args.end(), {"--queue-bytes", "4M", "--line-bytes", "4M", "--max-line", "1M", "--rejects-max", "1M",
                             "--drain-timeout", "100ms"});
    return {.store = store, .args = std::move(args)};
  }

  Service service_;
  std::uint64_t before_kib_ = 0;
  std::uint64_t worst_kib_ = 0;
};

struct Flood {
  const char* what;
  std::vector<std::string> args;
  std::string bytes;
  std::size_t mib;
};

/// Each of the ways in which a peer could make kvingest keep more than it should.
std::vector<Flood> floods() {
  const std::string mib(std::size_t{1} << 20, 'e');
  return {
      {"a line without an end", {}, mib, 64},
      {"lines of nearly the limit", {}, mib.substr(0, 900'000) + "\n", 64},
      {"short lines", {}, times(100'000, "ab\n"), 16},
      {"blank lines", {}, times(100'000, "\n"), 8},
      {"lines that end in CR LF", {}, times(100'000, "ab\r\n"), 16},
      {"NUL and bytes that are no UTF-8", {}, times(100'000, "\0\xff\xfe\n"s), 8},
      {"short messages with long keys", {"--key", std::string(480, 'k') + "{seq}"}, times(100'000, "a\n"), 4},
      {"short messages that are rejected", {"--format", "kv"}, times(100'000, "x\n"), 8},
      {"keys of 512 bytes", {"--format", "kv"}, times(1'000, std::string(512, 'k') + "=v\n"), 32},
      {"rejects of 60 KiB", {"--format", "kv"}, std::string(60'000, 'r') + "\n", 64},
      {"large values", {"--format", "kv"}, "k=" + std::string(900'000, 'v') + "\n", 64},
      {"csv with nothing but quotes", {"--format", "csv", "--columns", "a,b"}, times(100'000, "\"\"\"\"\n"), 8},
      {"csv with nothing but separators",
       {"--format", "csv", "--columns", "a,b"},
       std::string(200'000, ',') + "\n",
       16},
      {"json that is nested without an end",
       {"--format", "json", "--key", "{k}"},
       std::string(200'000, '[') + "\n",
       16},
      {"syncs", {}, times(50'000, "!kv sync a-tag-to-be-given-back\n"), 16},
      {"syncs between lines", {}, times(50'000, "line\n!kv sync\n"), 8},
      {"questions for the status", {}, times(50'000, "!kv status\n"), 8},
      {"control lines that are none", {}, times(50'000, "!kv what is this\n"), 8},
      {"lengths that are not kept", {"--framing", "varint"}, "\xff\xff\xff\xff\x7f" + mib, 32},
      {"messages of no bytes", {"--framing", "varint"}, std::string(1 << 20, '\0'), 8},
  };
}

TEST_CASE("memory stays within its budgets under each edge case, on a store that forgets") {
  for (const Flood& flood : floods()) {
    CAPTURE(flood.what);
    Bounded bounded("null", flood.args);
    TcpClient peer = bounded.service().connect();
    bounded.pour(peer, flood.bytes, flood.mib << 20);
    bounded.check(1);
  }
}

TEST_CASE("memory stays within its budgets when syncs are asked for faster than the disk gives them") {
  Bounded bounded("file", {});
  std::vector<TcpClient> peers;
  for (int i = 0; i < 4; ++i) peers.push_back(bounded.service().connect());
  const std::string syncs = times(50'000, "!kv sync a-tag-to-be-given-back\n");
  for (TcpClient& peer : peers) bounded.pour(peer, syncs, std::size_t{16} << 20);
  bounded.check(peers.size());
}

TEST_CASE("memory stays within its budgets under every edge case at once") {
  constexpr std::uint64_t kConnections = 24;
  Bounded bounded("null", {"--format", "kv"});
  const std::string endless(std::size_t{1} << 20, 'e');
  std::vector<TcpClient> peers;
  for (std::uint64_t i = 0; i < kConnections; ++i) peers.push_back(bounded.service().connect());
  for (TcpClient& peer : peers) {  // Unfinished lines of nearly the limit: six times what the budget holds.
    peer.send_all(std::string_view(endless).substr(1000));
    bounded.look();
  }
  bounded.pour(peers[0], endless, std::size_t{64} << 20);
  bounded.pour(peers[1], "\n" + std::string(60'000, 'r') + "\n", std::size_t{64} << 20);
  bounded.pour(peers[2], "\n" + times(10'000, "!kv status\n"), std::size_t{16} << 20);
  bounded.pour(peers[3], times(100'000, "\n"), std::size_t{4} << 20);
  bounded.pour(peers[4], "\nk=" + std::string(900'000, 'v') + "\n", std::size_t{64} << 20);
  bounded.pour(peers[5], "\n" + times(10'000, "!kv nothing\n"), std::size_t{4} << 20);
  bounded.pour(peers[6], "\n" + times(10'000, "x\n"), std::size_t{4} << 20);
  CHECK(bounded.service().sync("still=here\n").number("stored") == 1);
  for (TcpClient& peer : peers) peer.reset();
  bounded.check(kConnections);
}

}  // namespace
}  // namespace kvingest::test
#endif
