// The parts of kvbench that a figure depends on.
#include <fmt/format.h>

#include <algorithm>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "bench/bounds.hpp"
#include "bench/compare.hpp"
#include "bench/micro.hpp"
#include "bench/read_back.hpp"
#include "bench/results.hpp"
#include "bench/selftest.hpp"
#include "bench/settings.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
#include "bench/trades.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::bench {
namespace {

TEST_CASE("the median and the spread of repeats") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 9}) == 3);
  CHECK(spread({}) == 0);
  CHECK(spread({5}) == 0);
  CHECK(std::abs(spread({8, 10, 12}) - 0.4) < 1e-9);
}

TEST_CASE("line ends are counted at every length and place") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const std::size_t bytes : {0u, 1u, 15u, 16u, 17u, 255u * 16u, 255u * 16u + 1u, 10'007u}) {
    std::string text(bytes, 'x');
    for (char& c : text) c = random() % 3 == 0 ? '\n' : static_cast<char>(random());
    const auto expected = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    CHECK(count_line_ends(text.data(), text.size()) == expected);
  }
  const std::string all(70'000, '\n');
  CHECK(count_line_ends(all.data(), all.size()) == all.size());
}

TEST_CASE("a list of stores keeps the options of each with its name") {
  const auto stores = parse_stores("null,file,slot=128,null");
  REQUIRE(stores);
  REQUIRE(stores->size() == 3);
  CHECK((*stores)[0].name == "null");
  CHECK((*stores)[1].name == "file,slot=128");
  CHECK((*stores)[1].engine->name == "file");
  CHECK(parse_stores("all")->size() >= 2);
  CHECK_FALSE(parse_stores("null,nosuch"));
  CHECK_FALSE(parse_stores(""));
}

TEST_CASE("a table is aligned") {
  Table table("title", {"name", "n"}, 1);
  table.add({"a", "1"});
  table.add({"bbbbbb", "1000"});
  CHECK(table.text() == "title\nname      n\n-----------\na         1\nbbbbbb 1000\n");
}

TEST_CASE("in a table that is too wide a name is cut, never a figure") {
  Table wide("title", {"name", "n"}, 1);
  wide.add({std::string(90, 'x'), std::string(30, '7')});
  CHECK(wide.text().find("\n" + std::string(68, 'x') + "~ " + std::string(30, '7') + "\n") != std::string::npos);
}

TEST_CASE("results hold medians, and failures as null with their reason") {
  Results results;
  const Subject subject{.suite = "s", .workload = "w", .store = "map", .durability = "memory", .level = "memory"};
  results.add(subject, "rate", "1/s", {1, 5, 3});
  results.add_failure({.suite = "s", .workload = "w"}, "rate", "1/s", "it broke");
  const test::Json json = test::Json::parse(results.json());
  CHECK(json["schema"].number() == 1);
  const test::Json& good = json["results"][0];
  CHECK(good["store"].text() == "map");
  CHECK(good["value"].text() == "3");
  CHECK(good["repeats"].number() == 3);
  const test::Json& bad = json["results"][1];
  CHECK(bad["value"].text() == "null");
  CHECK(bad["store"].text() == "null");
  CHECK(bad["error"].text() == "it broke");
}

TEST_CASE("the rank test knows how sure a difference is") {
  // Tables of the Mann-Whitney test: 4 against 4 and 5 against 5, all of one side above the other.
  CHECK(std::abs(rank_test({1, 2, 3, 4}, {5, 6, 7, 8}) - 2.0 / 70) < 1e-9);
  CHECK(std::abs(rank_test({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}) - 2.0 / 252) < 1e-9);
  CHECK(std::abs(rank_test({1, 2, 3, 5}, {4, 6, 7, 8}) - 4.0 / 70) < 1e-9);
  CHECK(rank_test({1, 2, 3}, {1, 2, 3}) == 1);
  CHECK(rank_test({}, {1}) == 1);
}

TEST_CASE("a change is better or worse when it is sure, large, and in the right direction") {
  const std::vector<double> before = {100, 101, 102, 103, 104};
  const std::vector<double> higher = {120, 121, 122, 123, 124};
  const std::vector<double> nearly = {104.5, 105, 105.5, 106, 106.5};
  const std::vector<double> apart = {90, 100, 130, 140, 150};
  CHECK(judge(before, higher, true) == Verdict::better);
  CHECK(judge(before, higher, false) == Verdict::worse);
  CHECK(judge(higher, before, true) == Verdict::worse);
  CHECK(judge(before, before, true) == Verdict::no_difference);
  CHECK(judge(before, nearly, true) == Verdict::no_difference);  // Sure, but small.
  CHECK(judge(before, apart, true) == Verdict::no_difference);   // Large, but not sure.
  CHECK(judge({1, 2, 3}, {4, 5, 6}, true) == Verdict::not_comparable);
}

/// A results.json with one row of `values`, on a machine of that name.
std::string write_results(const test::TempDir& dir, const std::string& name, const std::string& machine,
                          std::vector<double> values) {
  Results results;
  results.machine.cpu = machine;
  results.add({.suite = "s", .workload = "w"}, "rate", "1/s", std::move(values));
  std::string path = (dir / name).string();
  std::ofstream(path) << results.json();
  return path;
}

