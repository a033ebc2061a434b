// kvq pivot and plot on stores whose keys begin with the symbol, with the date, or with neither.
#include <map>

#include "record/record_plan.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

using test::contains_text;
using test::created;
using test::Entries;
using test::kvq;
using test::kvq_out;
using test::TempDir;

struct World {
  World(const std::string& format, const Entries& entries, const std::string& engine = "file") {
    std::map<std::string, std::string, std::less<>> labels = {
        {"format", format}, {"key", "x"}, {"value", std::string(kWholeMessageLabel)}};
    if (format == "csv") labels["columns"] = "symbol,date,close";
    const auto store = created(engine, dir, labels);
    WriteBatch batch;
    for (const auto& [key, value] : entries) batch.put(key, value);
    REQUIRE_OK(store->write(batch, Durability::disk));
    REQUIRE_OK(store->close());
  }
  TempDir temp;
  std::filesystem::path dir = temp / "db";
};

std::string bar(const std::string& symbol, const std::string& date, const std::string& close) {
  return R"({"symbol":")" + symbol + R"(","date":")" + date + R"(","close":)" + close + "}";
}

const Entries kBySymbol = {{"A/01", bar("A", "01", "1.50")},
                           {"A/02", bar("A", "02", "2")},
                           {"A/04", bar("A", "04", "4")},
                           {"B/02", bar("B", "02", "20")},
                           {"B/03", bar("B", "03", "null")},
                           {"C/01", bar("C", "01", "100")},
                           {"C/split", R"({"symbol":"C","date":"01"})"}};

TEST_CASE("pivot: keys that begin with the symbol are merged by row, and missing cells stay empty") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    World world("json", kBySymbol, engine);
    CHECK(kvq_out({"pivot"}, world.dir) == "date,A,B,C\n01,1.50,,100\n02,2,20,\n04,4,,\n");
  }
}

TEST_CASE("pivot: keys that begin with the date give the same table") {
  Entries by_date;
  for (const auto& [key, value] : kBySymbol) by_date.emplace_back(key.substr(2) + "/" + key.substr(0, 1), value);
  CHECK(kvq_out({"pivot"}, World("json", by_date).dir) == kvq_out({"pivot"}, World("json", kBySymbol).dir));
}

TEST_CASE("pivot: many symbols of many days are merged in pages") {
  Entries entries;
  for (int symbol = 0; symbol < 40; ++symbol) {
    for (int day = 100; day < 400; ++day) {
      if ((day + symbol) % 7 == 0) continue;
      const std::string name = "S" + std::to_string(10 + symbol);
      entries.emplace_back(name + "/" + std::to_string(day),
                           bar(name, std::to_string(day), std::to_string(day * symbol)));
    }
  }
  World world("json", entries);
  const std::string table = kvq_out({"pivot"}, world.dir);
  CHECK(std::count(table.begin(), table.end(), '\n') == 301);
  std::size_t cells = 0;
  std::string expected_line = "100";
  for (int symbol = 0; symbol < 40; ++symbol) {
    expected_line += (100 + symbol) % 7 == 0 ? "," : "," + std::to_string(100 * symbol);
    cells += 300;
  }
  CHECK_THAT(table, contains_text("\n" + expected_line + "\n"));
  CHECK(static_cast<std::size_t>(std::count(table.begin(), table.end(), ',')) == cells + 40);
}

TEST_CASE("pivot: several records of one cell become what is asked for") {
  World world("json", {{"1", bar("A", "01", "3")}, {"2", bar("A", "01", "1.0")}, {"3", bar("A", "01", "2")}});
  for (const auto& [aggregate, cell] : std::map<std::string, std::string>{
           {"last", "2"}, {"first", "3"}, {"sum", "6"}, {"mean", "2"}, {"min", "1.0"}, {"max", "3"}, {"count", "3"}}) {
    INFO(aggregate);
    CHECK(kvq_out({"pivot", "--aggregate", aggregate}, world.dir) == "date,A\n01," + cell + "\n");
  }
}

TEST_CASE("pivot: csv stores, other fields, and a part of the keys") {
  World world("csv", {{"A/01", "A,01,5"}, {"A/02", "A,02,6"}, {"B/01", "B,01,\"7,5\""}});
  CHECK(kvq_out({"pivot"}, world.dir) == "date,A,B\n01,5,\"7,5\"\n02,6,\n");
  CHECK(kvq_out({"pivot", "--rows", "symbol", "--columns", "date"}, world.dir) == "symbol,01,02\nA,5,6\nB,\"7,5\",\n");
  CHECK(kvq_out({"pivot", "--prefix", "A/"}, world.dir) == "date,A\n01,5\n02,6\n");
}

TEST_CASE("pivot: JSON holds numbers as they were, and a table is aligned") {
  World world("json", kBySymbol);
  CHECK(kvq_out({"pivot", "--json"}, world.dir) ==
        "{\"rows\":[{\"date\":\"01\",\"A\":1.50,\"C\":100},{\"date\":\"02\",\"A\":2,\"B\":20},{\"date\":\"04\",\"A\":4}"
        "]}\n");
  CHECK(kvq_out({"pivot", "--format", "table"}, world.dir) ==
        "date     A   B    C\n01    1.50      100\n02       2  20     \n04       4         \n");
}

TEST_CASE("pivot: what cannot be made a table is said") {
  World world("json", kBySymbol);
  const auto missing = kvq({"pivot", "--values", "clsoe"}, world.dir);
  CHECK(missing.exit.code == 2);
  CHECK_THAT(missing.err, contains_text("clsoe"));
  CHECK(kvq({"pivot", "--aggregate", "median"}, world.dir).exit.code == 2);
  CHECK(kvq({"pivot", "--aggregate", "sum", "--values", "symbol"}, world.dir).exit.code == 2);
  World plain("line", {{"a", "b"}});
  CHECK_THAT(kvq({"pivot"}, plain.dir).err, contains_text("json and csv"));
}

TEST_CASE("plot: a table becomes lines in an SVG file") {
  if (test::run({"sh", "-c", "command -v gnuplot"}).exit.code != 0) KV_SKIP("gnuplot is not installed");
  World world("json", {{"A/1", bar("A", "2024-01-02", "1.5")},
                       {"A/2", bar("A", "2024-01-03", "2")},
                       {"B'/1", bar("B'", "2024-01-02", "3")},
                       {"B'/2", bar("B'", "2024-01-03", "4")}});
  const auto svg = world.temp / "it's.svg";
  const auto done = kvq({"plot", svg}, world.dir);
  INFO(done.err);
  CHECK(done.exit.code == 0);
  const std::string picture = test::file_text(svg);
  CHECK_THAT(picture, contains_text("<svg"));
  CHECK_THAT(picture, contains_text(">A</text>"));
  CHECK_THAT(picture, contains_text(">B'</text>"));
}

TEST_CASE("plot: a folder for temporary files that is not there is named, and nothing is drawn") {
  World world("json", {{"A/1", bar("A", "2024-01-02", "1.5")}});
  const auto svg = world.temp / "none.svg";
  const auto done = test::run({test::program("kvq"), "plot", svg, "--dir", world.dir},
                              {.env = {{"TMPDIR", world.temp / "not-made"}}});
  CHECK(done.exit.code == 1);
  CHECK_THAT(done.err, contains_text("TMPDIR"));
  CHECK_FALSE(std::filesystem::exists(svg));
}

}  // namespace
}  // namespace kvingest
