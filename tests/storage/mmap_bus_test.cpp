// A segment that is cut while the store has it mapped: an error where the store itself copies or checks, one clear line
// and the end of the process where a visitor reads, and never a wrong value.
#include <csignal>
#include <string>

#include "tests/storage/mmap_fixture.hpp"

namespace kvingest::test {
namespace {

constexpr std::uint64_t kPage = 4096;

TEST_CASE("mmap: a segment cut under a store that writes through the mapping fails the write, and the store") {
  MmapDir dir(EngineOptions{{"write", "map"}});
  auto store = dir.open();
  REQUIRE(put(*store, "a", std::string(100, 'a')));
  std::filesystem::resize_file(dir.segment(1), kPage);
  const auto written = put(*store, "b", std::string(50'000, 'b'));
  REQUIRE_CODE(written, Code::failed);
  CHECK(written.error().text.find("000001.log") != std::string::npos);
  CHECK_CODE(put(*store, "c", "c"), Code::failed);
  CHECK_CODE(store->close(), Code::failed);
}

TEST_CASE("mmap: verify and compaction say which segment was cut under the running store") {
  MmapDir dir(EngineOptions{{"segment", "64K"}});
  auto store = dir.open();
  for (int i = 0; i < 30; ++i) REQUIRE(put(*store, "key" + std::to_string(i), std::string(5000, 'v')));
  WriteBatch erase;
  for (int i = 0; i < 8; ++i) erase.erase("key" + std::to_string(i));
  REQUIRE(store->write(erase, Durability::disk));
  CHECK(store->verify());
  std::filesystem::resize_file(dir.segment(1), kPage);
  const auto verified = store->verify();
  REQUIRE_CODE(verified, Code::corrupt);
  CHECK(verified.error().text.find("000001.log") != std::string::npos);
  const auto compacted = store->compact();
  REQUIRE_CODE(compacted, Code::corrupt);
  CHECK(compacted.error().text.find("000001.log") != std::string::npos);
  CHECK(value_of(*store, "key29") == std::string(5000, 'v'));
}

TEST_CASE("mmap: who reads a value from a segment that was cut ends with exit code 3 and one line that names it") {
  const TempDir dir;
  EngineProcess reader("mmap", dir.path(), Opening::fresh, "segment=1M,index=16M");
  REQUIRE(reader.ask("put key 0 100 1000 disk") == "ok");
  CHECK(reader.ask("verify") == "100");
  std::filesystem::resize_file(dir / "000001.log", kPage);
  CHECK(reader.ask("verify") == "corrupt");
  reader.tell("get key00000099");
  CHECK(reader.process().finish() == Exit{3, 0});
  const std::string said = reader.process().err_text();
  CHECK(said.find("000001.log: the file was cut") != std::string::npos);
}

#ifndef KVINGEST_SANITIZED  // A sanitizer has a handler of its own, which ends the process in its way.
TEST_CASE("mmap: a bus error that is none of the store's ends the process as ever") {
  const TempDir dir;
  EngineProcess other("mmap", dir.path(), Opening::fresh, "index=16M");
  ::kill(other.process().pid(), SIGBUS);
  CHECK(other.process().finish().signal == SIGBUS);
}
#endif

}  // namespace
}  // namespace kvingest::test
