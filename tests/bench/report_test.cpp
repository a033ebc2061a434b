// Pages with pictures: what is drawn, that each picture has its data, that nothing is fetched, and how it looks.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "bench/pictures.hpp"
#include "bench/report.hpp"
#include "bench/results.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::bench {
namespace {

using test::Exit;
using test::file_text;
using test::Finished;
using test::program;
using test::TempDir;

TEST_CASE("each picture has the rows that may be compared, and no others") {
  Results results;
  const auto add = [&](const char* store, const char* level, const char* metric, std::vector<double> values) {
    Subject subject{.suite = "dbbench", .workload = "read", .store = store, .durability = level, .level = level};
    subject.variant = store;
    results.add(subject, metric, "ns", std::move(values));
  };
  add("lmdb", "kernel", "ns_per_op", {3, 1, 2});
  add("map", "memory", "ns_per_op", {5});
  add("file", "kernel", "ns_per_op", {4});
  add("file", "kernel", "bytes_per_op", {4});
  const std::vector<Picture> pictures = pictures_of(results);
  REQUIRE(pictures.size() == 2);
  CHECK(pictures[0].title == "dbbench: read at kernel");
  REQUIRE(pictures[0].bars.size() == 2);
  CHECK(pictures[0].bars[0].label == "lmdb");
  CHECK((pictures[0].bars[0].value == 2 && pictures[0].bars[0].least == 1 && pictures[0].bars[0].most == 3));
  CHECK(pictures[1].bars.size() == 1);
}

/// A run with everything that there are pictures of.
Results many_results() {
  Results results;
  results.command = "kvbench run --suite codec,ycsb --items 7 --quiet";
  results.machine.cpu = "a <processor> & \"more\"";
  results.tables = "a table\n";
  for (const char* way : {"leb128 simd", "protobuf"}) {
    for (const std::uint64_t values : {1'000U, 1'000'000U}) {
      Subject subject{.suite = "codec", .workload = "decode 0..127", .params = {{"values", values}}};
      subject.variant = way;
      results.add(subject, "ns_per_value", "ns", {0.5, 0.6, 0.55});
    }
  }
  for (const char* store : {"mmap", "lmdb"}) {
    Subject subject{.suite = "ycsb", .workload = "A", .store = store, .durability = "kernel", .level = "kernel"};
    results.add(subject, "ns_per_op", "ns", {std::string_view(store) == "mmap" ? 1'000.0 : 90'000.0});
    for (const char* picture : {"percentiles", "offered load", "by time", "share of reads", "dirty pages"}) {
      Series series{.subject = subject, .picture = picture, .line = store, .x = "x", .y = "y"};
      series.subject.workload = picture;
      series.log_x = series.log_y = std::string_view(picture) == "percentiles";
      for (int i = 0; i < 12; ++i) series.points.emplace_back(i, 10 * i * i);  // Nothing is at 0 of a logarithm.
      results.series.push_back(std::move(series));
    }
  }
  return results;
}

TEST_CASE("lines are drawn by share, load, time and size, and rows that have a line have no bar") {
  Results results = many_results();
  Subject subject{.suite = "ycsb", .workload = "percentiles"};
  results.add(subject, "ns_per_op", "ns", {1});
  std::set<std::string> titles;
  for (const Picture& picture : pictures_of(results)) {
    titles.insert(picture.title);
    CHECK(picture.bars.empty() != picture.lines.empty());
    for (const Line& line : picture.lines) CHECK(line.points.size() >= 2);
  }
  CHECK(titles == std::set<std::string>{"codec: decode 0..127, 1000 values", "codec: decode 0..127, 1000000 values",
                                        "codec: decode 0..127 by size", "ycsb: A at kernel", "percentiles",
                                        "offered load", "by time", "share of reads", "dirty pages"});
}

TEST_CASE("the command beside a picture runs its suite as the whole run did") {
  CHECK(command_of_suite("kvbench run --suite a,b --items 3", "a") == "kvbench a --items 3");
  CHECK(command_of_suite("kvbench run --items 3 --suite=a,b", "b") == "kvbench b --items 3");
  CHECK(command_of_suite("kvbench full --out d", "tree") == "kvbench tree --out d");
  CHECK(command_of_suite("kvbench tree", "tree") == "kvbench tree");
  CHECK(command_of_suite("kvbench --store all", "ingest") == "kvbench --store all");
  CHECK(command_of_suite("kvbench quick --repeat 1", "ingest") == "kvbench quick --repeat 1");
}

TEST_CASE("results are read back as they were written") {
  const TempDir dir;
  Results results = many_results();
  results.seed = 5;
  results.finished = {"codec", "ycsb"};
  results.probe.sync_4k_us = 17.5;
  results.add_failure({.suite = "s", .workload = "w"}, "rate", "1/s", "it broke");
  results.add_missing({.suite = "s", .workload = "w"}, "rate", "1/s", "not here");
  results.time = "2026-01-02T03:04:05Z";
  std::ofstream(dir / "results.json") << results.json();
  const auto read = read_results(dir / "results.json");
  REQUIRE(read);
  CHECK(read->json() == results.json());
  std::ofstream(dir / "other.json") << R"({"schema":1})";
  CHECK_FALSE(read_results(dir / "other.json"));
  CHECK_FALSE(read_results(dir / "nothing.json"));
}

TEST_CASE("the csv has a line for each value, and quotes what holds a comma") {
  Results results;
  Subject subject{.suite = "s", .workload = "a, \"b\"", .store = "map", .durability = "memory", .level = "memory"};
  subject.params = {{"keys", 3}, {"n", 4}};
  results.add(subject, "rate", "1/s", {1.5, 2});
  CHECK(results.csv() ==
        "suite,workload,store,durability,level,params,variant,metric,unit,repeat,value\n"
        "s,\"a, \"\"b\"\"\",map,memory,memory,keys=3 n=4,,rate,1/s,1,1.5\n"
        "s,\"a, \"\"b\"\"\",map,memory,memory,keys=3 n=4,,rate,1/s,2,2\n");
}

/// How wide the widest filled box of a drawing is.
double widest_box(const std::string& drawn) {
  double widest = 0;
  const std::string begins = "points = '";
  for (std::size_t at = drawn.find(begins); at != std::string::npos; at = drawn.find(begins, at + 1)) {
    std::istringstream points(drawn.substr(at + begins.size(), drawn.find('\'', at + begins.size()) - at));
    double least = 1e9;
    double most = 0;
    double x = 0;
    double y = 0;
    for (char comma = 0; points >> x >> comma >> y;) {
      least = std::min(least, x);
      most = std::max(most, x);
    }
    widest = std::max(widest, most - least);
  }
  return widest;
}

/// The page of many_results(), in `dir`, as `kvbench report` makes it.
std::string make_page(const TempDir& dir) {
  std::ofstream(dir / "results.json") << many_results().json();
  const Finished done = test::run({program("kvbench"), "report", dir.path().string()});
  INFO(done.err);
  REQUIRE(done.exit == Exit{0});
  return file_text(dir / "report.html");
}

TEST_CASE("every picture of a page has data, a table and a command, and nothing is fetched") {
  if (!find_gnuplot()) KV_SKIP("gnuplot is not installed");
  const TempDir dir;
  const std::string page = make_page(dir);
  std::size_t figures = 0;
  for (std::size_t at = page.find("<figure>"); at != std::string::npos; at = page.find("<figure>", at + 1)) {
    const std::string figure = page.substr(at, page.find("</figure>", at) - at);
    CAPTURE(figure.substr(0, 120));
    const std::size_t plot = figure.find("_plot_1\"");
    REQUIRE(plot != std::string::npos);
    const std::string drawn = figure.substr(plot, figure.find("</svg>", plot) - plot);
    CHECK((drawn.find("<path") != std::string::npos || drawn.find("<rect") != std::string::npos));
    CHECK(figure.find("<td>") != std::string::npos);
    CHECK(widest_box(drawn) < 500);  // Of 900: bars stand apart.
    CHECK(figure.find("<code>kvbench ") != std::string::npos);
    ++figures;
  }
  CHECK(figures == pictures_of(many_results()).size());
  for (const char* fetched : {"src=", "url(", "@import", "<script", "<link", "href=\"", "href='h", "<iframe"})
    CHECK(page.find(fetched) == std::string::npos);
  CHECK(page.find("a &lt;processor&gt; &amp; &quot;more&quot;") != std::string::npos);
  CHECK(file_text(dir / "results.csv").find("codec,decode 0..127") != std::string::npos);
}

TEST_CASE("a report of a directory without results says so") {
  const TempDir dir;
  const Finished done = test::run({program("kvbench"), "report", dir.path().string()});
  CHECK(done.exit == Exit{1});
  CHECK(done.err.find("results.json") != std::string::npos);
}

// ---- How it looks -------------------------------------------------------------------------------------------------

std::string find_browser() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return number;
}

/// A picture's bytes, RGB or RGBA, line by line.
struct Pixels {
  std::size_t width = 0;
  std::size_t channels = 0;
  std::string bytes;

