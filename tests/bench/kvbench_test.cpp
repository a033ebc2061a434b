// kvbench as a process: a tiny run of each suite, so that none rots, and its mistakes before the start.
#include <fstream>
#include <map>
#include <set>

#include "tests/bench/widest_line.hpp"
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

TEST_CASE("a small ingest run has every row with its durability, and results.json is what --json prints") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "ingest", "--store", "null,file", "--messages", "3000", "--repeat",
                             "2", "--json", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(done.out == file_text(dir / "out" / "results.json"));
  for (const auto& entry : std::filesystem::directory_iterator(dir / "out"))  // Nothing else is left behind.
    CHECK(std::set<std::string>{"results.json", "results.csv", "report.html"}.count(entry.path().filename()) == 1);

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
  CHECK(rows == std::set<std::string>{
                    "discard null null null 256", "discard null null null 4096", "line null memory memory 256",
                    "line null memory memory 4096", "line file kernel kernel 256", "line file disk disk 256",
                    "seek_write null null null -", "csv_lines null memory memory 256", "csv null memory memory 256",
                    "json_lines null memory memory 256", "json null memory memory 256"});
  CHECK(holds(done.out, "\"metric\":\"ratio_to_seek_write\""));
}

TEST_CASE(
    "feeds run small: formats, acknowledgements, connections and an open loop, beside what they are held against") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "ingest", "--store", "null,mmap,lmdb", "--messages", "2000",
                             "--second-batch", "0", "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> metrics;  // Of "workload store".
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    if (row["unit"].text() == "1/s" || row["unit"].text() == "us") CHECK(std::stod(row["value"].text()) > 0);
    metrics[row["workload"].text() + " " + row["store"].text()].insert(row["metric"].text());
  }
  for (const std::string store : {"null", "mmap", "lmdb"}) {
    CAPTURE(store);
    for (const std::string format : {"csv ", "json "}) CHECK(metrics[format + store].count("ratio_to_line") == 1);
  }
  for (const std::string store : {"mmap", "lmdb"}) {
    CAPTURE(store);
    CHECK(metrics["ack_10ms " + store].count("ratio_to_source") == 1);
    CHECK(metrics["connections_1 " + store].count("messages_per_second") == 1);
    for (const std::string connections : {"connections_16 ", "connections_256 "})
      CHECK(metrics[connections + store].count("ratio_to_one_connection") == 1);
    for (const std::string figure : {"send_to_durable_p50", "send_to_durable_p99", "sync_4k_p99", "p99_to_sync_p99"})
      CHECK(metrics["open_loop " + store].count(figure) == 1);
  }
}

TEST_CASE("the suites of codec, pool and tree run small, and every row of theirs has its figures") {
  const TempDir dir;
  const std::string out = (dir / "out").string();
  const Finished done =
      run({program("kvbench"), "run", "--suite", "codec,pool,tree", "--items", "300", "--repeat", "1", "--out", out});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> variants;
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    const std::string suite = row["suite"].text();
    if (row["metric"].text() == "bytes_per_value" || row.contains("missing")) continue;
    CHECK(std::stod(row["value"].text()) > 0);
    variants[suite].insert(row["params"]["variant"].text());
  }
  for (const char* way : {"leb128 plain", "stop_bit word", "fixed plain", "memcpy", "leb128 separate ifs"})
    CHECK(variants["codec"].count(way) == 1);
  CHECK(variants["pool"].count("thread_pool") == 1);
  for (const char* way : {"walk and sum", "insert in order", "write compact", "read offsets", "walk in place"})
    CHECK(variants["tree"].count(way) == 1);

  // Against itself nothing is better or worse; with one repeat nothing can be said.
  const Finished compared = run({program("kvbench"), "compare", out + "/results.json", out + "/results.json"});
  CHECK(compared.exit == Exit{2});
  CHECK(holds(compared.err, "no row is in both runs with at least 4 repeats"));
}

