// VarintCutter: messages with their length in front come out whole, wherever the stream is cut; lengths are not
// trusted.
#include "net/varint_cutter.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest::net {
namespace {

struct MessageNotes {
  std::vector<std::string> rows;

  bool line(std::string_view message, std::uint64_t offset) {
    rows.push_back(std::to_string(offset) + ":" + std::string(message));
    return true;
  }
  bool long_line(const LongMessage& message, std::uint64_t offset) {
    rows.push_back(std::to_string(offset) + ":long " + std::to_string(message.length) + " " +
                   std::to_string(message.checksum == whole_long_message(message.kept).checksum));
    return true;
  }
};

std::string frame(std::string_view message) {
  char length[codec::kVarint64BytesMax];
  return std::string(length, codec::put_varint(length, message.size())).append(message);
}

TEST_CASE("a stream of framed messages cut at every byte gives the same messages") {
  const std::string stream = frame("a\nb") + frame("") + frame(std::string(200, 'x')) + frame("toolong") + frame("z");
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    VarintCutter cutter(200);
    MessageNotes notes;
    CHECK(cutter.cut(stream.substr(0, first), notes) == first);
    CHECK(cutter.cut(stream.substr(first), notes) == stream.size() - first);
    CHECK(notes.rows == std::vector<std::string>{"0:a\nb", "4:", "5:" + std::string(200, 'x'), "207:toolong", "215:z"});
    CHECK(cutter.unfinished_bytes() == 0);
  }
}

TEST_CASE("a message beyond the limit is passed once with its length and the feed goes on") {
  const std::string stream = frame("before") + frame(std::string(1000, 'x')) + frame("after");
  for (const std::size_t piece : {1U, 10U, 5000U}) {
    VarintCutter cutter(100);
    MessageNotes notes;
    for (std::size_t at = 0; at < stream.size(); at += piece) cutter.cut(stream.substr(at, piece), notes);
    CHECK(notes.rows == std::vector<std::string>{"0:before", "7:long 1000 1", "1009:after"});
  }
}

TEST_CASE("a length bomb takes no memory") {
  VarintCutter cutter(1 << 20);
  MessageNotes notes;
  char length[codec::kVarint64BytesMax];
  const std::string bomb(length, codec::put_varint(length, ~std::uint64_t{0}));
  cutter.cut(bomb, notes);
  CHECK(cutter.carried_bytes() == 0);
  for (int i = 0; i < 100; ++i) cutter.cut(std::string(100'000, 'x'), notes);
  CHECK(cutter.carried_bytes() == kLongMessageKeptBytes);
  CHECK(notes.rows.empty());
}

TEST_CASE("a length that is no varint breaks the stream, and only that") {
  VarintCutter cutter(100);
  MessageNotes notes;
  const std::string good = frame("good");
  cutter.cut(good, notes);
  CHECK_FALSE(cutter.broken());
  cutter.cut(std::string(11, '\xFF') + frame("never"), notes);
  CHECK(cutter.broken());
  CHECK(notes.rows == std::vector<std::string>{"0:good"});
}

}  // namespace
}  // namespace kvingest::net
