// The list of engines itself.
#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

TEST_CASE("every engine is listed once, in the order people read it") {
  const std::vector<std::string_view> wanted{"null", "hash", "map", "file", "mmap", "lmdb", "rocksdb"};
  std::vector<std::string_view> names;
  for (const Engine* each : engines()) {
    names.push_back(each->name);
    CHECK_FALSE(each->summary.empty());
    CHECK(each->missing.empty() == (each->open != nullptr));
  }
  CHECK(names == wanted);
  CHECK(names.size() <= kEnginesMax);
}

TEST_CASE("only engines whose library was left out of the build are missing from it") {
  for (const Engine* each : engines()) {
    const bool left_out =
        (each->name == "lmdb" && KVINGEST_WITH_LMDB == 0) || (each->name == "rocksdb" && KVINGEST_WITH_ROCKSDB == 0);
    CAPTURE(each->name, each->missing);
    CHECK(each->missing.empty() != left_out);
    if (!left_out) continue;
    REQUIRE_CODE(parse_store_spec(each->name), Code::unsupported);
    CHECK(parse_store_spec(each->name).error().text.find(each->missing) != std::string::npos);
  }
}

}  // namespace
}  // namespace kvingest::test