  /// How bright it is on average, 0 to 255.
  [[nodiscard]] double brightness() const {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (channels == 4 && i % 4 == 3) continue;
      sum += static_cast<unsigned char>(bytes[i]);
      ++count;
    }
    return sum / static_cast<double>(count);
  }
  [[nodiscard]] std::size_t colours() const {
    std::set<std::string> seen;
    for (std::size_t i = 0; i + channels <= bytes.size(); i += channels) seen.insert(bytes.substr(i, 3));
    return seen.size();
  }
};

/// What a line of a PNG adds to its neighbours, as its filter says.
int predicted(int filter, int left, int above, int corner) {
  const int guess = left + above - corner;
  const int to_left = std::abs(guess - left);
  const int to_above = std::abs(guess - above);
  const int to_corner = std::abs(guess - corner);
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) / 2;
    case 4:
      return to_left <= to_above && to_left <= to_corner ? left : to_above <= to_corner ? above : corner;
    default:
      return 0;
  }
}

/// Reads a PNG of 8 bits a channel, not interlaced, which is what browsers write.
Pixels read_png(const std::string& png) {
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  Pixels pixels;
  std::size_t height = 0;
  std::string packed;
  for (std::size_t at = 8; at + 12 <= png.size(); at += 12 + big_endian(png, at)) {
    const std::string kind = png.substr(at + 4, 4);
    if (kind == "IHDR") {
      pixels.width = big_endian(png, at + 8);
      height = big_endian(png, at + 12);
      REQUIRE(png[at + 16] == 8);
      pixels.channels = png[at + 17] == 6 ? 4 : 3;
    } else if (kind == "IDAT") {
      packed += png.substr(at + 8, big_endian(png, at));
    }
  }
  const std::size_t line = pixels.width * pixels.channels;
  std::string raw(height * (line + 1), '\0');
  uLongf bytes = raw.size();
  REQUIRE(::uncompress(reinterpret_cast<Bytef*>(raw.data()), &bytes, reinterpret_cast<const Bytef*>(packed.data()),
                       packed.size()) == Z_OK);
  pixels.bytes.assign(height * line, '\0');
  const auto at = [&](std::size_t y, std::size_t x, std::size_t up, std::size_t back) {
    if (y < up || x < back) return 0;
    return static_cast<int>(static_cast<unsigned char>(pixels.bytes[(y - up) * line + x - back]));
  };
  for (std::size_t y = 0; y < height; ++y) {
    const int filter = static_cast<unsigned char>(raw[y * (line + 1)]);
    for (std::size_t x = 0; x < line; ++x) {
      const int added = static_cast<unsigned char>(raw[y * (line + 1) + 1 + x]);
      const std::size_t back = pixels.channels;
      pixels.bytes[y * line + x] =
          static_cast<char>(added + predicted(filter, at(y, x, 0, back), at(y, x, 1, 0), at(y, x, 1, back)));
    }
  }
  return pixels;
}

