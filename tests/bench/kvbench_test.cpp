// kvbench as a process: a tiny run of each suite, so that none rots, and its mistakes before the start.
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/service.hpp"
#include "tests/support/tcp_client.hpp"

namespace kvingest::test {
namespace {

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  return widest;
}

TEST_CASE("a small ingest run has every row with its durability, and results.json is what --json prints") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "ingest", "--store", "null,file", "--messages", "3000", "--repeat",
                             "2", "--json", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(done.out == file_text(dir / "out" / "results.json"));
  CHECK(std::distance(std::filesystem::directory_iterator(dir / "out"), {}) == 1);  // Nothing is left behind.

  const Json json = Json::parse(done.out);
  CHECK_FALSE(json["machine"]["cpus"].text().empty());
  CHECK(std::stod(json["probe"]["sync_4k_us"].text()) > 0);
  std::set<std::string> rows;
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    CHECK(row["repeats"].number() == 2);
    const std::string batch = row["params"].contains("batch") ? row["params"]["batch"].text() : "-";
    if (row["metric"].text() == "messages_per_second")
      rows.insert(row["workload"].text() + " " + row["store"].text() + " " + row["durability"].text() + " " +
                  row["level"].text() + " " + batch);
  }
  CHECK(rows == std::set<std::string>{"discard null null null 256", "discard null null null 4096",
                                      "line null memory memory 256", "line null memory memory 4096",
                                      "line file kernel kernel 256", "line file disk disk 256",
                                      "seek_write null null null -"});
  CHECK(holds(done.out, "\"metric\":\"ratio_to_seek_write\""));
}

TEST_CASE("the tables fit 100 columns") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "run", "--suite", "ingest", "--store", "null,file", "--messages",
                             "2000", "--repeat", "1", "--durability", "disk", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(widest_line(done.out) <= 100);
  CHECK(holds(done.out, "discard"));
  CHECK(holds(done.out, "file       disk   disk"));
  CHECK(holds(done.err, "file at disk, 256 lines a send: "));
}

TEST_CASE("the probe measures without a suite") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "probe", "--json", "--out", dir.path().string()});
  REQUIRE(done.exit == Exit{0});
  for (const char* figure : {"timer_ns", "syscall_ns", "thread_us", "memcpy_gb_s", "loopback_us", "sync_4k_p99_us"})
    CHECK(std::stod(Json::parse(done.out)[figure].text()) > 0);
}

TEST_CASE("discard counts what a feed sends") {
  const TempDir dir;
  Process discard({program("kvbench"), "discard", "--port-file", (dir / "ports").string()});
  const std::string address = wait_for_ports(discard, dir / "ports").at("feed");
  CHECK(send_and_finish(address, numbered_lines(12'345)).empty());
  CHECK(discard.finish() == Exit{0});
  const Json result = Json::parse(discard.out_text());
  CHECK(result["received"].number() == 12'345);
  CHECK(result["bytes"].number() == numbered_lines(12'345).size());
}

TEST_CASE("mistakes are said before the run") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "a command is missing"},
      {{"ingets"}, "did you mean ingest?"},
      {{"run", "--suite", "nosuch"}, "there is no suite 'nosuch'; there are: ingest"},
      {{"ingest", "--store", "rockdb"}, "rocksdb"},
      {{"ingest", "--durability", "dsik"}, "did you mean disk?"},
      {{"ingest", "--cpu", "8000"}, "CPU 8000 is not among"},
      {{"ingest", "--repeat", "0"}, "--repeat: '0'"},
      {{"discard"}, "--port-file is missing"},
  };
  for (const auto& [arguments, sentence] : cases) {
    std::vector<std::string> command = {program("kvbench")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Finished done = run(command);
    INFO(done.err);
    CHECK(done.exit == Exit{2});
    CHECK(holds(done.err, sentence));
  }
}

TEST_CASE("a run that does not fit the disk is refused before it starts") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "ingest", "--messages", "10000000000", "--out", dir.path().string()});
  CHECK(done.exit == Exit{1});
  CHECK(holds(done.err, "MiB are free; choose another --out or fewer --messages"));
}

}  // namespace
}  // namespace kvingest::test
