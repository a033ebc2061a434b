// LineCutter: the same lines and offsets come out wherever the network cuts the stream, and long lines cost no memory.
#include "net/line_cutter.hpp"

#include <xxhash.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

/// Notes what it is given: a line as it is, a long one with its length and checksum.
struct Notes {
  std::vector<std::string> rows;
  std::size_t stop_after = ~std::size_t{0};

  bool line(std::string_view line, std::uint64_t offset) {
    rows.push_back(std::to_string(offset) + ":" + std::string(line));
    return rows.size() < stop_after;
  }
  bool long_line(const LongMessage& line, std::uint64_t offset) {
    rows.push_back(std::to_string(offset) + ":long " + std::to_string(line.length) + " " +
                   std::to_string(line.checksum) + " " + std::string(line.kept.substr(0, 3)));
    return rows.size() < stop_after;
  }
};

std::string long_row(std::uint64_t offset, std::string_view line) {
  return std::to_string(offset) + ":long " + std::to_string(line.size()) + " " +
         std::to_string(XXH3_64bits(line.data(), line.size())) + " " + std::string(line.substr(0, 3));
}

TEST_CASE("a stream cut at every byte gives the same lines at the same offsets") {
  const std::string stream = "one\n\ntwo\r\nabcdefghijklmnop\nthree\nlast";
  const std::vector<std::string> wanted = {"0:one", "4:", "5:two\r", long_row(10, "abcdefghijklmnop"), "27:three"};
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    for (std::size_t second = first; second <= stream.size(); ++second) {
      LineCutter cutter(10);
      Notes notes;
      for (const auto& piece : {stream.substr(0, first), stream.substr(first, second - first), stream.substr(second)}) {
        if (!piece.empty()) CHECK(cutter.cut(piece, notes) == piece.size());
      }
      CHECK(notes.rows == wanted);
      CHECK(cutter.unfinished_bytes() == 4);
      cutter.finish(notes);
      CHECK(notes.rows.back() == "33:last");
      CHECK(cutter.unfinished_bytes() == 0);
    }
  }
}

TEST_CASE("a line of exactly the limit is a line, one more byte makes it long, in one piece or in many") {
  for (const std::size_t piece_bytes : {1U, 7U, 1000U}) {
    LineCutter cutter(100);
    Notes notes;
    const std::string fits(100, 'f');
    const std::string over(101, 'o');
    const std::string stream = fits + "\n" + over + "\n" + fits + "\n";
    for (std::size_t at = 0; at < stream.size(); at += piece_bytes) cutter.cut(stream.substr(at, piece_bytes), notes);
    CHECK(notes.rows == std::vector<std::string>{"0:" + fits, long_row(101, over), "203:" + fits});
  }
}

TEST_CASE("a line that never ends keeps 64 KiB of it and no more") {
  constexpr std::size_t kLimit = 1 << 20;
  LineCutter cutter(kLimit);
  Notes notes;
  const std::string piece(100'000, 'x');
  for (int i = 0; i < 200; ++i) {
    cutter.cut(piece, notes);
    CHECK(cutter.carried_bytes() <= kLimit);
  }
  CHECK(cutter.carried_bytes() == kLongMessageKeptBytes);
  CHECK(notes.rows.empty());
  cutter.cut("\nnext\n", notes);
  CHECK(notes.rows == std::vector<std::string>{long_row(0, std::string(20'000'000, 'x')), "20000001:next"});
}

TEST_CASE("a line given up is passed as a long one") {
  LineCutter cutter(1 << 20);
  Notes notes;
  cutter.cut("abc", notes);
  cutter.give_up_message();
  cutter.cut("def\n", notes);
  CHECK(notes.rows == std::vector<std::string>{long_row(0, "abcdef")});
}

TEST_CASE("a sink that stops leaves the rest of the piece to the next call") {
  LineCutter cutter(100);
  Notes notes{.stop_after = 2};
  const std::string stream = "a\nb\nc\n";
  const std::size_t used = cutter.cut(stream, notes);
  CHECK(used == 4);
  notes.stop_after = 100;
  CHECK(cutter.cut(stream.substr(used), notes) == 2);
  CHECK(notes.rows == std::vector<std::string>{"0:a", "2:b", "4:c"});
}

TEST_CASE("random streams in random pieces give back every byte") {
  const auto seed = Catch::rngSeed();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string stream;
    for (std::size_t i = random() % 20'000; i > 0; --i)
      stream += static_cast<char>(random() % 12 == 0 ? '\n' : random());
    LineCutter cutter(1 << 20);
    struct Rebuilt {
      std::string text;
      bool line(std::string_view line, std::uint64_t offset) {
        CHECK(offset == text.size());
        text.append(line).append("\n");
        return true;
      }
      bool long_line(const LongMessage&, std::uint64_t) { return false; }
    } rebuilt;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t bytes = 1 + random() % 9000;
      cutter.cut(std::string_view(stream).substr(at, bytes), rebuilt);
      at += bytes;
    }
    const std::size_t whole = stream.rfind('\n') + 1;
    CHECK(rebuilt.text == stream.substr(0, whole));
    CHECK(cutter.unfinished_bytes() == stream.size() - whole);
  }
}

}  // namespace
}  // namespace kvingest::net
