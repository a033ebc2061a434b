// SCAN's patterns and cursors.
#include "net/resp_scan.hpp"

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

TEST_CASE("resp scan: patterns match as Redis has them") {
  CHECK(glob_match("*", ""));
  CHECK(glob_match("h?llo", "hello"));
  CHECK_FALSE(glob_match("h?llo", "hllo"));
  CHECK(glob_match("h*llo", "heeeello"));
  CHECK(glob_match("h[ae]llo", "hallo"));
  CHECK_FALSE(glob_match("h[^e]llo", "hello"));
  CHECK(glob_match("h[a-c]llo", "hbllo"));
  CHECK(glob_match("h[c-a]llo", "hbllo"));
  CHECK(glob_match("h\\*llo", "h*llo"));
  CHECK_FALSE(glob_match("h\\*llo", "hello"));
  CHECK(glob_match("[\\]]", "]"));
  CHECK(glob_match("*a*b*", "xxaxxbxx"));
  CHECK_FALSE(glob_match("", "a"));
  CHECK(glob_match("a[", "a[") == false);
}

TEST_CASE("resp scan: a pattern of many stars ends soon") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(glob_match(pattern + "b", std::string(20'000, 'a')));
}

TEST_CASE("resp scan: a pattern's literal beginning bounds the scan") {
  CHECK(glob_prefix("AAPL/*") == "AAPL/");
  CHECK(glob_prefix("a\\*b[cd]") == "a*b");
  CHECK(glob_prefix("*").empty());
}

TEST_CASE("resp scan: a cursor is never zero, fits into 52 bits and depends on its key alone") {
  CHECK(cursor_of("a") == cursor_of("a"));
  CHECK(cursor_of("a") != cursor_of("b"));
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t cursor = cursor_of(std::to_string(i));
    CHECK((cursor > 0 && cursor < (std::uint64_t{1} << 52U)));
  }
}

TEST_CASE("resp scan: recent cursors are remembered, and only so many") {
  ScanCursors cursors;
  const std::uint64_t first = cursors.keep("first");
  CHECK(cursors.find(first) == "first");
  for (int i = 0; i < 20'000; ++i) cursors.keep("k" + std::to_string(i));
  CHECK_FALSE(cursors.find(first));
  CHECK(cursors.find(cursor_of("k19999")) == "k19999");
}

}  // namespace
}  // namespace kvingest::net
