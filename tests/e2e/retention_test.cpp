// Retention, end to end: the oldest arrivals go, and the ledger says how many.
//
// World: a kvingest of this build on a store of the test's own; ages are short and what is waited for is the state.
#include <fmt/format.h>

#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

using namespace std::chrono_literals;

Json audit(const std::filesystem::path& dir) {
  const Finished done = run({program("kvq"), "audit", "--json", "--dir", dir.native()});
  CAPTURE(done.out, done.err);
  CHECK(done.exit.code == 0);
  return Json::parse(done.out);
}

std::uint64_t expired(const Service& service) {
  const std::string text = service.http_answer("/metrics");
  const std::string name = "\nkvingest_records_expired_total ";
  const std::size_t at = text.find(name);
  REQUIRE(at != std::string::npos);
  return std::stoull(text.substr(at + name.size()));
}

/// Bytes of keys and values of "TEXT N" lines from `first` to below `end` under 8-byte keys.
std::uint64_t bytes_of(std::uint64_t first, std::uint64_t end) {
  std::uint64_t bytes = 0;
  for (std::uint64_t n = first; n < end; ++n) bytes += 8 + fmt::format("Benchmark Message {}", n).size();
  return bytes;
}

ENGINE_SCENARIO(persistent, "beyond --retain-bytes the oldest records go, in this run and the next") {
  constexpr std::uint64_t kLines = 50'000;
  constexpr std::uint64_t kBytesMax = 400'000;
  for (const std::string level : {"disk", "kernel"}) {
    CAPTURE(level);
    std::filesystem::remove_all(subject.dir());
    const std::vector<std::string> args = {"--retain-bytes", std::to_string(kBytesMax), "--durability", level, "--http",
                                           "127.0.0.1:0"};
    std::uint64_t gone = 0;
    {
      Service service(service_on(subject, args));
      CHECK(service.sync(numbered_lines(kLines)).number("stored") == kLines);
      CHECK(eventually([&] {
        gone = expired(service);
        return bytes_of(gone, kLines) <= kBytesMax;
      }));
      CHECK(bytes_of(gone - 1, kLines) > kBytesMax);  // And no record more than that.
      check_balance(service.stop());
    }
    const Json first = audit(subject.dir());
    CHECK(first["expired"].number() == gone);
    CHECK(first["records"].number() == kLines - gone);
    CHECK(scan_values(subject.dir()).front() == fmt::format("Benchmark Message {}", gone));
    {
      Service service(service_on(subject, args));  // The count goes on where it was.
      CHECK(service.sync("x\n").number("stored") == 1);
      CHECK(eventually([&] { return expired(service) >= 1; }));
      service.kill();
    }
    audit(subject.dir());
    Service shorter(service_on(subject, {"--retain-bytes", "1000", "--http", "127.0.0.1:0"}));
    CHECK(eventually([&] { return expired(shorter) > 10'000; }));
    shorter.stop();
    CHECK(count_records(subject.dir()) < 40);
    audit(subject.dir());
  }
}

TEST_CASE("records older than --retain-age go by themselves, those of a run without it, too") {
  TempDir temp;
  {
    Service service({.store = "lmdb", .dir = temp / "db"});
    CHECK(service.sync(numbered_lines(100)).number("stored") == 100);
    service.stop();
  }
  Service service({.store = "lmdb", .dir = temp / "db", .args = {"--retain-age", "2s", "--http", "127.0.0.1:0"}});
  CHECK(service.sync("young\n").number("stored") == 1);
  CHECK(count_records(temp / "db") == 101);  // Not before its time.
  CHECK(eventually([&] { return expired(service) == 101; }));
  CHECK(count_records(temp / "db") == 0);
  CHECK(service.sync("younger\n").number("seq") == 102);
  CHECK(count_records(temp / "db") == 1);
  service.stop();
  CHECK(audit(temp / "db")["expired"].number() == 101);
}

TEST_CASE("records that were deleted or imported between two runs are counted again") {
  TempDir temp;
  const std::vector<std::string> args = {"--retain-bytes", "30000", "--http", "127.0.0.1:0"};
  {
    Service service({.store = "lmdb", .dir = temp / "db", .args = args});
    CHECK(service.sync(numbered_lines(1'000)).number("stored") == 1'000);
    service.stop();
  }
  CHECK(run({program("kvq"), "delete", "--from", "1", "--to", "501", "--dir", (temp / "db").native()}).exit.code == 0);
  Service service({.store = "lmdb", .dir = temp / "db", .args = args});
  CHECK(service.sync(numbered_lines(400)).number("stored") == 400);
  CHECK(expired(service) == 0);  // 900 records take less.
  service.stop();
  CHECK(count_records(temp / "db") == 900);
  audit(temp / "db");
}

TEST_CASE("retention is refused where the oldest records cannot be found") {
  TempDir temp;
  check_refused(run_kvingest({"--dir", (temp / "db").native(), "--key", "{line}/{seq}", "--retain-age", "1h"}), 2,
                "keys begin with {seq}");
  for (const std::string option : {"--retain-bytes", "--retain-age"}) {
    const Finished refused = run_kvingest({"--store", "hash", "--listen", "127.0.0.1:0", option, "1000"});
    check_refused(refused, 2, "no order");
    check_refused(refused, 2, "choose another store (--list-stores)");
  }
  for (const std::string store : {"null", "map"}) {
    Service service({.store = store, .args = {"--retain-bytes", "100", "--http", "127.0.0.1:0"}});
    CHECK(service.sync(numbered_lines(100)).number("stored") == 100);
    CHECK((store == "null" || eventually([&] { return expired(service) > 90; })));
    check_balance(service.stop());
  }
}

}  // namespace
}  // namespace kvingest::test
