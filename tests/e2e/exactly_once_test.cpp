// Exactly once, as a campaign: one feed, two senders that fight for its source, and either side killed again and again.
//
// World: a kvingest on one address, on a store of the test's own; two kvfeeds that send the same file under one name.
// A sender that is taken over from ends, and is started again. The file has blank lines and lines that are too long.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <random>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLinesAKill = 100'000;
constexpr std::uint64_t kLinesASecond = 120'000;  // Slow enough for the kills to fall into the middle.
constexpr std::size_t kLineBytesMax = 40;

enum class Kind { good, blank, bad };

Kind kind_of(std::uint64_t line) {
  return line % 1'000 == 999 ? Kind::blank : line % 5'000 == 1'234 ? Kind::bad : Kind::good;
}

std::string text_of_line(std::uint64_t line) {
  if (kind_of(line) == Kind::blank) return {};
  return fmt::format("row {}{}", line, kind_of(line) == Kind::bad ? std::string(kLineBytesMax, '!') : "");
}

class World {
 public:
  World(const Subject& subject, std::uint64_t lines) : subject_(subject) {
    std::ofstream file(files_ / "feed.txt");
    for (std::uint64_t line = 0; line < lines; ++line) file << text_of_line(line) << '\n';
    start_service();
  }

  /// A sender that has ended, by itself or killed, is started again. True: one has sent everything.
  bool tend_senders() {
    for (auto& sender : senders_) {
      if (sender) {
        const auto exit = sender->wait(0ms);
        if (!exit) continue;
        if (*exit == Exit{0, 0}) return true;
      }
      sender = std::make_unique<Process>(
          std::vector<std::string>{program("kvfeed"), "--connect", address_, "--file", (files_ / "feed.txt").native(),
                                   "--source", "fought-for", "--rate", std::to_string(kLinesASecond), "--quiet"});
    }
    return false;
  }

  void kill_service() {
    service_->kill();
    service_.reset();
    start_service();
  }
  void kill_sender(std::size_t which) { senders_[which % senders_.size()]->kill(); }
  /// The first line that is not in the store.
  std::uint64_t next_line() const {
    std::string text;
    REQUIRE(eventually([&] {  // While a group is being written for long, nothing is said of the sources.
      text = service_->http_answer("/status");
      return text.find("\"sources\":{") != std::string::npos;
    }));
    const std::string name = "\"fought-for\":{\"next\":";
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 1 : std::stoull(text.substr(at + name.size()));
  }
  Json stop() { return service_->stop(); }

 private:
  void start_service() {
    const bool first = address_.empty();
    service_ = std::make_unique<Service>(
        Service::Options{.store = store_name(subject_),
                         .dir = subject_.dir(),
                         .args = {"--durability", "kernel", "--http", "127.0.0.1:0", "--max-line",
                                  std::to_string(kLineBytesMax), "--listen", first ? "127.0.0.1:0" : address_},
                         .listen = false});
    address_ = service_->address();
  }

  const Subject& subject_;
  TempDir files_;
  std::string address_;
  std::unique_ptr<Service> service_;
  std::array<std::unique_ptr<Process>, 2> senders_;
};

ENGINE_SCENARIO(persistent,
                "each line of a feed is stored once and in order, whoever is killed and whoever fights for it") {
  // 20 kills in 2,000,000 lines when it is tried in earnest.
  const std::size_t kills = torture_rounds(4);
  const std::uint64_t lines = kills * kLinesAKill;
  CAPTURE(kills, test_seed());
  std::mt19937_64 random(test_seed());
  World world(subject, lines);
  std::size_t in_the_middle = 0;
  std::size_t killed = 0;
  for (std::uint64_t aim = kLinesAKill / 2; killed < kills; aim += kLinesAKill / 2 + random() % (kLinesAKill / 3)) {
    bool done = false;
    REQUIRE(eventually([&] { return (done = world.tend_senders()) || world.next_line() > aim; }));
    if (done) break;
    random() % 2 == 0 ? world.kill_service() : world.kill_sender(random());
    ++killed;
    const std::uint64_t next = world.next_line();
    if (next > 1 && next <= lines) ++in_the_middle;
  }
  CHECK(killed == kills);
  CHECK(in_the_middle * 10 >= kills * 7);  // A machine that is busy looks too late.
  REQUIRE(eventually([&] { return world.tend_senders(); }));
  CHECK(world.next_line() == lines + 1);
  check_balance(world.stop());

  std::vector<std::string> wanted;
  std::uint64_t blank = 0;
  std::uint64_t bad = 0;
  for (std::uint64_t line = 0; line < lines; ++line) {
    if (kind_of(line) == Kind::good) wanted.push_back(text_of_line(line));
    blank += kind_of(line) == Kind::blank ? 1 : 0;
    bad += kind_of(line) == Kind::bad ? 1 : 0;
  }
  const bool same = scan_values(subject.dir()) == wanted;
  CHECK(same);
  const Finished audit = run({program("kvq"), "audit", "--json", "--dir", subject.dir().native()});
  CAPTURE(audit.out);
  CHECK(audit.exit.code == 0);
  const Json ledger = Json::parse(audit.out);
  CHECK(ledger["stored"].number() == wanted.size());
  CHECK(ledger["blank"].number() == blank);
  CHECK(ledger["rejected"].number() == bad);
}

}  // namespace
}  // namespace kvingest::test
