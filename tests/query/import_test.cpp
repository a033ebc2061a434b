// kvq import and delete: what comes in by hand and what is taken away, with a ledger that balances.
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/service.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::query {
namespace {

using test::Finished;
using test::Json;
using test::kvq_out;
using test::TempDir;

/// A store with the records that `lines` make.
void feed(const std::string& engine, const std::filesystem::path& dir, const std::string& lines,
          std::vector<std::string> args = {}) {
  test::Service service({.store = engine, .dir = dir, .args = std::move(args)});
  CHECK(service.sync(lines).word == "synced");
  service.stop();
}

TEST_CASE("what scan prints is imported again, byte for byte, on every engine") {
  for (const std::string& engine : test::persistent_engines()) {
    INFO(engine);
    const TempDir temp;
    feed(engine, temp / "from", "a=1\nb\\\t\xff=two words\nc=\n", {"--format", "kv"});
    const std::string rows = kvq_out({"scan"}, temp / "from");
    test::write_text(temp / "rows", rows);
    feed(engine, temp / "to", "", {"--format", "kv"});
    CHECK(kvq_out({"import", (temp / "rows").native()}, temp / "to") == "received 3  stored 3  rejected 0  blank 0\n");
    CHECK(kvq_out({"scan"}, temp / "to") == rows);
    CHECK(kvq_out({"audit"}, temp / "to").find("source @import: received 3  stored 3") != std::string::npos);
  }
}

TEST_CASE("imported records of a {seq} store get the next numbers") {
  const TempDir temp;
  const std::string engine = test::persistent_engines().front();
  feed(engine, temp / "db", "one\ntwo\n");
  test::write_text(temp / "rows", "1\tthree\n\n700\tfour");
  CHECK(kvq_out({"import", (temp / "rows").native()}, temp / "db") == "received 3  stored 2  rejected 0  blank 1\n");
  CHECK(kvq_out({"scan"}, temp / "db") == "1\tone\n2\ttwo\n3\tthree\n4\tfour\n");
  feed(engine, temp / "db", "five\n");
  CHECK(kvq_out({"audit"}, temp / "db").find("\nbalanced\n") != std::string::npos);
}

TEST_CASE("messages are imported by the store's own format and columns, and bad ones are kept as rejects") {
  const TempDir temp;
  const std::string engine = test::persistent_engines().front();
  feed(engine, temp / "db", "symbol,close\nA,1\n", {"--format", "csv", "--header", "--key", "{symbol}/{seq}"});
  test::write_text(temp / "more", "B,2\r\nbad\nC,3\n");
  const Finished done = test::kvq({"import", (temp / "more").native(), "--format", "messages"}, temp / "db");
  CHECK(done.exit.code == 1);
  CHECK(done.out == "received 3  stored 2  rejected 1  blank 0\n");
  CHECK(kvq_out({"scan"}, temp / "db") ==
        "A/00000000000000000001\tA,1\nB/00000000000000000002\tB,2\nC/00000000000000000003\tC,3\n");
  const std::string list = kvq_out({"rejects", "list"}, temp / "db");
  CHECK(list.starts_with("1\t@import\t2\t5\t" + (temp / "more").native() + "\tbad_csv\t3\t"));
  CHECK(kvq_out({"audit"}, temp / "db").find("\nbalanced\n") != std::string::npos);
  const Finished rows = test::kvq({"import", (temp / "more").native()}, temp / "db");
  CHECK(rows.exit.code == 1);
  CHECK(rows.err.find("--format messages") != std::string::npos);
}

TEST_CASE("rows that are none are rejected with their line, and the rows around them are stored") {
  const TempDir temp;
  const std::string engine = test::persistent_engines().front();
  feed(engine, temp / "db", "", {"--format", "kv"});
  test::write_text(temp / "rows", "a\t1\nno tab\nb\\q\t2\n\t3\nc\t4\n" + std::string(600, 'k') + "\t5\n");
  const Finished done = test::kvq({"import", (temp / "rows").native(), "--json"}, temp / "db");
  CHECK(done.exit.code == 1);
  const Json report = Json::parse(done.out);
  CHECK(report["stored"].number() == 2);
  CHECK(report["rejected"].number() == 4);
  CHECK(kvq_out({"scan"}, temp / "db") == "a\t1\nc\t4\n");
  CHECK(test::kvq({"import", "/no/such/file"}, temp / "db").err.find("/no/such/file") != std::string::npos);
}

TEST_CASE("deleted records are gone and counted, on every engine, whatever the key") {
  for (const std::string& engine : test::persistent_engines()) {
    for (const char* key : {"{seq}", "{line}/{seq}", "{line}"}) {
      INFO(engine << " " << key);
      const TempDir temp;
      const auto dir = temp / "db";
      feed(engine, dir, test::numbered_lines(2'500, "n"), {"--key", key, "--durability", "kernel"});
      const bool seq = std::string(key) == "{seq}";
      CHECK(kvq_out(seq ? std::vector<std::string>{"delete", "--from", "100", "--to", "1900"}
                        : std::vector<std::string>{"delete", "--prefix", "n 1"},
                    dir) == fmt::format("erased {}\n", seq ? 1'800 : 1'111));
      CHECK(kvq_out({"count"}, dir) == fmt::format("{}\n", seq ? 700 : 1'389));
      const Json audit = Json::parse(kvq_out({"audit", "--json"}, dir));
      CHECK(audit["balanced"].text() == "true");
      CHECK(audit["erased"].number() == (seq ? 1'800 : 1'111));
      feed(engine, dir, "more\n", {"--key", key});
      CHECK(kvq_out({"audit"}, dir).find("\nbalanced\n") != std::string::npos);
    }
  }
}

TEST_CASE("a delete that names nothing is wrong usage, and one of nothing erases nothing") {
  const TempDir temp;
  test::write_numbered(test::persistent_engines().front(), temp / "db", 3);
  CHECK(test::kvq({"delete"}, temp / "db").exit.code == 2);
  CHECK(kvq_out({"delete", "--from", "7", "--json"}, temp / "db") == "{\"erased\":0}\n");
  CHECK(kvq_out({"count"}, temp / "db") == "3\n");
}

}  // namespace
}  // namespace kvingest::query
