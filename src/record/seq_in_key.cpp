#include "record/seq_in_key.hpp"

#include <algorithm>
#include <charconv>

#include "record/text_escape.hpp"
#include "record/text_template.hpp"

namespace kvingest {
namespace {

using Part = TextTemplate::Part;
constexpr std::size_t kSeqDigits = 20;

// The bytes that `part` always takes; nothing where they depend on the message.
std::optional<std::size_t> fixed_size(const Part& part) {
  if (part.kind == TextTemplate::Kind::literal) return part.text.size();
  if (part.kind == TextTemplate::Kind::seq) return kSeqDigits;
  if (part.kind == TextTemplate::Kind::field && part.width != 0) return part.width;
  return std::nullopt;
}

// The bytes of all parts before the first {seq}.
template <class Iterator>
std::optional<std::size_t> size_before_seq(Iterator at, Iterator end) {
  std::size_t bytes = 0;
  for (; at != end && at->kind != TextTemplate::Kind::seq; ++at) {
    const auto size = fixed_size(*at);
    if (!size) return std::nullopt;
    bytes += *size;
  }
  return bytes;
}

}  // namespace

Result<SeqInKey> SeqInKey::of(std::string_view key_template) {
  std::vector<FieldPath> fields;
  const auto compiled = TextTemplate::compile("key", key_template, fields);
  KV_TRY(compiled);
  SeqInKey found;
  if (!compiled->contains(TextTemplate::Kind::seq)) return found;
  const auto& parts = compiled->parts();
  found.leads_ = parts.front().kind == TextTemplate::Kind::seq ||
                 (parts.front().kind == TextTemplate::Kind::literal && parts[1].kind == TextTemplate::Kind::seq);
  if (found.leads_ && parts.front().kind == TextTemplate::Kind::literal) found.prefix_ = parts.front().text;
  if (compiled->is_seq_alone()) {
    found.place_ = Place::whole_key;
  } else if (const auto front = size_before_seq(parts.begin(), parts.end())) {
    found.place_ = Place::from_front;
    found.distance_ = *front;
  } else if (const auto back = size_before_seq(parts.rbegin(), parts.rend())) {
    found.place_ = Place::from_back;
    found.distance_ = *back;
  }
  return found;
}

std::optional<std::uint64_t> SeqInKey::find(std::string_view key) const noexcept {
  if (place_ == Place::whole_key) return seq_of_key(key);
  if (place_ == Place::unknown || key.size() < distance_ + kSeqDigits) return std::nullopt;
  const std::size_t at = place_ == Place::from_front ? distance_ : key.size() - distance_ - kSeqDigits;
  const std::string_view digits = key.substr(at, kSeqDigits);
  std::uint64_t seq = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seq);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return seq;
}

std::string SeqInKey::first_key(std::uint64_t seq) const {
  return place_ == Place::whole_key ? key_of_seq(seq) : fmt::format("{}{:020}", prefix_, seq);
}

std::string SeqInKey::end_key() const {
  return place_ == Place::whole_key ? std::string(1, '\x01') : prefix_ + ':';  // Behind '9'.
}

}  // namespace kvingest
