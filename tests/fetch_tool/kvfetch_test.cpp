// kvfetch as a process, between a source of our own and a store or a running kvingest.
#include <atomic>
#include <csignal>

#include "tests/http/fault_server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"

namespace kvingest::test {
namespace {

constexpr const char* kBody =
    "Date,Open,High,Low,Close,Volume\r\n2024-01-02,1,2,0.5,1.5,100\r\n2024-01-03,1.5,3,1,2,200\r\n";

struct World {
  World() {
    server.on("/q/d/l/", [](const Seen& seen) {
      return seen.target.find("s=nosuch") != std::string::npos ? answer(200, "No data")
                                                               : answer(200, kBody, {{"Content-Type", "text/csv"}});
    });
  }

  std::vector<std::string> load(const std::string& symbols, const std::vector<std::string>& more) const {
    std::vector<std::string> args{
        program("kvfetch"), "load",       "--source", "stooq-daily", "--symbols", symbols,
        "--from",           "2024-01-01", "--to",     "2024-02-01",  "--origin",  server.origin(),
        "--proxy",          "",           "--quiet"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::vector<std::string> load(const std::string& symbols) const {
    return load(symbols, {"--dir", dir / "db", "--json"});
  }

  TempDir dir;
  FaultServer server;
};

TEST_CASE("kvfetch loads symbols into a store that kvq reads, and a second run asks for nothing") {
  World world;
  const Finished first = run(world.load("aapl.us,msft.us"));
  INFO(first.err);
  REQUIRE(first.exit == Exit{0});
  const Json report = Json::parse(first.out);
  CHECK(report["items"][0]["outcome"].text() == "ok");
  CHECK(report["items"][0]["records"].number() == 2);
  CHECK(report["complete"].text() == "true");
  const auto rows = scan_rows(world.dir / "db");
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].first == "stooq-daily/aapl.us/1d/2024-01-02");
  const std::size_t asked = world.server.seen().size();
  CHECK(run(world.load("aapl.us,msft.us")).exit == Exit{0});
  CHECK(world.server.seen().size() == asked);
  CHECK(run({program("kvq"), "audit", "--dir", world.dir / "db"}).exit == Exit{0});
  const Finished wide = run({program("kvq"), "pivot", "--dir", world.dir / "db"});
  CHECK(wide.out == "date,aapl.us,msft.us\n2024-01-02,1.5,1.5\n2024-01-03,2,2\n");
}

TEST_CASE("kvfetch ends with 1 where an item is not complete, and says which and why") {
  World world;
  const Finished done = run(world.load("aapl.us,nosuch"));
  CHECK(done.exit == Exit{1});
  const Json report = Json::parse(done.out);
  CHECK(report["items"][0]["outcome"].text() == "ok");
  CHECK(report["items"][1]["outcome"].text() == "no_such_symbol");
}

TEST_CASE("kvfetch says what is wrong before it asks anybody") {
  World world;
  const auto complaint = [&](std::vector<std::string> args) {
    args.insert(args.begin(), program("kvfetch"));
    const Finished done = run(args);
    CHECK(done.exit == Exit{2});
    return done.err;
  };
  CHECK_THAT(complaint({"load", "--source", "stoq-daily", "--symbols", "A", "--from", "2024-01-01"}),
             contains_text("stooq-daily"));
  CHECK_THAT(complaint({"load", "--source", "stooq-daily", "--from", "2024-01-01"}), contains_text("--symbols"));
  CHECK_THAT(complaint({"load", "--source", "stooq-daily", "--symbols", "A", "--from", "01.02.2024"}),
             contains_text("2024-01-31"));
  CHECK_THAT(
      complaint({"load", "--source", "stooq-daily", "--symbols", "A", "--from", "2024-01-01", "--interval", "1y"}),
      contains_text("1wk"));
  CHECK_THAT(
      complaint({"load", "--source", "stooq-daily", "--symbols", "A", "--from", "2024-01-01", "--store", "rockdb"}),
      contains_text("rocksdb"));
  CHECK_THAT(
      complaint({"load", "--source", "stooq-daily", "--symbols", "A", "--from", "2024-01-01", "--into", "nowhere"}),
      contains_text("tcp://"));
  CHECK_THAT(complaint({"run", world.dir / "none.toml"}), contains_text("none.toml"));
  CHECK_THAT(complaint({"check", "nothing"}), contains_text("kvfetch sources"));
  CHECK(run(world.load("A", {"--dir", "/proc/none/db"})).exit == Exit{3});
  CHECK(world.server.seen().empty());
}

TEST_CASE("kvfetch --dry-run shows the plan, asks nobody and makes nothing") {
  World world;
  const Finished done = run(world.load("aapl.us", {"--dir", world.dir / "db", "--dry-run"}));
  CHECK(done.exit == Exit{0});
  CHECK_THAT(done.out, contains_text("stooq-daily aapl.us 1d  1 window(s)"));
  CHECK(world.server.seen().empty());
  CHECK_FALSE(std::filesystem::exists(world.dir / "db"));
}

TEST_CASE("kvfetch run loads all jobs of a file") {
  World world;
  write_text(world.dir / "jobs.toml",
             "[[job]]\nsource = \"stooq-daily\"\nsymbols = [\"a\"]\nfrom = 2024-01-01\nto = 2024-02-01\n"
             "[[job]]\nsource = \"stooq-daily\"\nsymbols = [\"b\"]\nfrom = 2024-01-01\nto = 2024-02-01\n"
             "interval = \"1wk\"\n");
  const Finished done = run({program("kvfetch"), "run", world.dir / "jobs.toml", "--dir", world.dir / "db", "--origin",
                             world.server.origin(), "--proxy", "", "--quiet"});
  INFO(done.err << done.out);
  CHECK(done.exit == Exit{0});
  CHECK(count_records(world.dir / "db") == 4);
}

TEST_CASE("kvfetch --failed-out writes jobs of what failed, which kvfetch run completes") {
  World world;
  const std::string failed = world.dir / "failed.toml";
  std::atomic<bool> broken = true;
  world.server.on("/q/d/l/", [&broken](const Seen& seen) {
    return broken && seen.target.find("s=b%5B%22") != std::string::npos ? answer(200, "<html>") : answer(200, kBody);
  });
  CHECK(run(world.load("a,b[\",c", {"--dir", world.dir / "db", "--failed-out", failed})).exit == Exit{1});
  const std::string jobs = file_text(failed);
  CAPTURE(jobs);
  CHECK_THAT(jobs, contains_text("symbols = [\"b[\\\"\"]\nfrom = 2024-01-01\nto = 2024-02-01\n"));
  broken = false;
  const std::size_t asked = world.server.seen().size();
  const Finished again = run(
      {program("kvfetch"), "run", failed, "--dir", world.dir / "db", "--proxy", "", "--quiet", "--failed-out", failed});
  INFO(again.err << again.out);
  CHECK(again.exit == Exit{0});
  CHECK(world.server.seen().size() == asked + 1);
  CHECK(count_records(world.dir / "db") == 6);
  CHECK_FALSE(std::filesystem::exists(failed));
}

TEST_CASE("kvfetch check proves each source, and sources lists them") {
  const Finished listed = run({program("kvfetch"), "sources"});
  REQUIRE(listed.exit == Exit{0});
  std::size_t sources = 0;
  for (std::size_t at = 0; at < listed.out.size(); at = listed.out.find('\n', at) + 1) {
    const std::string name = listed.out.substr(at, listed.out.find(' ', at) - at);
    const Finished checked = run({program("kvfetch"), "check", name});
    INFO(name << checked.out);
    CHECK(checked.exit == Exit{0});
    ++sources;
  }
  CHECK(sources >= 10);
  const Json as_json = Json::parse(run({program("kvfetch"), "sources", "--json"}).out);
  CHECK(as_json["sources"].size() == sources);
  const Json proof = Json::parse(run({program("kvfetch"), "check", "yahoo-chart", "--json"}).out);
  CHECK(proof["failures"].size() == 0);
  CHECK(proof["examples"].number() >= 4);
}

TEST_CASE("kvfetch sends into a running kvingest, window by window, and never twice") {
  World world;
  Service service({.store = "mmap", .args = {"--format", "json", "--key", "{symbol}/{date}"}});
  const std::vector<std::string> into{"--into", "tcp://" + service.address(), "--state", world.dir / "state", "--json"};
  for (int i = 0; i < 2; ++i) {
    const Finished done = run(world.load("a,b", into));
    INFO(done.err << done.out);
    CHECK(done.exit == Exit{0});
  }
  const Json ledger = service.stop();
  CHECK(ledger["stored"].number() == 4);
  CHECK(count_records(service.dir()) == 4);
}

TEST_CASE("kvfetch sends splits and dividends into a running kvingest when asked to, and else says that it did not") {
  World world;
  world.server.on("/v8/finance/chart/NVDA", [](const Seen&) {
    return answer(200,
                  R"({"chart":{"result":[{"meta":{"currency":"USD","symbol":"NVDA","exchangeTimezoneName":)"
                  R"("America/New_York"},"timestamp":[1615559400],"events":{"splits":{"1615559400":)"
                  R"({"date":1615559400,"numerator":4,"denominator":1}},"dividends":{"1615559400":)"
                  R"({"date":1615559400,"amount":0.5}}},"indicators":{"quote":[{"open":[1],"high":[2],"low":[1],)"
                  R"("close":[1.5],"volume":[3]}],"adjclose":[{"adjclose":[1.5]}]}}],"error":null}})",
                  {{"Content-Type", "application/json"}});
  });
  Service service({.store = "mmap", .args = {"--format", "json", "--key", "{symbol}/{interval}/{date}"}});
  std::vector<std::string> args{program("kvfetch"),
                                "load",
                                "--source",
                                "yahoo-chart",
                                "--symbols",
                                "NVDA",
                                "--from",
                                "2021-03-12",
                                "--to",
                                "2021-03-13",
                                "--origin",
                                world.server.origin(),
                                "--proxy",
                                "",
                                "--quiet",
                                "--into",
                                "tcp://" + service.address(),
                                "--refresh",
                                "--state",
                                world.dir / "state"};
  const Finished without = run(args);
  INFO(without.err << without.out);
  CHECK(without.exit == Exit{0});
  CHECK_THAT(without.out, contains_text("2 splits and the like were not sent; see --extras"));
  args.push_back("--extras");
  const Finished with = run(args);
  CHECK(with.exit == Exit{0});
  CHECK(with.out.find("were not sent") == std::string::npos);
  service.stop();
  std::vector<std::string> keys;
  for (const auto& [key, value] : scan_rows(service.dir())) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"NVDA/1d/2021-03-12", "NVDA/dividend/2021-03-12", "NVDA/split/2021-03-12"});
}

