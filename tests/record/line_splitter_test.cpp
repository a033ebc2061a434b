// LineCursor and the newline finders: every variant that this machine runs says what memchr says.
#include "record/line_splitter.hpp"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

std::vector<std::uint16_t> by_memchr(std::string_view bytes) {
  std::vector<std::uint16_t> places;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const void* found = std::memchr(bytes.data() + at, '\n', bytes.size() - at);
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data());
    places.push_back(static_cast<std::uint16_t>(at));
  }
  return places;
}

std::vector<std::uint16_t> by(const NewlineFinder& finder, std::string_view bytes) {
  std::vector<std::uint16_t> places(kScanPlacesMax);
  places.resize(finder.find(bytes, places.data()));
  return places;
}

std::vector<std::string> lines_of(std::string_view bytes, std::size_t searched = 0) {
  std::vector<std::string> lines;
  LineCursor cursor(bytes, searched);
  for (std::string_view line; cursor.next(line);) lines.emplace_back(line);
  lines.push_back("rest:" + std::string(cursor.rest()));
  return lines;
}

TEST_CASE("every newline finder agrees with memchr at all sizes and alignments") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const NewlineFinder& finder : newline_finders()) {
    INFO(finder.name);
    for (std::size_t size = 0; size <= 300; ++size) {
      for (std::size_t offset = 0; offset < 64; ++offset) {
        // Allocated to the byte, so that a sanitizer sees a read outside.
        const auto block = std::make_unique<char[]>(offset + size);
        const auto spread = 1 + random() % 30;
        for (std::size_t i = 0; i < size; ++i) block[offset + i] = random() % spread == 0 ? '\n' : '\v';
        const std::string_view bytes(block.get() + offset, size);
        REQUIRE(by(finder, bytes) == by_memchr(bytes));
      }
    }
  }
}

TEST_CASE("every newline finder agrees with memchr on all byte values, on all newlines and on none") {
  std::mt19937 random(7);
  std::string any(kScanBytesMax, '\0');
  for (char& c : any) c = static_cast<char>(random());
  for (const NewlineFinder& finder : newline_finders()) {
    INFO(finder.name);
    CHECK(by(finder, any) == by_memchr(any));
    const std::string all(kScanBytesMax, '\n');
    CHECK(by(finder, all) == by_memchr(all));
    CHECK(by(finder, std::string(kScanBytesMax, '\x8A')).empty());
    std::string one(kScanBytesMax, 'x');
    for (std::size_t at = 0; at < one.size(); at += 61) {
      one[at] = '\n';
      CHECK(by(finder, one) == std::vector<std::uint16_t>{static_cast<std::uint16_t>(at)});
      one[at] = 'x';
    }
  }
}

TEST_CASE("a cursor gives every line and keeps the rest") {
  CHECK(lines_of("") == std::vector<std::string>{"rest:"});
  CHECK(lines_of("ab") == std::vector<std::string>{"rest:ab"});
  CHECK(lines_of("a\n\nb\r\nc") == std::vector<std::string>{"a", "", "b\r", "rest:c"});
  CHECK(lines_of("a\n") == std::vector<std::string>{"a", "rest:"});
}

TEST_CASE("a cursor goes on behind what was searched, and the line still begins at the front") {
  CHECK(lines_of("abcdef\ng", 4) == std::vector<std::string>{"abcdef", "rest:g"});
  CHECK(lines_of("abcdef", 6) == std::vector<std::string>{"rest:abcdef"});
}

TEST_CASE("lines longer than a stretch and many short ones come out whole") {
  std::mt19937 random(11);
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 2'000; ++i) {
    lines.emplace_back(random() % 50 == 0 ? random() % 20'000 : random() % 40, static_cast<char>('a' + i % 26));
    text += lines.back() + '\n';
  }
  lines.emplace_back("rest:");
  CHECK(lines_of(text) == lines);
}

TEST_CASE("a cursor may stop in the middle and tell where") {
  LineCursor cursor("one\ntwo\nthree");
  std::string_view line;
  REQUIRE(cursor.next(line));
  CHECK(cursor.position() == 4);
  CHECK(cursor.rest() == "two\nthree");
}

}  // namespace
}  // namespace kvingest
