// What a peer may send: a stream is cut into the same lines wherever the network cuts it; every control line is read or
// refused, and what is read, written anew, reads the same; every message becomes one record or a reject.
//
// The first byte says which message format it is, the second where the stream is cut.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "net/feed_protocol.hpp"
#include "net/line_cutter.hpp"
#include "net/varint_cutter.hpp"
#include "record/message_parser.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace kvingest;

constexpr std::size_t kLineBytesMax = 64;

/// Lines as they came, long ones by their length and kept bytes.
struct Lines {
  bool line(std::string_view text, std::uint64_t offset) {
    all.push_back(std::to_string(offset) + ":" + std::string(text));
    return true;
  }
  bool long_line(const net::LongMessage& message, std::uint64_t offset) {
    all.push_back(fmt::format("{} long {} {:x}:{}", offset, message.length, message.checksum, message.kept));
    return true;
  }
  std::vector<std::string> all;
};

template <class Cutter>
std::vector<std::string> cut(std::string_view stream, std::size_t piece) {
  Cutter cutter(kLineBytesMax);
  Lines lines;
  while (!stream.empty()) {
    const std::string_view part = stream.substr(0, piece);
    KV_ASSERT(cutter.broken() || cutter.cut(part, lines) == part.size() || cutter.broken());
    stream.remove_prefix(part.size());
  }
  if (!cutter.broken()) cutter.finish(lines);
  return lines.all;
}

void read_control(std::string_view line) {
  if (net::classify_line(line) != net::LineKind::control) return;
  const auto control = net::parse_control(line);
  if (!control) return;
  net::ControlAnswer answer(control->verb);
  for (const auto& word : control->words) {
    if (word.name.empty())
      answer.add(word.value);
    else
      answer.add(word.name, std::string_view(word.value));
  }
  static_cast<void>(net::parse_control(answer.line()));
}

const std::array<RecordPlan, 4>& plans() {
  static const std::array<RecordPlan, 4> instance = [] {
    const auto compiled = [](const RecordOptions& options) {
      auto plan = RecordPlan::compile(options);
      KV_ASSERT(plan.has_value());
      return *std::move(plan);
    };
    return std::array{
        compiled({.format = MessageFormat::line, .key = "{seq}/{source}"}),
        compiled({.format = MessageFormat::kv}),
        compiled({.format = MessageFormat::csv, .columns = {"a", "b", "c"}, .key = "{a}/{b:06}", .value = "{c}"}),
        compiled({.format = MessageFormat::json, .key = "{a}/{/b/0}", .value = "{c}"}),
    };
  }();
  return instance;
}

void store_messages(const RecordPlan& plan, std::string_view stream) {
  MessageParser parser(plan);
  while (!stream.empty()) {
    const std::size_t end = std::min(stream.find('\n'), stream.size());
    WriteBatch batch;
    const Verdict verdict = parser.add(without_cr(stream.substr(0, end)), 1, "@", batch);
    KV_ASSERT((verdict.outcome == Outcome::stored) == (batch.puts() == 1));
    KV_ASSERT((verdict.outcome == Outcome::rejected) == !verdict.reason.empty());
    batch.number(1);
    KV_ASSERT(batch.check().has_value());
    stream.remove_prefix(std::min(end + 1, stream.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view stream = fuzz::view_of(data + 2, size - 2);
  const std::size_t piece = 1 + data[1];
  KV_ASSERT(cut<net::LineCutter>(stream, piece) == cut<net::LineCutter>(stream, stream.size() + 1));
  KV_ASSERT(cut<net::VarintCutter>(stream, piece) == cut<net::VarintCutter>(stream, stream.size() + 1));
  read_control(stream.substr(0, stream.find('\n')));
  store_messages(plans()[data[0] % plans().size()], stream);
  return 0;
}
