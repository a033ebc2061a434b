// The net suite run small, and its ways of sending and receiving.
#include <map>
#include <set>

#include "base/thread.hpp"
#include "bench/net_ways.hpp"
#include "tests/bench/widest_line.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/json.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::bench {
namespace {

using test::Exit;
using test::file_text;
using test::Finished;
using test::Json;
using test::program;
using test::TempDir;

Placement anywhere() {
  const auto cpus = allowed_cpus();
  REQUIRE(cpus);
  return {cpus->front(), cpus->back()};
}

TEST_CASE("each way of receiving gets all that was sent, and the one that counts finds every line") {
  constexpr std::uint64_t kBytes = 1'000'003;
  std::uint64_t counted = 0;
  for (const ReceiveWay& way : receive_ways()) {
    CAPTURE(way.name);
    const auto lines = send_and_discard(way, kBytes, anywhere());
    if (!lines) FAIL(lines.error().text);
    CHECK((*lines > 0) == (way.kind == ReceiveKind::count));
    counted += *lines;
  }
  CHECK(counted > kBytes / 30);
}

TEST_CASE("streams of values of any length arrive as they were sent") {
  const ValueAt value_at = [](std::uint64_t i) { return static_cast<std::uint32_t>(i * i); };
  for (const codec::Form form : {codec::Form::leb128, codec::Form::stop_bit, codec::Form::fixed}) {
    for (const std::uint64_t count : {1U, 65'536U, 65'537U, 200'000U}) {
      CAPTURE(count);
      const auto streamed = stream_values(form, value_at, count, anywhere());
      if (!streamed) FAIL(streamed.error().text);
      CHECK(streamed->bytes > count);
    }
  }
}

TEST_CASE("net runs small: receiving, codecs as a share of it, and streams") {
  const TempDir dir;
  const Finished done = test::run(
      {program("kvbench"), "net", "--items", "2000", "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(test::widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> variants;  // By metric and workload.
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CHECK_FALSE(row.contains("error"));
    if (row.contains("missing")) continue;
    CHECK(std::stod(row["value"].text()) > 0);
    variants[row["metric"].text() + " " + row["workload"].text()].insert(row["params"]["variant"].text());
  }
  CHECK(variants["ns_per_KiB receive and discard"].size() == receive_ways().size());
  for (const char* values : {"0..127", "1..n", "1<<29"}) {
    const auto& shares = variants[std::string("ratio_to_network_limit share of the network, ") + values];
    for (const char* way : {"leb128", "stop_bit", "fixed", "memcpy"}) CHECK(shares.count(way) == 1);
    CHECK(variants[std::string("ns_per_streamed stream, ") + values].size() == 3);
  }
}

TEST_CASE("streams that do not fit the time budget are refused before they begin") {
  const TempDir dir;
  const Finished done = test::run({program("kvbench"), "net", "--items", "10000000000", "--time-budget", "2s",
                                   "--repeat", "1", "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(done.out.find("10,000,000,000 values take about ") != std::string::npos);
  CHECK(done.out.find("and --time-budget leaves ") != std::string::npos);
  CHECK(file_text(dir / "out" / "results.json").find("\"missing\":\"10,000,000,000 values") != std::string::npos);
}

}  // namespace
}  // namespace kvingest::bench
