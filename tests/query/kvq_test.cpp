// kvq as a process, on stores of every persistent engine of this build, written by this test.
#include <filesystem>
#include <fstream>
#include <map>

#include "kvingest/engine.hpp"
#include "record/text_escape.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;
using test::created;
using test::Finished;
using test::Json;
using test::kvq;
using test::kvq_out;
using test::persistent_engines;
using test::TempDir;
using test::write_numbered;

/// Every file of a directory with its content; without LMDB's table of readers, which readers write.
std::map<std::string, std::string> content_of(const std::filesystem::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().filename() != "lock.mdb")
      files[entry.path().native()] = test::file_text(entry.path());
  }
  return files;
}

TEST_CASE("numbers are keys of a {seq} store, shown and taken, on every engine") {
  for (const std::string& engine : persistent_engines()) {
    INFO(engine);
    const TempDir temp;
    const auto dir = temp / "db";
    write_numbered(engine, dir, 300);
    CHECK(kvq_out({"count"}, dir) == "300\n");
    CHECK(kvq_out({"get", "256"}, dir) == "value 256");
    CHECK(kvq_out({"tail", "-n", "2"}, dir) == "299\tvalue 299\n300\tvalue 300\n");
    CHECK(kvq_out({"scan", "--from", "255", "--to", "258"}, dir) == "255\tvalue 255\n256\tvalue 256\n257\tvalue 257\n");
    CHECK(kvq_out({"scan", "--limit", "2", "--reverse"}, dir) == "300\tvalue 300\n299\tvalue 299\n");
    CHECK(kvq({"get", "301"}, dir).exit.code == 1);
  }
}

TEST_CASE("a tail longer than the store and one of nothing are whole and empty") {
  const TempDir temp;
  write_numbered(persistent_engines().front(), temp / "db", 3);
  CHECK(kvq_out({"tail", "-n", "100"}, temp / "db") == "1\tvalue 1\n2\tvalue 2\n3\tvalue 3\n");
  CHECK(kvq_out({"tail", "-n", "0"}, temp / "db").empty());
}

TEST_CASE("an empty store has no rows") {
  const TempDir temp;
  write_numbered(persistent_engines().front(), temp / "db", 0);
  CHECK(kvq_out({"count"}, temp / "db") == "0\n");
  CHECK(kvq_out({"scan"}, temp / "db").empty());
  CHECK(kvq_out({"tail"}, temp / "db").empty());
  CHECK(Json::parse(kvq_out({"scan", "--json"}, temp / "db"))["records"].size() == 0);
}

TEST_CASE("any byte may be in a key or value, is shown escaped, and taken so") {
  const TempDir temp;
  const auto dir = temp / "db";
  const std::vector<std::pair<std::string, std::string>> records = {
      {"\0\x01"s, "\0binary\xFF"s},
      {"12345678", "digits"},
      {"a\tb\nc\rd\\e", "tab\tLF\nCR\r\\"},
      {"é€", "text é"},
      {"\xFF", ""},
  };
  const auto store = created(persistent_engines().front(), dir, {{"key", "{key}"}});
  WriteBatch batch;
  for (const auto& [key, value] : records) batch.put(key, value);
  REQUIRE_OK(store->write(batch, Durability::disk));
  REQUIRE_OK(store->close());
  CHECK(kvq_out({"scan"}, dir) ==
        "\\x00\\x01\t\\x00binary\\xff\n"
        "12345678\tdigits\n"
        "a\\tb\\nc\\rd\\\\e\ttab\\tLF\\nCR\\r\\\\\n"
        "é€\ttext é\n"
        "\\xff\t\n");
  for (const auto& [key, value] : records) CHECK(kvq_out({"get", escaped(key)}, dir) == value);
  CHECK(kvq_out({"scan", "--prefix", "\\xff"}, dir) == "\\xff\t\n");
  CHECK(kvq_out({"scan", "--from", "\\x00\\x02", "--to", "é"}, dir).starts_with("12345678\t"));
}

TEST_CASE("with --json every command prints one object") {
  const TempDir temp;
  const auto dir = temp / "db";
  write_numbered(persistent_engines().front(), dir, 3);
  CHECK(Json::parse(kvq_out({"count", "--json"}, dir))["count"].number() == 3);
  const Json rows = Json::parse(kvq_out({"scan", "--json"}, dir));
  REQUIRE(rows["records"].size() == 3);
  CHECK(rows["records"][1]["key"].number() == 2);
  CHECK(rows["records"][1]["value"].text() == "value 2");
  CHECK(Json::parse(kvq_out({"get", "2", "--json"}, dir))["value"].text() == "value 2");
  CHECK(Json::parse(kvq_out({"stats", "--json"}, dir))["labels"]["key"].text() == "{seq}");
  CHECK(Json::parse(kvq_out({"verify", "--json"}, dir))["records"].number() >= 3);
}

