// The parts of kvbench that a figure depends on.
#include <fmt/format.h>

#include <algorithm>

#include <cmath>
#include <random>

#include "bench/bounds.hpp"
#include "bench/read_back.hpp"
#include "bench/results.hpp"
#include "bench/settings.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"
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

}  // namespace
}  // namespace kvingest::bench
