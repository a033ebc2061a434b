// Bad lines among good ones, end to end: whatever is wrong with a line, its neighbours live, and nothing of it is lost.
//
// World: a kvingest of this build that reads json; random streams over several connections at once, cut at random
// places.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::string_literals;

constexpr std::size_t kLineBytesMax = 100;

enum class Fate { stored, rejected, blank };

struct Line {
  std::string text;
  Fate fate = Fate::stored;
};

/// A line of connection `peer`, most often good; bad in every way that a line can be.
Line random_line(std::mt19937_64& random, std::size_t peer, std::size_t number) {
  const std::string good = fmt::format(R"({{"k":"{}/{}","v":{}}})", peer, number, random() % 1'000'000);
  switch (random() % 24) {
    case 0:
      return {"", Fate::blank};
    case 1:
      return {"\r", Fate::blank};
    case 2:
      return {good.substr(0, good.size() - 1), Fate::rejected};  // Not closed.
    case 3:
      return {good + "}", Fate::rejected};
    case 4:
      return {R"({"v":1})", Fate::rejected};  // No key.
    case 5:
      return {R"({"k":null,"v":1})", Fate::rejected};
    case 6:
      return {R"({"k":"","v":1})", Fate::rejected};
    case 7:
      return {good + std::string(kLineBytesMax, ' '), Fate::rejected};
    case 8:
      return {"\xff\xfe\0 bytes"s, Fate::rejected};
    case 9:
      return {R"({"k":"\x","v":1})", Fate::rejected};
    case 10:
      return {"!kv what is this", Fate::rejected};
    case 11:
      return {"STOP", Fate::rejected};
    case 12:
      return {good + "\r", Fate::stored};
    default:
      return {good, Fate::stored};
  }
}

std::string without_end(const std::string& text) {
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

TEST_CASE("good lines around bad ones of every kind all survive, cut anywhere, over several connections") {
  constexpr std::size_t kPeers = 4;
  constexpr std::size_t kLines = 3'000;
  CAPTURE(test_seed());
  std::mt19937_64 random(test_seed());
  Service service({.store = "lmdb",
                   .args = {"--format", "json", "--key", "{k}", "--max-line", std::to_string(kLineBytesMax),
                            "--durability", "kernel"}});
  std::vector<std::vector<Line>> sent(kPeers);
  std::vector<std::string> left(kPeers);
  std::vector<TcpClient> peers;
  for (std::size_t peer = 0; peer < kPeers; ++peer) {
    for (std::size_t number = 0; number < kLines; ++number) {
      sent[peer].push_back(random_line(random, peer, number));
      left[peer] += sent[peer].back().text + "\n";
    }
    left[peer] += "!kv bye\n";
    peers.push_back(service.connect());
    peers.back().no_delay();
  }
  for (bool more = true; more;) {
    more = false;
    for (std::size_t peer = 0; peer < kPeers; ++peer) {
      const std::size_t bytes = std::min<std::size_t>(left[peer].size(), 1 + random() % 300);
      peers[peer].send_all(left[peer].substr(0, bytes));
      left[peer].erase(0, bytes);
      more = more || !left[peer].empty();
    }
  }
  std::map<std::string, std::string> wanted;
  std::vector<std::string> bad;
  for (std::size_t peer = 0; peer < kPeers; ++peer) {
    std::map<Fate, std::uint64_t> fates;
    for (const Line& line : sent[peer]) {
      ++fates[line.fate];
      const std::string text = without_end(line.text);
      if (line.fate == Fate::rejected) bad.push_back(text);
      if (line.fate == Fate::stored) wanted[text.substr(6, text.find('"', 6) - 6)] = text;
    }
    std::string last;
    while (const auto answer = peers[peer].read_line()) last = *answer;
    const Answer synced = Answer::parse(last);
    CHECK(synced.number("line") == kLines);
    CHECK(synced.number("stored") == fates[Fate::stored]);
    CHECK(synced.number("rejected") == fates[Fate::rejected]);
    CHECK(synced.number("blank") == fates[Fate::blank]);
  }
  check_balance(service.stop());
  const auto rows = scan_rows(service.dir());
  const bool same = std::map<std::string, std::string>(rows.begin(), rows.end()) == wanted;
  CHECK(same);
  CHECK(rows.size() == wanted.size());

  const Finished exported = run({program("kvq"), "rejects", "export", "--dir", service.dir().native()});
  std::vector<std::string> kept;
  for (std::size_t at = 0; at < exported.out.size();) {
    const std::size_t end = exported.out.find('\n', at);
    kept.push_back(exported.out.substr(at, end - at));
    at = end + 1;
  }
  std::sort(kept.begin(), kept.end());
  std::sort(bad.begin(), bad.end());
  const bool all_kept = kept == bad;
  CHECK(all_kept);
  CHECK(run({program("kvq"), "audit", "--dir", service.dir().native()}).exit.code == 0);
}

TEST_CASE("a reject says who sent it, which line it was, where it stood and why") {
  Service service({.store = "lmdb", .args = {"--format", "kv"}});
  TcpClient peer = service.connect();
  peer.send_all("!kv hello source=sensors/1\na=1\nno separator\n!kv sync\n");
  CHECK(peer.read_line()->starts_with("!kv welcome"));
  CHECK(Answer::parse(peer.read_line().value()).text("rejected_lines") == "2");
  service.stop();
  const Finished list = run({program("kvq"), "rejects", "list", "--json", "--dir", service.dir().native()});
  const Json reject = Json::parse(list.out)["rejects"][0];
  CHECK(reject["source"].text() == "sensors/1");
  CHECK(reject["line"].number() == 2);
  CHECK(reject["offset"].number() == 31);
  CHECK(reject["reason"].text() == "bad_kv");
  CHECK(reject["bytes"].text() == "no separator");
  CHECK(reject["peer"].text().starts_with("127.0.0.1:"));
}

}  // namespace
}  // namespace kvingest::test
