#include "http/load/coverage.hpp"

#include <algorithm>
#include <charconv>

namespace kvingest::fetch {
namespace {

bool take_number(std::string_view& text, std::int64_t& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_byte(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

void Coverage::add(Span span) {
  if (span.is_empty()) return;
  std::vector<Span> kept;
  for (const Span& one : spans_) {
    if (one.to < span.from || one.from > span.to) {
      kept.push_back(one);
    } else {
      span = {std::min(span.from, one.from), std::max(span.to, one.to)};
    }
  }
  kept.push_back(span);
  std::ranges::sort(kept, {}, &Span::from);
  spans_ = std::move(kept);
}

std::vector<Span> Coverage::holes(Span wanted) const {
  std::vector<Span> holes;
  Instant at = wanted.from;
  for (const Span& one : spans_) {
    if (one.to <= at) continue;
    if (one.from >= wanted.to) break;
    if (one.from > at) holes.push_back({at, one.from});
    at = one.to;
  }
  if (at < wanted.to) holes.push_back({at, wanted.to});
  return holes;
}

std::string Coverage::encode() const {
  std::string text;
  for (const Span& one : spans_) {
    if (!text.empty()) text += ',';
    text += std::to_string(one.from) + "/" + std::to_string(one.to);
  }
  return text;
}

Result<Coverage> Coverage::decode(std::string_view text) {
  Coverage coverage;
  while (!text.empty()) {
    Span span;
    const bool good = take_number(text, span.from) && take_byte(text, '/') && take_number(text, span.to);
    const bool ends_well = text.empty() || (take_byte(text, ',') && !text.empty());
    if (!good || span.is_empty() || !ends_well) {
      return fail(Code::corrupt, "what is noted of the spans done cannot be read");
    }
    coverage.add(span);
  }
  return coverage;
}

}  // namespace kvingest::fetch
