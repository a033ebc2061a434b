// Single records, read.
#include <algorithm>

#include "kvingest/limits.hpp"
#include "net/resp_command.hpp"

namespace kvingest::net {
namespace {

/// Redis takes any key; one that no store can hold is simply not there.
Result<bool> look_up(const RespCall& call, std::string_view key, Store::ValueVisitor visit) {
  if (key.empty() || key.size() > kKeyBytesMax) return false;
  return call.records.get(key, visit);
}

/// Answers with what `found` is not: an error, or `none`.
template <class None>
void answer_missing(RespCall& call, const Result<bool>& found, None none) {
  if (!found) return call.to.error(error_text(found.error()));
  if (!*found) none();
}

}  // namespace

void run_get(RespCall& call) {
  const auto found = look_up(call, call.words[1], [&](std::string_view value) { call.to.bulk(value); });
  answer_missing(call, found, [&] { call.to.null(); });
}

void run_mget(RespCall& call) {
  std::string answers;
  RespWriter to(answers, call.to.version());
  for (const std::string_view key : call.words.subspan(1)) {
    bool fits = true;
    const auto found = look_up(call, key, [&](std::string_view value) {
      fits = answers.size() + value.size() <= kReplyBytesMax + kReplyBytesMax / 16;
      if (fits) to.bulk(value);
    });
    if (!found) return call.to.error(error_text(found.error()));
    if (!fits) return call.to.error(kTooLargeReply);
    if (!*found) to.null();
  }
  call.to.array(call.words.size() - 1);
  call.to.text() += answers;
}

void run_exists(RespCall& call) {
  std::int64_t there = 0;
  for (const std::string_view key : call.words.subspan(1)) {
    const auto found = look_up(call, key, [](std::string_view) {});
    if (!found) return call.to.error(error_text(found.error()));
    there += *found ? 1 : 0;
  }
  call.to.integer(there);
}

void run_strlen(RespCall& call) {
  const auto found = look_up(call, call.words[1], [&](std::string_view value) { call.to.count(value.size()); });
  answer_missing(call, found, [&] { call.to.integer(0); });
}

void run_getrange(RespCall& call) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (!parse_integer(call.words[2], start) || !parse_integer(call.words[3], end)) return call.to.error(kNotAnInteger);
  const auto found = look_up(call, call.words[1], [&](std::string_view value) {
    const auto size = static_cast<std::int64_t>(value.size());
    const auto from_end = [size](std::int64_t at) { return at < 0 ? std::max<std::int64_t>(at + size, 0) : at; };
    const bool crossed = start < 0 && end < 0 && start > end;
    const std::int64_t first = from_end(start);
    const std::int64_t last = std::min(from_end(end), size - 1);
    if (crossed || size == 0 || first > last) return call.to.bulk({});
    call.to.bulk(value.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
  });
  answer_missing(call, found, [&] { call.to.bulk({}); });
}

void run_type(RespCall& call) {
  const auto found = look_up(call, call.words[1], [&](std::string_view) { call.to.simple("string"); });
  answer_missing(call, found, [&] { call.to.simple("none"); });
}

void run_ping(RespCall& call) {
  if (call.words.size() > 2) return call.to.error("ERR wrong number of arguments for 'ping' command");
  call.words.size() == 2 ? call.to.bulk(call.words[1]) : call.to.simple("PONG");
}

void run_echo(RespCall& call) {
  call.to.bulk(call.words[1]);
}

void run_select(RespCall& call) {
  std::int64_t index = 0;
  if (!parse_integer(call.words[1], index)) return call.to.error("ERR invalid DB index");
  if (index != 0) return call.to.error("ERR DB index is out of range: there is database 0 alone");
  call.to.ok();
}

}  // namespace kvingest::net