Pixels screenshot(const std::string& browser, const TempDir& dir, const std::string& name, const char* scheme) {
  const std::string file = (dir / (name + ".png")).string();
  const Finished done =
      test::run({browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                 "--disable-dev-shm-usage", "--user-data-dir=" + (dir / name).string(), "--window-size=1000,2600",
                 std::string("--blink-settings=preferredColorScheme=") + scheme, "--screenshot=" + file,
                 "file://" + (dir / "report.html").string()},
                {.env = {{"HOME", dir.path().string()}}});
  INFO(done.err);
  REQUIRE(std::filesystem::exists(file));
  return read_png(file_text(file));
}

TEST_CASE("the page opens in a browser, in light and in dark") {
  if (!find_gnuplot()) KV_SKIP("gnuplot is not installed");
  const std::string browser = find_browser();
  if (browser.empty()) KV_SKIP("chromium is not installed");
  const TempDir dir;
  make_page(dir);
  const Pixels light = screenshot(browser, dir, "light", "1");
  const Pixels dark = screenshot(browser, dir, "dark", "0");
  REQUIRE(light.width == 1'000);
  CHECK(light.brightness() > 200);
  CHECK(dark.brightness() < 80);
  // Pictures in colour, and letters: a page that is blank has one colour.
  CHECK(light.colours() > 50);
  CHECK(dark.colours() > 50);
}

}  // namespace
}  // namespace kvingest::bench
