// The experiments that the project began with, each run small, and what they count.
#include <map>
#include <set>

#include "bench/page_file.hpp"
#include "bench/seed_objects.hpp"
#include "kvingest/ingest.hpp"
#include "net/line_cutter.hpp"
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

/// Variants of each workload of a run of one part, every figure of it above 0.
std::map<std::string, std::set<std::string>> run_part(const std::string& part, const std::string& items,
                                                      const std::string& metric) {
  const TempDir dir;
  const Finished done = test::run({program("kvbench"), "seed", "--part", part, "--items", items, "--repeat", "1",
                                   "--quiet", "--out", (dir / "out").string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  CHECK(test::widest_line(done.out) <= 100);
  const Json json = Json::parse(file_text(dir / "out" / "results.json"));
  std::map<std::string, std::set<std::string>> variants;
  for (std::size_t i = 0; i < json["results"].size(); ++i) {
    const Json& row = json["results"][i];
    CAPTURE(row["workload"].text(), row["metric"].text());
    CHECK_FALSE(row.contains("error"));
    if (row["metric"].text() != metric || row.contains("missing")) continue;
    CHECK(std::stod(row["value"].text()) > 0);
    variants[row["workload"].text()].insert(row["params"]["variant"].text());
  }
  return variants;
}

TEST_CASE("seed runs small: ten integers in containers and stores") {
  auto variants = run_part("intstore", "100", "ns_per_op");
  const std::set<std::string> all = {"array",         "std::map",   "std::unordered_map",
                                     "flat_hash_map", "store hash", "store map"};
  for (const char* workload : {"intstore set", "intstore update", "intstore get"}) CHECK(variants[workload] == all);
}

TEST_CASE("seed runs small: records to their places in a file") {
  auto variants = run_part("seekwrite", "20", "ns_per_record");
  CHECK(variants["seekwrite, in a row"].size() == 9);
  CHECK(variants["seekwrite, ten places"].count("pwrite, fdatasync every 10") == 1);
}

TEST_CASE("seed runs small: a feed that pauses") {
  auto variants = run_part("sender", "50", "ns_per_send");
  CHECK(variants["sender, discard"].size() == 4);
  CHECK(variants["sender, kvingest, null"].count("256 lines, pause of 1 us") == 1);
}

TEST_CASE("seed runs small: pages of a mapping") {
  auto variants = run_part("pages", "64", "ns_per_page");
  CHECK(variants["touching pages"].size() == 12);
  if (variants.count("reading around a limit") == 1)  // Where groups with a bound of memory may be made.
    CHECK(variants["reading around a limit"].count("mmap") == 1);
}

TEST_CASE("seed runs small: trees and hash tables by share of reads") {
  auto variants = run_part("maps", "100", "ns_per_op");
  CHECK(variants["maps"] == std::set<std::string>{"std::map", "btree_map", "std::unordered_map", "flat_hash_map"});
}

TEST_CASE("seed runs small: calls and objects") {
  auto variants = run_part("calls", "1", "ns_per_call");
  for (const char* call : {"direct", "virtual", "through a virtual base", "function reference", "std::function"})
    CHECK(variants["calls"].count(call) == 1);
  CHECK(variants["objects"].count("make_shared") == 1);
}

TEST_CASE("a part of another suite is refused") {
  const TempDir dir;
  const Finished done = test::run(
      {program("kvbench"), "seed", "--part", "engines", "--items", "10", "--quiet", "--out", (dir / "out").string()});
  CHECK(done.exit == Exit{1});
  CHECK(done.err.find("--part engines is a part of stores") != std::string::npos);
}

TEST_CASE("handing an object on copies and moves it as often as it must") {
  std::map<std::string, Handled> ways;
  for (const HandingOn& way : ways_of_handing_on()) ways[way.name] = way.handled;
  CHECK(ways.at("made in place") == Handled{0, 0});
  CHECK(ways.at("by reference") == Handled{0, 0});
  CHECK(ways.at("by value") == Handled{1, 0});
  CHECK(ways.at("by value, moved") == Handled{0, 1});
  CHECK(ways.at("by value, made in place") == Handled{0, 0});
  CHECK(ways.at("push_back") == Handled{1, 0});
  CHECK(ways.at("emplace_back") == Handled{0, 0});
  CHECK(ways.at("a growing vector of 4").copies == 0);  // Its move constructor does not throw.
  CHECK(ways.at("captured by reference, called through FunctionRef") == Handled{0, 0});
}

/// Puts each line into a batch, and says whether it was seen where it was received.
struct BatchSink {
  std::string_view received;
  WriteBatch batch;
  bool is_in_place = true;

  bool line(std::string_view text, std::uint64_t) {
    is_in_place =
        is_in_place && text.data() >= received.data() && text.data() + text.size() <= received.data() + received.size();
    batch.put_next(text);
    return true;
  }
  static bool long_line(const net::LongMessage&, std::uint64_t) { return true; }
};

TEST_CASE("between the socket and the committer a line is copied once, into its batch") {
  const std::string received = "one\ntwo\nthree\n";
  BatchSink sink{.received = received, .batch = {}};
  net::LineCutter cutter(1'024);
  REQUIRE(cutter.cut(received, sink) == received.size());
  CHECK(sink.is_in_place);
  CHECK(sink.batch.puts() == 3);
  // From there on the batch is handed on, and its bytes stay where they are.
  const char* const bytes = sink.batch.bytes().data();
  auto parcel = std::make_unique<Parcel>();
  parcel->batch = std::move(sink.batch);
  const std::unique_ptr<Parcel> taken = std::move(parcel);
  CHECK(taken->batch.bytes().data() == bytes);
}

TEST_CASE("the parts of an object are made from its virtual base to its members, and destroyed in the other order") {
  CHECK(trace_of_construction() == std::vector<std::string>{"+virtual base", "+base", "is a base", "+other base",
                                                            "+member", "+whole", "is whole", "-member", "-other base",
                                                            "-base", "-virtual base"});
}

TEST_CASE("objects take the room that their virtual functions and bases need") {
  std::map<std::string, std::size_t> sizes;
  for (const ObjectSize& size : object_sizes()) sizes[size.name] = size.bytes;
  CHECK(sizes.at("an int") == sizeof(int));
  CHECK(sizes.at("an int, virtual functions") == 2 * sizeof(void*));
  CHECK(sizes.at("two ints, virtual functions") == 2 * sizeof(void*));
  CHECK(sizes.at("FunctionRef") == 2 * sizeof(void*));
  CHECK(sizes.at("an int, two interfaces") > sizes.at("an int, virtual functions"));
}

TEST_CASE("pages are read as they were written, through a mapping and by calls") {
  const TempDir dir;
  constexpr std::uint64_t kPages = 300;
  const auto file = make_page_file(dir / "pages", kPages);
  REQUIRE(file);
  const auto mapping = Mapping::map(*file, kPages * kPageBytes, false);
  REQUIRE(mapping);
  CHECK(mapping->touch_all() == kPages * (kPages - 1) / 2);
  CHECK(mapping->residency() == 1);
  for (const char* way : {"mmap", "pread"}) {
    const auto read = read_pages(dir / "pages", way, 50, {});
    REQUIRE(read);
    CHECK(read->ns_per_page > 0);
  }
  CHECK_FALSE(read_pages(dir / "nothing", "pread", 1, {}));
}

}  // namespace
}  // namespace kvingest::bench