TEST_CASE("kvfetch says when the kvingest it sends to cannot take what it sends") {
  World world;
  Service service({.args = {"--format", "json", "--key", "{nothing}"}});
  const std::vector<std::string> into{"--into", "tcp://" + service.address(), "--state", world.dir / "state"};
  const Finished refused = run(world.load("a", into));
  CHECK(refused.exit == Exit{1});
  CHECK_THAT(refused.err, contains_text("--key"));
  service.kill();
  const Finished gone = run(world.load("a", into));
  CHECK(gone.exit == Exit{1});
  CHECK_THAT(gone.err, contains_text("is kvingest listening there?"));
}

TEST_CASE("kvfetch that is interrupted or killed goes on where it was") {
  World world;
  std::atomic<bool> stalls = true;
  world.server.on("/q/d/l/", [&](const Seen& seen) {
    if (seen.target.find("s=b") != std::string::npos && stalls) return Reply{stall()};
    return answer(200, kBody);
  });
  for (const int signal : {SIGINT, SIGKILL}) {
    Process process(world.load("a,b"));
    REQUIRE(eventually([&] {
      const auto seen = world.server.seen();
      return !seen.empty() && seen.back().target.find("s=b") != std::string::npos;
    }));
    process.signal(signal);
    const Exit exit = process.finish();
    CHECK(exit == (signal == SIGINT ? Exit{130} : Exit{-1, SIGKILL}));
  }
  stalls = false;
  const Finished done = run(world.load("a,b"));
  INFO(done.err << done.out);
  CHECK(done.exit == Exit{0});
  CHECK(count_records(world.dir / "db") == 4);
  int asked_for_a = 0;
  for (const Seen& seen : world.server.seen()) asked_for_a += seen.target.find("s=a") != std::string::npos ? 1 : 0;
  CHECK(asked_for_a == 1);
}

}  // namespace
}  // namespace kvingest::test
