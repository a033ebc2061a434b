// The transcripts of net/PROTOCOL.md, played against a real kvingest: what the document shows is what happens.
//
// World: for each transcript a kvingest of its own, on an lmdb store of its own. In the document a transcript is a
// block of the kind `transcript`, whose first line may be `$ kvingest ARGUMENTS`. Then `> TEXT` is a line that the
// producer sends, `< TEXT` one that it gets, both with the escapes of kvq; a `*` in an answer stands for any value. `>
// (end)` and
// `< (end)` are the ends of the two directions, `> (new connection)` is another producer.
#include <regex>
#include <sstream>

#include "record/text_escape.hpp"
#include "tests/e2e/e2e.hpp"

namespace kvingest::test {
namespace {

struct Transcript {
  int line = 0;  ///< Where it begins in the document.
  std::vector<std::string> lines;
};

std::vector<Transcript> transcripts() {
  std::vector<Transcript> all;
  std::istringstream document(file_text(project_folder() / "net/PROTOCOL.md"));
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(document, line);) {
    ++number;
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      all.back().lines.push_back(line);
    } else if (line == "```transcript") {
      inside = true;
      all.push_back({.line = number, .lines = {}});
    }
  }
  return all;
}

/// Whether `got` is `wanted`, in which each `*` stands for any value.
bool is_answer(const std::string& got, const std::string& wanted) {
  std::string pattern;
  for (const char c : wanted) {
    if (c == '*') {
      pattern += ".+";
    } else {
      if (std::string_view(R"(\^$.|?+()[]{})").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return std::regex_match(got, std::regex(pattern));
}

void play(const Transcript& transcript) {
  std::vector<std::string> args = {"--durability", "disk"};
  auto at = transcript.lines.begin();
  if (at != transcript.lines.end() && at->starts_with("$ kvingest")) {
    std::istringstream words(at->substr(std::string("$ kvingest").size()));
    for (std::string word; words >> word;) args.push_back(word);
    ++at;
  }
  Service service({.store = "lmdb", .args = args});
  std::vector<TcpClient> producers;
  producers.push_back(service.connect());
  for (; at != transcript.lines.end(); ++at) {
    CAPTURE(transcript.line, *at);
    const bool sends = at->starts_with("> ");
    REQUIRE((sends || at->starts_with("< ")));
    const std::string text = at->substr(2);
    TcpClient& producer = producers.back();
    if (text == "(new connection)") {
      producers.push_back(service.connect());
    } else if (text == "(end)") {
      if (sends) producer.finish_sending();
      CHECK((sends || !producer.read_line()));
    } else if (sends) {
      producer.send_all(*unescaped(text) + "\n");
    } else {
      const auto got = producer.read_line();
      REQUIRE(got);
      CAPTURE(*got);
      CHECK(is_answer(*got, *unescaped(text)));
    }
  }
  producers.clear();
  service.stop();
}

TEST_CASE("what the transcripts of the protocol's document show is what happens") {
  const auto all = transcripts();
  CHECK(all.size() >= 8);
  for (const Transcript& transcript : all) play(transcript);
}

}  // namespace
}  // namespace kvingest::test