TEST_CASE("dbbench runs small on every store, at levels that are named, and every record is as it was") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "dbbench", "--store", "all", "--items", "200", "--repeat", "1",
                             "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> workloads;
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    CHECK(row["durability"].text() == (row["level"].text() == "memory" ? "memory" : "kernel"));
    if (!row.contains("missing")) workloads[row["store"].text()].insert(row["workload"].text());
  }
  const std::set<std::string> all = {"overwrite", "readrandom", "multireadrandom", "seekrandom"};
  CHECK(workloads["map"] == all);
  CHECK(workloads["file"] == all);
  CHECK(workloads["mmap"] == all);
  CHECK(workloads["hash"] == std::set<std::string>{"overwrite", "readrandom", "multireadrandom"});
}

TEST_CASE("stores runs small, all its parts, and each ratio stands beside what was aimed at") {
  const TempDir dir;
  const Finished done = run(
      {program("kvbench"), "stores", "--items", "2500", "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> variants;  // By metric.
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CAPTURE(row["workload"].text(), row["metric"].text());
    CHECK_FALSE(row.contains("error"));
    CHECK(std::stod(row["value"].text()) > 0);
    CHECK(row["level"].text() == row["durability"].text());
    variants[row["metric"].text()].insert(row["params"]["variant"].text());
  }
  for (const char* way : {"mmap", "file", "write and sync", "seek and write", "mmap {seq}"})
    CHECK(variants["ns_per_record"].count(way) == 1);
  CHECK(variants["ratio_to_synced_file"] == std::set<std::string>{"mmap"});
  CHECK(variants["ratio_to_seek_write"] == std::set<std::string>{"file"});
  CHECK(variants["ratio_to_quiet"] == std::set<std::string>{"mmap"});
  CHECK(variants["times_of_pass"] == std::set<std::string>{"mmap"});
  CHECK(variants["times_of_first"].count("mmap") == 1);
  CHECK(variants["index_bytes_per_record"] == std::set<std::string>{"file", "mmap", "mmap {seq}"});
  const bool with_lmdb = variants["ns_per_record"].count("lmdb") == 1;
  CHECK(variants["ratio_to_itself"].count("lmdb") == (with_lmdb ? 1 : 0));
  CHECK(variants["ratio_to_lmdb"].count("mmap") == (with_lmdb ? 1 : 0));
  CHECK(holds(done.out, ">= 0.85"));
}

TEST_CASE("a part of stores that no chosen store takes part in is refused") {
  const TempDir dir;
  const Finished done =
      run({program("kvbench"), "stores", "--store", "null,map", "--part", "seek", "--out", (dir / "out").string()});
  CHECK(done.exit == Exit{1});
  CHECK(holds(done.err, "--store null,map has none of file, mmap, lmdb and rocksdb that --part seek measures"));
}

TEST_CASE("without a command the quick suite is run, with its report") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "--store", "null,file,map", "--messages", "2000", "--items", "200",
                             "--repeat", "1", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  const std::string json = file_text(dir / "out" / "results.json");
  for (const char* part : {"\"suite\":\"ingest\"", "\"suite\":\"dbbench\"", "\"store\":\"null\""})
    CHECK(holds(json, part));
  if (!std::filesystem::exists("/usr/bin/gnuplot")) {
    CHECK(holds(done.err, "gnuplot-nox"));
    return;
  }
  const std::string page = file_text(dir / "out" / "report.html");
  CHECK(holds(page, "<svg"));
  CHECK(holds(page, "overwrite at kernel"));
  for (const char* fetched : {"src=\"http", "href=\"http", "@import", "<script src"}) CHECK_FALSE(holds(page, fetched));
}

TEST_CASE("a run compared with itself shows no difference") {
  const TempDir dir;
  const std::string file = (dir / "out" / "results.json").string();
  const Finished done =
      run({program("kvbench"), "tree", "--items", "300", "--repeat", "4", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  const Finished compared = run({program("kvbench"), "compare", file, file});
  INFO(compared.err);
  CHECK(compared.exit == Exit{0});
  CHECK(holds(compared.out, "0 better, 0 worse, "));
}

TEST_CASE("a dry run says what it would need and does nothing") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "run", "--suite", "ingest,tree", "--store", "null,file,slot=128",
                             "--dry-run", "--explain", "--out", (dir / "out").string()});
  REQUIRE(done.exit == Exit{0});
  CHECK(holds(done.out, "null,file,slot=128"));
  CHECK(holds(done.out, "slot=128 (as asked)"));
  CHECK_FALSE(std::filesystem::exists(dir / "out"));
}

