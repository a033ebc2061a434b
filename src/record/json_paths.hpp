// json_paths.hpp -- the fields that a plan wants of a JSON object, as a tree of their steps, and what the walk through
// an object needs to meet them.
//
// Threads: one thread at a time: it remembers which members of the message in hand were met.
#pragma once

#include <charconv>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/text_template.hpp"

namespace kvingest {

class JsonPaths {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Node {
    std::string step;             ///< The member's name, or the element's index in decimal.
    std::size_t field = kNone;    ///< The field that ends here.
    std::vector<Node*> children;  ///< Few: a search is a walk.
    std::uint64_t met_in = 0;     ///< The message in which it was met last.
  };

  explicit JsonPaths(std::span<const FieldPath> fields) {
    for (std::size_t field = 0; field < fields.size(); ++field) {
      Node* node = &nodes_.front();
      for (const std::string& step : fields[field].steps) node = made_child(*node, step);
      node->field = field;
    }
  }

  /// Begins another message.
  void start() noexcept { ++message_; }
  [[nodiscard]] Node* root() noexcept { return &nodes_.front(); }

  /// The wanted child of `node` (which may be null) of that name; null, where none is wanted, and for a name that was
  /// met before: of duplicates the first is meant.
  [[nodiscard]] Node* child(Node* node, std::string_view name) noexcept {
    if (node == nullptr) return nullptr;
    for (Node* child : node->children) {
      if (child->step == name) return met(child);
    }
    return nullptr;
  }
  [[nodiscard]] Node* child(Node* node, std::size_t index) noexcept {
    if (node == nullptr || node->children.empty()) return nullptr;
    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, index).ptr;
    return child(node, std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }

 private:
  [[nodiscard]] Node* met(Node* node) const noexcept {
    if (node->met_in == message_) return nullptr;
    node->met_in = message_;
    return node;
  }
  Node* made_child(Node& parent, const std::string& step) {
    for (Node* child : parent.children) {
      if (child->step == step) return child;
    }
    Node& child = nodes_.emplace_back();
    child.step = step;
    parent.children.push_back(&child);
    return &child;
  }

  std::deque<Node> nodes_ = std::deque<Node>(1);  // Nodes stay where they are.
  std::uint64_t message_ = 0;
};

}  // namespace kvingest