TEST_CASE("stats names the engine and what the marker says") {
  for (const std::string& engine : persistent_engines()) {
    const TempDir temp;
    write_numbered(engine, temp / "db", 3);
    const std::string out = kvq_out({"stats"}, temp / "db");
    CHECK(out.find(engine) != std::string::npos);
    CHECK(out.find("{seq}") != std::string::npos);
  }
}

TEST_CASE("reading changes nothing in the directory, on every engine") {
  for (const std::string& engine : persistent_engines()) {
    INFO(engine);
    const TempDir temp;
    write_numbered(engine, temp / "db", 100);
    const auto before = content_of(temp / "db");
    for (const char* command : {"count", "scan", "stats", "verify", "tail"}) kvq_out({command}, temp / "db");
    CHECK(content_of(temp / "db") == before);
  }
}

TEST_CASE("damage to a record ends verify with 1 and the file's name") {
  for (const std::string engine : {"file", "mmap"}) {
    if (!parse_store_spec(engine)) continue;
    INFO(engine);
    const TempDir temp;
    write_numbered(engine, temp / "db", 2'000);
    std::filesystem::path damaged;
    for (const auto& [path, bytes] : content_of(temp / "db")) {
      const auto at = bytes.find("value 777");
      if (at == std::string::npos) continue;
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(at + 3));
      file.put('#');
      damaged = path;
    }
    REQUIRE_FALSE(damaged.empty());
    const Finished done = kvq({"verify"}, temp / "db");
    CHECK(done.exit.code == 1);
    CHECK((done.out + done.err).find(damaged.filename().native()) != std::string::npos);
  }
}

TEST_CASE("a store in use is read where the engine allows it, else the message names the process") {
  for (const Engine* engine : engines()) {
    if (!engine->persistent || !engine->missing.empty()) continue;
    INFO(engine->name);
    const TempDir temp;
    write_numbered(std::string(engine->name), temp / "db", 3);
    const auto store = open_store({.dir = temp / "db"});
    REQUIRE_OK(store);
    const Finished done = kvq({"count"}, temp / "db");
    if (engine->shared_readers) {
      CHECK(done.exit.code == 0);
      CHECK(done.out == "3\n");
    } else {
      CHECK(done.exit.code == 3);
      CHECK(done.err.find(std::to_string(::getpid())) != std::string::npos);
    }
  }
}

TEST_CASE("wrong usage ends with 2, a store that is not there with 3") {
  const TempDir temp;
  write_numbered(persistent_engines().front(), temp / "db", 3);
  CHECK(kvq({"count"}, temp / "nothing").exit.code == 3);
  CHECK(kvq({"count"}, temp.path()).exit.code == 3);
  CHECK(kvq({"cuont"}, temp / "db").exit.code == 2);
  CHECK(kvq({"get"}, temp / "db").exit.code == 2);
  CHECK(kvq({"scan", "--limt", "3"}, temp / "db").exit.code == 2);
  CHECK(kvq({"scan", "--limit", "x"}, temp / "db").exit.code == 2);
  CHECK(kvq({"scan", "--prefix", "\\q"}, temp / "db").exit.code == 2);
  CHECK(kvq({"get", "72057594037927936"}, temp / "db").exit.code == 2);
  CHECK(test::run({test::program("kvq")}).exit.code == 2);
}

TEST_CASE("a reader that leaves ends kvq quietly, and a full disk does not") {
  const TempDir temp;
  write_numbered(persistent_engines().front(), temp / "db", 20'000);
  const std::string scan = test::program("kvq") + " scan --dir " + (temp / "db").native();
  const Finished piped = test::run({"sh", "-c", "{ " + scan + "; echo $? >&2; } | head -n 1"});
  CHECK(piped.out == "1\tvalue 1\n");
  CHECK(piped.err == "0\n");
  const Finished full = test::run({"sh", "-c", scan + " >/dev/full"});
  CHECK(full.exit.code == 1);
  CHECK(full.err.find("No space left") != std::string::npos);
}

}  // namespace
}  // namespace kvingest
