// backup, compact and export, on stores of every persistent engine.
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

using test::Json;
using test::TempDir;

/// A store of three messages under names.
std::filesystem::path written(const TempDir& temp, std::map<std::string, std::string, std::less<>> labels,
                              const std::vector<std::pair<std::string, std::string>>& records) {
  const auto store = test::created(test::persistent_engines().front(), temp / "db", std::move(labels));
  WriteBatch batch;
  for (const auto& [key, value] : records) batch.put(key, value);
  REQUIRE_OK(store->write(batch, Durability::disk));
  REQUIRE_OK(store->close());
  return temp / "db";
}

TEST_CASE("a backup is a store of its own with the same content, on every engine") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    const TempDir temp;
    test::write_numbered(engine, temp / "db", 500);
    const std::string said = test::kvq_out({"backup", (temp / "copy").native()}, temp / "db");
    CHECK(said.find("500 records") != std::string::npos);
    test::kvq_out({"verify"}, temp / "copy");
    CHECK(test::kvq_out({"scan"}, temp / "copy") == test::kvq_out({"scan"}, temp / "db"));
    CHECK(test::kvq({"backup", (temp / "copy").native()}, temp / "db").exit.code == 1);
    const auto store = open_store({.dir = temp / "copy"});
    REQUIRE_OK(store);
    CHECK(test::entries_of(**store, Space::meta) == test::Entries{{"m", "not a record"}});
  }
}

TEST_CASE("compacting changes no record, on every engine") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    const TempDir temp;
    const auto store = test::created(engine, temp / "db", {});
    for (int round = 0; round < 20; ++round) {
      WriteBatch batch;
      for (int i = 0; i < 200; ++i) batch.put(fmt::format("k{:04}", i), fmt::format("{} {}", round, i));
      for (int i = 0; i < 100; ++i) batch.erase(fmt::format("k{:04}", i));
      REQUIRE_OK(store->write(batch, Durability::disk));
    }
    const auto records = test::entries_of(*store, Space::records);
    REQUIRE_OK(store->close());
    const Json report = Json::parse(test::kvq_out({"compact", "--json"}, temp / "db"));
    CHECK(report["bytes_after"].number() > 0);
    test::kvq_out({"verify"}, temp / "db");
    const auto again = open_store({.dir = temp / "db"});
    REQUIRE_OK(again);
    CHECK(test::entries_of(**again, Space::records) == records);
  }
}

TEST_CASE("a csv store with known columns is exported as the csv it was") {
  const TempDir temp;
  const auto dir = written(
      temp,
      {{"format", "csv"}, {"key", "{a}"}, {"value", "(whole message)"}, {"columns", "a,\"b,c\""}, {"separator", ","}},
      {{"k1", "k1,\"x,y\""}, {"k2", "k2,\"say \"\"hi\"\"\""}, {"k3", "by hand"}});
  CHECK(test::kvq_out({"export", "--format", "csv"}, dir) == "a,\"b,c\"\nk1,\"x,y\"\nk2,\"say \"\"hi\"\"\"\nby hand\n");
  CHECK(test::kvq_out({"export", "--format", "json"}, dir) ==
        "{\"key\":\"k1\",\"value\":{\"a\":\"k1\",\"b,c\":\"x,y\"}}\n"
        "{\"key\":\"k2\",\"value\":{\"a\":\"k2\",\"b,c\":\"say \\\"hi\\\"\"}}\n"
        "{\"key\":\"k3\",\"value\":\"by hand\"}\n");
  CHECK(test::kvq_out({"export", "--json"}, dir) == test::kvq_out({"export", "--format", "json"}, dir));
}

TEST_CASE("a json store is exported as the objects it holds, and what is none as text") {
  const TempDir temp;
  const auto dir = written(temp, {{"format", "json"}, {"key", "{a}"}, {"value", "(whole message)"}},
                           {{"1", R"({"a":1,"b":[1.50]})"}, {"2", R"({"a":2,})"}});
  CHECK(test::kvq_out({"export", "--format", "json"}, dir) ==
        "{\"key\":\"1\",\"value\":{\"a\":1,\"b\":[1.50]}}\n{\"key\":\"2\",\"value\":\"{\\\"a\\\":2,}\"}\n");
}

TEST_CASE("other stores are exported as key and value") {
  const TempDir temp;
  const auto dir = written(temp, {}, {{"a,b", "x"}, {"c", "line\none \"two\""}});
  CHECK(test::kvq_out({"export", "--format", "csv"}, dir) == "key,value\n\"a,b\",x\nc,\"line\none \"\"two\"\"\"\n");
  CHECK(test::kvq_out({"export", "--format", "text", "--from", "b"}, dir) == "c\tline\\none \"two\"\n");
  CHECK(test::kvq({"export", "--format", "xml"}, dir).exit.code == 2);
  const TempDir numbered;
  test::write_numbered(test::persistent_engines().front(), numbered / "db", 2);
  CHECK(test::kvq_out({"export", "--format", "csv"}, numbered / "db") == "key,value\n1,value 1\n2,value 2\n");
  CHECK(test::kvq_out({"export", "--format", "json", "--limit", "1"}, numbered / "db") ==
        "{\"key\":1,\"value\":\"value 1\"}\n");
}

}  // namespace
}  // namespace kvingest
