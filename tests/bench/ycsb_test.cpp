// The ycsb suite run small: on every store, and beside a server that speaks RESP.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "bench/ycsb_redis.hpp"
#include "bench/ycsb_run.hpp"
#include "tests/bench/widest_line.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::bench {
namespace {

using test::Exit;
using test::file_text;
using test::Finished;
using test::Json;
using test::program;
using test::TempDir;

/// A server of GET, SET, DEL and DBSIZE for one client after the other, until its end.
class RespServer {
 public:
  explicit RespServer(std::map<std::string, std::string> records = {})
      : listener_(*feed::Listener::listen({"127.0.0.1", "0"})),
        map_(std::move(records)),
        keys_(map_.size()),
        thread_([this] { serve(); }) {}
  RespServer(const RespServer&) = delete;
  RespServer& operator=(const RespServer&) = delete;
  ~RespServer() {
    stopped_ = true;
    thread_.join();
  }
  [[nodiscard]] std::string url() const { return "redis://" + *listener_.address(); }
  /// After the last client has gone.
  [[nodiscard]] std::size_t keys() const { return keys_; }

 private:
  void serve() {
    while (!stopped_) {
      auto client = listener_.accept();
      if (client && *client) serve_one(**client);
    }
  }

  void serve_one(feed::Stream& client) {
    std::string in;
    std::string room(65'536, '\0');
    while (!stopped_) {
      const auto got = client.receive(room.data(), room.size());
      if (!got || got->ended) return;
      in.append(room, 0, got->bytes);
      std::string out;
      while (take_command(in)) out += answer();
      for (std::string_view rest = out; !rest.empty() && !stopped_;) {
        const auto sent = client.send_some(rest);
        if (!sent) return;
        rest.remove_prefix(*sent);
      }
    }
  }

  /// The words of a whole command are taken off `in`.
  bool take_command(std::string& in) {
    words_.clear();
    std::size_t at = 0;
    const auto number = [&](char mark, std::size_t& value) {
      const std::size_t end = in.find("\r\n", at);
      if (end == std::string::npos || in[at] != mark) return false;
      value = std::stoul(in.substr(at + 1, end - at - 1));
      at = end + 2;
      return true;
    };
    std::size_t count = 0;
    if (in.empty() || !number('*', count)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t bytes = 0;
      if (at >= in.size() || !number('$', bytes) || in.size() < at + bytes + 2) return false;
      words_.push_back(in.substr(at, bytes));
      at += bytes + 2;
    }
    in.erase(0, at);
    return true;
  }

  std::string answer() {
    const std::string& command = words_.at(0);
    std::string text = "-ERR unknown command\r\n";
    if (command == "SET") {
      map_[words_.at(1)] = words_.at(2);
      text = "+OK\r\n";
    } else if (command == "GET") {
      const auto found = map_.find(words_.at(1));
      text = found == map_.end() ? "$-1\r\n" : fmt::format("${}\r\n{}\r\n", found->second.size(), found->second);
    } else if (command == "DEL") {
      text = fmt::format(":{}\r\n", map_.erase(words_.at(1)));
    } else if (command == "DBSIZE") {
      text = fmt::format(":{}\r\n", map_.size());
    }
    keys_ = map_.size();
    return text;
  }

  feed::Listener listener_;
  std::map<std::string, std::string> map_;
  std::vector<std::string> words_;
  std::atomic<std::size_t> keys_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

TEST_CASE("ycsb runs small on every store, in closed and open loops, with percentiles of both times") {
  const TempDir dir;
  const Finished done =
      test::run({program("kvbench"), "ycsb", "--store", "all", "--items", "300", "--operations", "300", "--steady",
                 "100ms", "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(test::widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> workloads;  // Of "metric store".
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CAPTURE(row["workload"].text(), row["metric"].text());
    CHECK_FALSE(row.contains("error"));
    if (row.contains("missing")) continue;
    CHECK(row["durability"].text() == (row["level"].text() == "memory" ? "memory" : "kernel"));
    workloads[row["metric"].text() + " " + row["store"].text()].insert(row["workload"].text());
  }
  const std::set<std::string> all = {"A", "B", "C", "D", "E", "F"};
  for (const char* store : {"file", "map", "mmap"}) {
    CAPTURE(store);
    auto closed = workloads[std::string("ns_per_op ") + store];
    closed.erase("steady A");
    CHECK(closed == all);
    for (const char* metric : {"response_p50 ", "response_p99 ", "response_p9999 ", "service_p999 "}) {
      CAPTURE(metric);
      for (const std::string& workload : all)
        CHECK(workloads[metric + std::string(store)].count(workload + " open loop"));
    }
  }
  CHECK(workloads["ns_per_op hash"].count("E") == 0);  // It has no order.
  CHECK(workloads["ns_per_op hash"].count("D") == 1);
  std::set<std::string> pictures;
  for (std::size_t i = 0; i < json["series"].size(); ++i) {
    CHECK(json["series"][i]["points"].size() > 0);
    pictures.insert(json["series"][i]["picture"].text());
  }
  for (const char* picture :
       {"ycsb: A at kernel: offered load against the 99th percentile", "ycsb: A at kernel: operations by time",
        "ycsb: F at memory: service time by percentile, closed loop"})
    CHECK(pictures.count(picture) == 1);
}

/// A map that forgets the last update of a record now and then.
class Forgetful final : public YcsbTarget {
 public:
  Result<void> put(std::string_view key, std::string_view value) override {
    if (++puts_ % 10 != 0) map_[std::string(key)] = value;
    return {};
  }
  Result<void> load(std::string_view key, std::string_view value) override {
    map_[std::string(key)] = value;
    return {};
  }
  Result<void> load_end() override { return {}; }
  Result<bool> get(std::string_view key, Store::ValueVisitor visit) override {
    const auto found = map_.find(std::string(key));
    if (found == map_.end()) return false;
    visit(found->second);
    return true;
  }
  Result<std::size_t> scan(std::string_view first, std::size_t records, Entry visit) override {
    std::size_t passed = 0;
    for (auto at = map_.find(std::string(first)); at != map_.end() && passed < records / 2; ++at, ++passed)
      visit(at->first, at->second);
    return passed;
  }
  Result<std::uint64_t> count() override { return map_.size(); }
  Result<void> close() override { return {}; }
  [[nodiscard]] bool is_ordered() const override { return true; }
  [[nodiscard]] std::string_view level() const override { return "memory"; }

 private:
  std::map<std::string, std::string> map_;
  int puts_ = 0;
};

TEST_CASE("a store that forgets an update, or shortens a scan, is found out") {
  for (const YcsbWorkload& workload : ycsb_workloads()) {
    CAPTURE(workload.name);
    YcsbRunner runner(std::make_unique<Forgetful>());
    REQUIRE(runner.load(300));
    const auto run = runner.run_closed(make_ycsb_ops(workload, 300, 2'000, 1));
    const bool is_found = !run || !runner.check();
    CHECK(is_found == (workload.name != 'C'));  // Which only reads.
  }
}

TEST_CASE("a server that speaks RESP stands beside the stores, marked, and holds nothing in the end") {
  const TempDir dir;
  RespServer server;
  const Finished done =
      test::run({program("kvbench"), "ycsb", "--store", "map", "--external", server.url(), "--items", "250",
                 "--operations", "120", "--steady", "0s", "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(done.out.find("ycsb at server: closed loop") != std::string::npos);
  CHECK(done.out.find("Not comparable") != std::string::npos);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::set<std::string> workloads;
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    if (row["store"].text() != server.url() || row.contains("missing")) continue;
    CHECK(row["level"].text() == "server");
    if (row["metric"].text() == "ns_per_op") workloads.insert(row["workload"].text());
  }
  CHECK(workloads == std::set<std::string>{"A", "B", "C", "D", "F"});
  CHECK(server.keys() == 0);
}

TEST_CASE("a server that holds keys, or is on another machine, is not loaded") {
  RespServer server(std::map<std::string, std::string>{{"somebody's", "record"}});
  const auto address = parse_external(server.url());
  REQUIRE(address);
  const auto opened = open_ycsb_redis(*address);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().text.find("holds 1 keys") != std::string::npos);
  CHECK(server.keys() == 1);
  CHECK(parse_external("redis://localhost:1"));
  CHECK_FALSE(parse_external("redis://example.org:1"));
  CHECK_FALSE(parse_external("127.0.0.1:6379"));
}

}  // namespace
}  // namespace kvingest::bench