TEST_CASE("a run is gone on with, and suites that were finished are kept") {
  const TempDir dir;
  const std::string out = (dir / "out").string();
  const std::vector<std::string> command = {program("kvbench"), "run", "--suite", "tree,dbbench", "--items", "50",
                                            "--repeat",         "1",   "--quiet", "--out",        out};
  REQUIRE(run(command).exit == Exit{0});
  const std::string whole = file_text(dir / "out" / "results.json");
  // As if it had ended behind the first suite, with another figure there.
  std::string part = whole;
  const std::string both = "\"finished\":[\"tree\",\"dbbench\"]";
  REQUIRE(holds(part, both));
  part.replace(part.find(both), both.size(), "\"finished\":[\"tree\"]");
  const std::string cpu = "\"unit\":\"ns\"";
  part.replace(part.find(cpu), cpu.size(), "\"unit\":\"kept\"");
  for (std::size_t at = part.find("{\"suite\":\"dbbench\""); at != std::string::npos;
       at = part.find("{\"suite\":\"dbbench\"", at + 1))
    part.replace(at, 18, "{\"suite\":\"other\"");
  std::ofstream(dir / "out" / "results.json") << part;
  std::vector<std::string> again = command;
  again.emplace_back("--resume");
  const Finished resumed = run(again);
  INFO(resumed.err);
  REQUIRE(resumed.exit == Exit{0});
  const std::string json = file_text(dir / "out" / "results.json");
  CHECK(holds(json, "\"unit\":\"kept\""));      // The suite that was finished was not run again,
  CHECK(holds(json, "\"suite\":\"dbbench\""));  // but the other was.
  CHECK(holds(json, both));

  again[5] = "60";
  const Finished other = run(again);
  CHECK(other.exit == Exit{1});
  CHECK(holds(other.err, "is of another run"));
  again.back() = "--resume";
  again[9] = "--out";
  again[10] = (dir / "nowhere").string();
  const Finished nothing = run(again);
  CHECK(nothing.exit == Exit{1});
  CHECK(holds(nothing.err, "to go on with"));
}

TEST_CASE("full is all suites but the one that is a smaller run of others") {
  const Finished done = run({program("kvbench"), "full", "--dry-run"});
  REQUIRE(done.exit == Exit{0});
  for (const char* suite : {"ingest ", "dbbench ", "ycsb ", "stores ", "seed ", "codec ", "pool ", "net ", "tree "})
    CHECK(holds(done.out, "\n" + std::string(suite)));
  CHECK_FALSE(holds(done.out, "\nquick "));
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
      {{"run", "--suite", "nosuch"}, "there is no suite 'nosuch'; there are: quick, ingest, dbbench"},
      {{"ingest", "--store", "rockdb"}, "rocksdb"},
      {{"ingest", "--durability", "dsik"}, "did you mean disk?"},
      {{"ingest", "--cpu", "8000"}, "CPU 8000 is not among"},
      {{"ingest", "--repeat", "0"}, "--repeat: '0'"},
      {{"ycsb", "--external", "http://127.0.0.1:80"}, "is no redis://127.0.0.1:PORT"},
      {{"ycsb", "--external", "redis://192.0.2.1:6379"}, "192.0.2.1 is not this machine"},
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

TEST_CASE("a run that does not fit the memory is refused before it starts") {
  const TempDir dir;
  const Finished done = run({program("kvbench"), "codec", "--items", "2000000000", "--out", dir.path().string()});
  CHECK(done.exit == Exit{1});
  CHECK(holds(done.err, "MiB are available; choose fewer --items"));
}

}  // namespace
}  // namespace kvingest::test
