// What kvfeed sends, whatever the sizes in which it is asked for it.
#include "feed/line_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::feed {
namespace {

using namespace std::string_view_literals;

/// Everything a source gives, asked for `step` lines at a time; checks what a chunk promises.
std::string drain(LineSource& source, std::uint64_t step) {
  std::string all;
  for (;;) {
    const auto chunk = source.next(step);
    REQUIRE(chunk);
    if (chunk->bytes.empty()) return all;
    const auto ends = std::count(chunk->bytes.begin(), chunk->bytes.end(), '\n');
    REQUIRE(static_cast<std::uint64_t>(ends) == chunk->lines);
    REQUIRE(chunk->lines <= step);
    all += chunk->bytes;
  }
}

std::string numbered(std::string_view before, std::string_view after, std::uint64_t count) {
  std::string text;
  for (std::uint64_t n = 0; n < count; ++n) text += fmt::format("{}{}{}\n", before, n, after);
  return text;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(at, from), text.size());
    parts.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

TEST_CASE("numbered lines count from 0 without a gap, however many are asked for at a time") {
  for (const std::uint64_t step : {1u, 7u, 256u, 4096u, 1'000'000u})
    CHECK(drain(*numbered_lines("Benchmark Message {n}", 101'101), step) ==
          numbered("Benchmark Message ", "", 101'101));
}

TEST_CASE("a number may stand anywhere in a message, several times or not at all") {
  CHECK(drain(*numbered_lines("{n}", 1'234), 100) == numbered("", "", 1'234));
  CHECK(drain(*numbered_lines("{n} is here", 1'234), 9) == numbered("", " is here", 1'234));
  std::string twice;
  for (int n = 0; n < 1'234; ++n) twice += fmt::format("{}={}\n", n, n);
  CHECK(drain(*numbered_lines("{n}={n}", 1'234), 256) == twice);
  CHECK(drain(*numbered_lines("same {m}", 3), 2) == "same {m}\nsame {m}\nsame {m}\n");
  CHECK(drain(*numbered_lines("", 3), 2) == "\n\n\n");
}

TEST_CASE("messages around and beyond the size of a copied block are whole") {
  for (const std::size_t bytes : {61u, 62u, 63u, 64u, 65u, 300u, 3'000'000u}) {
    const std::string text(bytes, 'x');
    CHECK(drain(*numbered_lines(text + "{n}", 12), 256) == numbered(text, "", 12));
  }
}

TEST_CASE("trades have four fields, rising times and the same content for the same seed") {
  const std::string text = drain(*trade_lines(7, 20'000), 256);
  CHECK(text == drain(*trade_lines(7, 20'000), 4096));
  CHECK(text != drain(*trade_lines(8, 20'000), 256));
  std::map<std::string, int> trades;
  std::uint64_t last = 0;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split(line, ',');
    REQUIRE(fields.size() == 4);
    REQUIRE(fields[0].find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos);
    REQUIRE(std::stoull(fields[1]) > last);
    REQUIRE(std::stod(fields[2]) >= 1.0);
    REQUIRE(fields[2].size() - fields[2].find('.') == 3);
    REQUIRE(std::stoull(fields[3]) > 0);
    last = std::stoull(fields[1]);
    ++trades[fields[0]];
  }
  CHECK(trades.size() > 300);
  int most = 0;
  for (const auto& [symbol, count] : trades) most = std::max(most, count);
  CHECK(most > 20 * 20'000 / 500);  // Skewed: far above an equal share.
}

TEST_CASE("trades of two seeds are of different days, so that their keys differ") {
  const auto first_time = [](std::uint64_t seed) {
    return std::stoull(split(drain(*trade_lines(seed, 1), 1), ',')[1]);
  };
  CHECK(first_time(2) - first_time(1) > 86'000'000'000'000u);
}

TEST_CASE("a file is sent line by line, its last line with an LF") {
  const test::TempDir dir;
  const auto sent = [&](std::string_view content, std::uint64_t step, std::uint64_t count = UINT64_MAX) {
    test::write_text(dir / "f", content);
    auto source = file_lines(dir / "f", count);
    REQUIRE(source);
    return drain(**source, step);
  };
  for (const std::uint64_t step : {1u, 2u, 1000u}) {
    CHECK(sent("", step).empty());
    CHECK(sent("one", step) == "one\n");
    CHECK(sent("one\n", step) == "one\n");
    CHECK(sent("\n\n", step) == "\n\n");
    CHECK(sent("a\r\nb\0c\n\xff"sv, step) == "a\r\nb\0c\n\xff\n"sv);
    CHECK(sent("a\nb\nc", step, 2) == "a\nb\n");
    CHECK(sent("a\nb", step, 5) == "a\nb\n");
    CHECK(sent("a\nb", step, 0).empty());
  }
}

TEST_CASE("lines longer than a chunk, and files of many chunks, come through whole") {
  const test::TempDir dir;
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::string content(3 * kChunkBytes + 17, 'y');
  content += "\nshort\n" + std::string(kChunkBytes, 'z') + "\n";
  while (content.size() < 8 * kChunkBytes) content += std::string(random() % 5'000, 'w') + "\n";
  content += std::string(2 * kChunkBytes, 'e');
  test::write_text(dir / "f", content);
  auto source = file_lines(dir / "f");
  REQUIRE(source);
  CHECK(drain(**source, 256) == content + "\n");
}

TEST_CASE("a line that looks like a control line is sent as data, wherever a read ends") {
  const test::TempDir dir;
  const auto sent = [&](const std::string& content, std::uint64_t step, ControlLike how) {
    test::write_text(dir / "f", content);
    auto source = file_lines(dir / "f", UINT64_MAX, how);
    REQUIRE(source);
    return drain(**source, step);
  };
  const std::string text = "!kv sync\na\n!kv\n!kvx \n!!!kv bye\n!\n!kv \n !kv x\n!kv end";
  const std::string escaped = "!!kv sync\na\n!kv\n!kvx \n!!!!kv bye\n!\n!!kv \n !kv x\n!!kv end\n";
  for (const std::uint64_t step : {1u, 2u, 1000u}) {
    CHECK(sent(text, step, ControlLike::escape) == escaped);
    CHECK(sent(text, step, ControlLike::keep) == text + "\n");
  }
  for (std::size_t before = kChunkBytes - 8; before <= kChunkBytes; ++before) {
    const bool same = sent(std::string(before, 'x') + "\n!!kv status\n", 256, ControlLike::escape) ==
                      std::string(before, 'x') + "\n!!!kv status\n";
    CHECK(same);
  }
  const std::string longest = "!kv " + std::string(2 * kChunkBytes, 'k') + "\n!kv b\n";
  const bool whole =
      sent(longest, 256, ControlLike::escape) == "!" + longest.substr(0, longest.size() - 6) + "!!kv b\n";
  CHECK(whole);
  test::write_text(dir / "f", std::string(2 * kChunkBytes, '!'));
  auto marks = file_lines(dir / "f");
  REQUIRE(marks);
  const auto refused = (*marks)->next(1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.find("begins with") != std::string::npos);
}

TEST_CASE("a message that looks like a control line is sent as data") {
  CHECK(drain(*numbered_lines("!kv sync {n}", 2), 256) == "!!kv sync 0\n!!kv sync 1\n");
  CHECK(drain(*numbered_lines("!kv sync", 1, ControlLike::keep), 256) == "!kv sync\n");
  CHECK(drain(*numbered_lines("!{n}kv x", 1), 256) == "!0kv x\n");
}

TEST_CASE("a file that cannot be read is an error that names it") {
  const auto missing = file_lines("/no/such/file");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text.find("/no/such/file") != std::string::npos);
  auto directory = file_lines("/");
  REQUIRE(directory);
  CHECK_FALSE((*directory)->next(1));
}

}  // namespace
}  // namespace kvingest::feed
