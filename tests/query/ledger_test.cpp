// audit and rejects on stores that a real kvingest filled.
#include "kvingest/ledger.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "query/audit.hpp"
#include "record/seq_in_key.hpp"
#include "tests/query/stores.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/json.hpp"
#include "tests/support/service.hpp"

namespace kvingest::query {
namespace {

using namespace std::string_literals;
using test::Finished;
using test::Json;
using test::TempDir;

/// Feeds `lines` to a new store in `dir`.
void feed(const std::filesystem::path& dir, const std::string& lines, std::vector<std::string> args) {
  test::Service service({.store = test::persistent_engines().front(), .dir = dir, .args = std::move(args)});
  CHECK(service.sync(lines).word == "synced");
  service.stop();
}

/// Changes a store behind its ledger's back.
void tamper(const std::filesystem::path& dir, void (*change)(WriteBatch&)) {
  const auto store = open_store({.dir = dir});
  REQUIRE_OK(store);
  WriteBatch batch;
  change(batch);
  REQUIRE_OK((*store)->write(batch, Durability::disk));
  REQUIRE_OK((*store)->close());
}

std::string audit_of(const std::filesystem::path& dir, int exit_code) {
  const Finished done = test::kvq({"audit"}, dir);
  INFO(done.err);
  CHECK(done.exit.code == exit_code);
  return done.out;
}

std::optional<std::uint64_t> seq_of(std::string_view key_template, std::string_view key) {
  return SeqInKey::of(key_template)->find(key);
}

TEST_CASE("the number is found wherever the template puts it") {
  CHECK(seq_of("{seq}", "\0\0\0\0\0\0\0\x05"s) == 5);
  CHECK(seq_of("k/{seq}", "k/00000000000000000005") == 5);
  CHECK(seq_of("{seq}/{symbol}", "00000000000000000005/AAPL") == 5);
  CHECK(seq_of("{symbol}/{seq}", "a/b/c/00000000000000000005") == 5);
  CHECK(seq_of("{symbol}/{seq}.x", "AAPL/00000000000000000005.x") == 5);
  CHECK(seq_of("{n:03}{seq}{symbol}", "12300000000000000000005AAPL") == 5);
  CHECK(seq_of("{seq}", "name") == std::nullopt);
  CHECK(seq_of("k/{seq}", "k/5") == std::nullopt);
  CHECK(seq_of("k/{seq}", "k/0000000000000000000x") == std::nullopt);
  CHECK_FALSE(SeqInKey::of("{a}{seq}{b}")->is_known());
  CHECK_FALSE(SeqInKey::of("{symbol}")->is_known());
  CHECK(SeqInKey::of("k/{seq}")->leads());
  CHECK_FALSE(SeqInKey::of("{symbol}/{seq}")->leads());
}

TEST_CASE("what a feed stored balances, whatever the key") {
  for (const char* key : {"{seq}", "k/{seq}", "{line}/{seq}", "{line}", "{line}{seq}{line}"}) {
    INFO(key);
    const TempDir temp;
    feed(temp / "db", "a\nb\n\na\nc\n", {"--key", key});
    CHECK(audit_of(temp / "db", 0).find("\nbalanced\n") != std::string::npos);
  }
}

TEST_CASE("keys that came again are counted as overwritten") {
  const TempDir temp;
  feed(temp / "db", "a\nb\na\na\n", {"--key", "{line}"});
  const Json audit = Json::parse(test::kvq_out({"audit", "--json"}, temp / "db"));
  CHECK(audit["balanced"].text() == "true");
  CHECK(audit["records"].number() == 2);
  CHECK(audit["overwritten"].number() == 2);
  CHECK(audit["stored"].number() == 4);
}

TEST_CASE("a record that is gone, one too many, and a number never given are differences") {
  const auto tampered = [](const char* key, void (*change)(WriteBatch&)) {
    const TempDir temp;
    feed(temp / "db", "a\nb\nc\n", {"--key", key});
    tamper(temp / "db", change);
    return audit_of(temp / "db", 1);
  };
  CHECK(tampered("{seq}", [](WriteBatch& batch) {
          batch.erase("\0\0\0\0\0\0\0\x02"s);
        }).find("stored 3, erased 0 and expired 0, but 2 numbered records") != std::string::npos);
  CHECK(tampered("k/{seq}", [](WriteBatch& batch) { batch.put("k/00000000000000000009", "x"); }).find("never given") !=
        std::string::npos);
  CHECK(tampered("{line}/{seq}", [](WriteBatch& batch) {
          batch.erase("a/00000000000000000001");
          batch.put("z/00000000000000000002", "x");
        }).find("another key holds") != std::string::npos);
  CHECK(tampered("{line}", [](WriteBatch& batch) {
          batch.put("x", "y"), batch.put("z", "");
        }).find("stored 3, erased 0 and expired 0, but 5 records") != std::string::npos);
}

TEST_CASE("a reject that is gone and a tally that does not add up are differences") {
  const TempDir temp;
  feed(temp / "db", "k=v\nbad\n", {"--format", "kv"});
  CHECK(audit_of(temp / "db", 0).find("rejects kept 1") != std::string::npos);
  tamper(temp / "db", [](WriteBatch& batch) { batch.erase_meta(reject_key(1)); });
  CHECK(audit_of(temp / "db", 1).find("rejected 1, but 0 rejects") != std::string::npos);
  tamper(temp / "db", [](WriteBatch& batch) {
    batch.put_meta(source_key("@"),
                   SourceRecord{.line = 0, .total = {.received = 9, .stored = 1, .rejected = 1}}.encode());
  });
  CHECK(audit_of(temp / "db", 1).find("received 9, but its classes add up to 2") != std::string::npos);
}

TEST_CASE("rejects are listed with where they came from, and exported byte for byte") {
  const TempDir temp;
  const std::string bad = "{\"symbol\":\"A\",\"price\":\0 oops"s;
  feed(temp / "db", "{\"symbol\":\"A\"}\n" + bad + "\n{\"p\":2}\n", {"--format", "json", "--key", "{symbol}/{seq}"});
  CHECK(test::kvq_out({"rejects", "export"}, temp / "db") == bad + "\n{\"p\":2}\n");
  const Json list = Json::parse(test::kvq_out({"rejects", "list", "--json"}, temp / "db"))["rejects"];
  REQUIRE(list.size() == 2);
  CHECK(list[0]["reason"].text() == "bad_json");
  CHECK(list[0]["line"].number() == 2);
  CHECK(list[0]["offset"].number() == 15);
  CHECK(list[1]["reason"].text() == "missing_field");
  CHECK(list[1]["source"].text() == "@");
  const std::string text = test::kvq_out({"rejects", "list"}, temp / "db");
  CHECK(text.starts_with("1\t@\t2\t15\t127.0.0.1:"));
  // XXH3 of the whole message, which is all that is known of the rest of one that was too long to keep.
  const std::string checksum = fmt::format("{:016x}", XXH3_64bits(bad.data(), bad.size()));
  CHECK(list[0]["xxh3"].text() == checksum);
  CHECK(text.find("\tbad_json\t" + std::to_string(bad.size()) + "\t" + checksum + "\t") != std::string::npos);
}

TEST_CASE("replay stores what has become good, once, and the ledger moves with it") {
  const TempDir temp;
  const auto dir = temp / "db";
  const std::string columns_wrong = "A,1\nB,2\n\nC\n\"open\n";
  feed(dir, columns_wrong, {"--format", "csv", "--columns", "a,b,c", "--key", "{a}/{seq}"});
  CHECK(test::kvq_out({"count"}, dir) == "0\n");
  CHECK(test::kvq_out({"rejects", "replay"}, dir) == "stored 0  blank 0  rejected again 4  truncated 0\n");
  CHECK(test::kvq_out({"rejects", "replay", "--columns", "a,b"}, dir) ==
        "stored 2  blank 0  rejected again 2  truncated 0\n");
  CHECK(test::kvq_out({"scan"}, dir) == "A/00000000000000000001\tA,1\nB/00000000000000000002\tB,2\n");
  CHECK(test::kvq_out({"rejects", "export"}, dir) == "C\n\"open\n");
  CHECK(test::kvq_out({"rejects", "replay", "--columns", "a,b"}, dir) ==
        "stored 0  blank 0  rejected again 2  truncated 0\n");
  const Json audit = Json::parse(test::kvq_out({"audit", "--json"}, dir));
  CHECK(audit["received"].number() == 5);
  CHECK(audit["stored"].number() == 2);
  CHECK(audit["rejected"].number() == 2);
  CHECK(audit["blank"].number() == 1);
}

TEST_CASE("of a message that was cut off nothing is replayed") {
  const TempDir temp;
  const auto dir = temp / "db";
  feed(dir, "good=1\n" + std::string(100'000, 'x') + "=\n", {"--format", "kv", "--max-line", "10K"});
  CHECK(test::kvq_out({"rejects", "replay"}, dir) == "stored 0  blank 0  rejected again 0  truncated 1\n");
  CHECK(test::kvq_out({"rejects", "export"}, dir).size() == 65'537);
  audit_of(dir, 0);
}

TEST_CASE("an unknown action on rejects is wrong usage") {
  const TempDir temp;
  test::write_numbered(test::persistent_engines().front(), temp / "db", 1);
  CHECK(test::kvq({"rejects", "remove"}, temp / "db").exit.code == 2);
  CHECK(test::kvq({"rejects"}, temp / "db").exit.code == 2);
}

}  // namespace
}  // namespace kvingest::query
