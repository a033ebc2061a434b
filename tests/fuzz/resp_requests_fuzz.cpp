// What a Redis client may send: a stream is cut into the same requests, or breaks with the same words, wherever the
// network cuts it; no limit is passed; and every answer that is written is one line or length that holds what it says.
//
// The first byte says where the stream is cut.
#include <vector>

#include "net/resp_parser.hpp"
#include "net/resp_scan.hpp"
#include "net/resp_writer.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace kvingest;
using net::RespParser;

constexpr net::RespLimits kLimits{.words_max = 16, .word_bytes_max = 64, .request_bytes_max = 128};

/// The requests of a stream, then what is wrong with it, if something is.
std::vector<std::vector<std::string>> requests(std::string_view stream, std::size_t piece) {
  RespParser parser;
  parser.limit(kLimits);
  std::vector<std::vector<std::string>> all;
  std::string input;
  while (!stream.empty()) {
    const std::string_view part = stream.substr(0, piece);
    input += part;
    stream.remove_prefix(part.size());
    while (true) {
      const RespParser::Step step = parser.next(input);
      if (step == RespParser::Step::more) break;
      if (step == RespParser::Step::broken) {
        all.push_back({parser.problem()});
        return all;
      }
      all.emplace_back(parser.words().begin(), parser.words().end());
      std::size_t bytes = 0;
      for (const std::string_view word : parser.words()) bytes += word.size();
      const std::size_t used = parser.done();
      KV_ASSERT(used > 0 && used <= input.size() && bytes <= used);
      input.erase(0, used);
    }
  }
  return all;
}

/// An answer made of `text`, read as a request where it can be one.
void write_answers(const std::vector<std::string>& words) {
  std::string text;
  net::RespWriter to(text, 3);
  to.array(words.size());
  for (const std::string& word : words) to.bulk(word);
  RespParser parser;
  if (words.empty()) return;
  KV_ASSERT(parser.next(text) == RespParser::Step::command);
  KV_ASSERT(std::vector<std::string>(parser.words().begin(), parser.words().end()) == words);
  text.clear();
  to.error(words.front());
  KV_ASSERT(text.find('\n') == text.size() - 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view stream = fuzz::view_of(data + 1, size - 1);
  const auto whole = requests(stream, stream.size() + 1);
  KV_ASSERT(requests(stream, std::size_t{1} + data[0]) == whole);
  for (const auto& words : whole) {
    write_answers(words);
    if (words.size() < 2) continue;
    const std::string prefix = net::glob_prefix(words[0]);
    KV_ASSERT(!net::glob_match(words[0], words[1]) || words[1].starts_with(prefix));
  }
  return 0;
}
