// json_tree.hpp -- a JSON text (RFC 8259) as a flat list of its values, numbers in their own text.
//
// Numbers stay text because prices do: what a double makes of 0.01634790 is another number. A value's children follow
// it, and `end` says where the next value behind all of them is, so a walk needs no recursion.
//
// Threads:  one.
// Lifetime: nodes and texts live until the next parse() and no longer than the parsed text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/json_scanner.hpp"

namespace kvingest::fetch {

struct JsonNode {
  enum class Kind : std::uint8_t { null, boolean, number, text, array, object };
  Kind kind = Kind::null;
  std::uint32_t end = 0;  ///< Index behind its last descendant.
  std::string_view key;   ///< Of a member of an object.
  std::string_view text;  ///< Of a text, decoded; of the others but array and object, as written.

  [[nodiscard]] bool is_scalar() const noexcept { return kind < Kind::array; }
};

class JsonTree {
 public:
  enum class Parsed : std::uint8_t { whole, cut, bad };

  /// `cut`: right as far as it goes, and it ends too early. problem() says more of what is not whole.
  Parsed parse(std::string_view text);
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

  [[nodiscard]] const JsonNode* root() const noexcept { return nodes_.empty() ? nullptr : nodes_.data(); }
  /// The first child; nullptr where there is none.
  [[nodiscard]] const JsonNode* first(const JsonNode& node) const noexcept {
    const JsonNode* const child = &node + 1;
    return child < nodes_.data() + node.end ? child : nullptr;
  }
  /// The child of `parent` behind `node`.
  [[nodiscard]] const JsonNode* next(const JsonNode& parent, const JsonNode& node) const noexcept {
    return node.end < parent.end ? nodes_.data() + node.end : nullptr;
  }
  /// The member of an object, the first of its name; nullptr where there is none.
  [[nodiscard]] const JsonNode* member(const JsonNode& node, std::string_view name) const noexcept;
  [[nodiscard]] const JsonNode* item(const JsonNode& node, std::size_t index) const noexcept;
  /// What an RFC 6901 pointer names below `node`; the empty one is `node` itself.
  [[nodiscard]] const JsonNode* find(const JsonNode& node, std::string_view pointer) const;
  [[nodiscard]] std::size_t count(const JsonNode& node) const noexcept;

 private:
  bool value();
  bool open(JsonNode::Kind kind);
  bool between();
  bool name();

  JsonScanner scanner_;
  std::vector<JsonNode> nodes_;
  std::vector<std::uint32_t> open_;  // Arrays and objects not yet closed.
  std::string_view key_;
  std::string problem_;
};

}  // namespace kvingest::fetch