TEST_CASE("runs are compared row by row, on one machine only") {
  const test::TempDir dir;
  const std::string before = write_results(dir, "before.json", "one", {10, 11, 12, 13});
  const std::string slower = write_results(dir, "slower.json", "one", {5, 6, 7, 8});
  const std::string other = write_results(dir, "other.json", "two", {10, 11, 12, 13});
  const auto worse = compare_runs(before, slower);
  REQUIRE(worse);
  CHECK(worse->worse == 1);
  CHECK(worse->text.find("s w rate") != std::string::npos);
  CHECK(compare_runs(slower, before)->better == 1);
  CHECK(compare_runs(before, before)->same == 1);
  CHECK_FALSE(compare_runs(before, other));
  CHECK_FALSE(compare_runs(before, (dir / "nothing.json").string()));
}

TEST_CASE("the checks of kvbench itself see what is uneven") {
  CHECK(chi_square({100, 100, 100, 100}) == 0);
  CHECK(chi_square({200, 0, 100, 100}) == 200);
}

/// Runs rows that take no time worth speaking of.
Results micro_results(std::vector<MicroRow> rows, std::string& tables) {
  Settings settings;
  settings.repeat = 2;
  settings.quiet = true;
  Results results;
  Bench bench{settings, {}, {}, {}, {}, results};
  const MicroPlan plan{.suite = "s", .item = "thing", .rows = std::move(rows), .ratios = {{"good", "ratio"}}};
  REQUIRE(run_micro(bench, plan));
  tables = bench.tables;
  return results;
}

TEST_CASE("a row whose answer is wrong, or that this build lacks, has no figure and says why") {
  MicroRow good;
  good.group = "g";
  good.name = "good";
  good.run = [] {};
  good.check = []() -> Result<void> { return {}; };
  MicroRow wrong = good;
  wrong.name = "wrong";
  wrong.check = []() -> Result<void> { return fail(Code::corrupt, "7 and not 8"); };
  MicroRow missing = good;
  missing.name = "absent";
  missing.missing = "install it";
  std::string tables;
  const Results results = micro_results({good, wrong, missing}, tables);
  for (const Row& row : results.rows) {
    if (row.subject.variant == "good") CHECK(row.values.size() == 2);
    if (row.subject.variant == "wrong") CHECK(row.error == "its answer is wrong: 7 and not 8");
    if (row.subject.variant == "absent") CHECK((row.missing == "install it" && row.error.empty()));
    if (row.subject.variant != "good") CHECK(row.values.empty());
  }
  CHECK(tables.find("wrong: its answer is wrong: 7 and not 8") != std::string::npos);
  CHECK(tables.find("absent: install it") != std::string::npos);
}

/// Stores `Benchmark Message {n}` for each n, as a feed would.
void fill(const std::filesystem::path& dir, const std::vector<int>& numbers) {
  const auto spec = parse_store_spec("file");
  REQUIRE(spec);
  auto store = open_store(*spec, {.dir = dir});
  REQUIRE(store);
  WriteBatch batch;
  for (const int n : numbers) batch.put_next(fmt::format("Benchmark Message {}", n));
  batch.number(1);
  REQUIRE((*store)->write(batch, Durability::kernel));
  REQUIRE((*store)->close());
}

TEST_CASE("reading back finds a missing, a changed and a surplus record") {
  const auto refusal = [](const std::vector<int>& numbers, std::uint64_t count) {
    const test::TempDir dir;
    fill(dir / "db", numbers);
    const auto checked = check_records(dir / "db", count);
    return checked ? "" : checked.error().text;
  };
  std::vector<int> many(2'500);
  for (int n = 0; n < 2'500; ++n) many[static_cast<std::size_t>(n)] = n;
  CHECK(refusal(many, 2'500).empty());
  CHECK(refusal({0, 1, 2}, 3).empty());
  CHECK(refusal({0, 1, 2}, 4) == "4 records were sent, 3 are there");
  CHECK(refusal({0, 1, 2}, 2) == "2 records were sent, 3 are there");
  CHECK(refusal({0, 2, 1}, 3) == "record 2 is not what was sent");
}

TEST_CASE("reading back in any order finds a missing, a changed and a surplus record, and one under another's key") {
  const auto refusal = [](const std::vector<int>& numbers, std::uint64_t sent) {
    const test::TempDir dir;
    fill(dir / "db", numbers);
    const auto checked = check_lines(dir / "db", sent, numbered_digest(sent), KeyedBy::number);
    return checked ? "" : checked.error().text;
  };
  CHECK(refusal({2, 0, 1}, 3).empty());
  CHECK(refusal({0, 1}, 3) == "3 records were sent, 2 are there");
  CHECK(refusal({0, 1, 3}, 3) == "3 records are there, but they are not those that were sent");

  const test::TempDir dir;
  const auto trades = write_trades(dir.path(), 1'000, 7);
  REQUIRE(trades);
  for (const LineFile* lines : {&trades->csv, &trades->json}) {
    CHECK(test::file_text(lines->path).find("\"symbol\"") == (lines == &trades->json ? 1 : std::string::npos));
    for (const bool right : {true, false}) {
      const auto file = parse_store_spec("file");
      REQUIRE(file);
      const test::TempDir place;
      auto store = open_store(*file, {.dir = place / "db"});
      REQUIRE(store);
      WriteBatch batch;
      std::istringstream text(test::file_text(lines->path));
      for (std::string line; std::getline(text, line);)
        batch.put(fmt::format("{}/{}{}", trade_symbol(line), trade_time(line), right ? "" : "0"), line);
      REQUIRE((*store)->write(batch, Durability::kernel));
      REQUIRE((*store)->close());
      CHECK(check_lines(place / "db", 1'000, lines->digest, KeyedBy::trade).has_value() == right);
    }
  }
}

}  // namespace
}  // namespace kvingest::bench
