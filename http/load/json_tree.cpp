#include "http/load/json_tree.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace kvingest::fetch {
namespace {

constexpr std::size_t kDepthMax = 64;
constexpr std::size_t kNodesMax = std::size_t{1} << 28;

std::string unescaped(std::string_view token) {
  std::string plain;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size()) {
      plain += token[++i] == '1' ? '/' : '~';
    } else {
      plain += token[i];
    }
  }
  return plain;
}

/// Whether `rest`, at which the scanner stopped, begins something that may go on: \u00, tru, half of a character.
bool is_half(std::string_view rest) {
  constexpr std::size_t kSurrogatesBytes = 12;
  for (const std::string_view word : {"true", "false", "null"}) {
    if (word.starts_with(rest)) return true;
  }
  const bool escape = rest.starts_with('\\') && rest.size() < kSurrogatesBytes;
  return (escape && rest.find('"') == rest.npos) || (rest.size() < 4 && (rest.front() & 0x80) != 0);
}

}  // namespace

JsonTree::Parsed JsonTree::parse(std::string_view text) {
  nodes_.clear();
  open_.clear();
  key_ = {};
  problem_.clear();
  scanner_.start(text);
  bool good = value();
  while (good && !open_.empty()) good = between();
  if (good && scanner_.at_end()) return Parsed::whole;
  const bool at_end = scanner_.at_end() || is_half(text.substr(scanner_.offset()));
  if (good) static_cast<void>(scanner_.refuse("text behind the value"));
  problem_ = fmt::format("{} at byte {}", scanner_.problem(), scanner_.offset());
  nodes_.clear();
  return !good && at_end ? Parsed::cut : Parsed::bad;
}

bool JsonTree::value() {
  if (nodes_.size() >= kNodesMax) return scanner_.refuse("too many values");
  const char begin = scanner_.peek();
  if (begin == '{' || begin == '[') return open(begin == '{' ? JsonNode::Kind::object : JsonNode::Kind::array);
  JsonNode node;
  node.key = std::exchange(key_, {});
  node.end = static_cast<std::uint32_t>(nodes_.size() + 1);
  switch (begin) {
    case '"':
      node.kind = JsonNode::Kind::text;
      if (!scanner_.string(node.text)) return false;
      break;
    case 't':
    case 'f':
      node.kind = JsonNode::Kind::boolean;
      node.text = begin == 't' ? "true" : "false";
      if (!scanner_.word(node.text)) return false;
      break;
    case 'n':
      if (!scanner_.word("null")) return false;
      break;
    default:
      node.kind = JsonNode::Kind::number;
      if (!scanner_.number(node.text)) return false;
  }
  nodes_.push_back(node);
  return true;
}

bool JsonTree::open(JsonNode::Kind kind) {
  if (open_.size() >= kDepthMax) return scanner_.refuse("nested too deeply");
  JsonNode node;
  node.kind = kind;
  node.key = std::exchange(key_, {});
  open_.push_back(static_cast<std::uint32_t>(nodes_.size()));
  nodes_.push_back(node);
  const bool object = kind == JsonNode::Kind::object;
  static_cast<void>(scanner_.take(object ? '{' : '['));
  if (scanner_.take(object ? '}' : ']')) {
    nodes_[open_.back()].end = static_cast<std::uint32_t>(nodes_.size());
    open_.pop_back();
    return true;
  }
  return (!object || name()) && value();
}

bool JsonTree::name() {
  if (scanner_.peek() != '"') return scanner_.refuse("a member's name should follow");
  if (!scanner_.string(key_)) return false;
  return scanner_.take(':') || scanner_.refuse("a colon should follow");
}

bool JsonTree::between() {
  JsonNode& inner = nodes_[open_.back()];
  const bool object = inner.kind == JsonNode::Kind::object;
  if (scanner_.take(',')) return (!object || name()) && value();
  if (!scanner_.take(object ? '}' : ']')) return scanner_.refuse("a comma or the end should follow");
  inner.end = static_cast<std::uint32_t>(nodes_.size());
  open_.pop_back();
  return true;
}

const JsonNode* JsonTree::member(const JsonNode& node, std::string_view name) const noexcept {
  if (node.kind != JsonNode::Kind::object) return nullptr;
  for (const JsonNode* child = first(node); child != nullptr; child = next(node, *child)) {
    if (child->key == name) return child;
  }
  return nullptr;
}

const JsonNode* JsonTree::item(const JsonNode& node, std::size_t index) const noexcept {
  if (node.kind != JsonNode::Kind::array) return nullptr;
  const JsonNode* child = first(node);
  for (; child != nullptr && index > 0; --index) child = next(node, *child);
  return child;
}

const JsonNode* JsonTree::find(const JsonNode& node, std::string_view pointer) const {
  const JsonNode* at = &node;
  while (at != nullptr && pointer.starts_with('/')) {
    pointer.remove_prefix(1);
    const std::string_view token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    if (at->kind == JsonNode::Kind::array) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      if (error != std::errc{} || end != token.data() + token.size()) return nullptr;
      at = item(*at, index);
    } else {
      at = token.find('~') == token.npos ? member(*at, token) : member(*at, unescaped(token));
    }
  }
  return at;
}

std::size_t JsonTree::count(const JsonNode& node) const noexcept {
  std::size_t children = 0;
  for (const JsonNode* child = first(node); child != nullptr; child = next(node, *child)) ++children;
  return children;
}

}  // namespace kvingest::fetch
