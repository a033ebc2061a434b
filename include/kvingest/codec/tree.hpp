// kvingest/codec/tree.hpp -- binary trees as bytes: depth first, the structure in bits, the values in one array.
//
// A null pointer costs one bit and so does a node; equal values are kept once where that pays (a dictionary: each node
// then has an index into the values). src/codec/TREE.md describes the three forms, with an example.
//
// A tree to be written is seen through a view, which is anything with
//
//   using Handle = ...;                           // a pointer or an index: cheap to copy
//   Handle root() const;                          // also left(Handle) and right(Handle)
//   static bool is_null(Handle);
//   const V& value(Handle) const;
//
// A BinaryTree is its own view; PointerTree is one of nodes with members left, right and value.
//
// Nothing recurses: a list of ten million nodes is a tree like another. Input may be hostile: nothing is read outside
// it, it makes us allocate less than two nodes for each of its bytes, and it ends.
//
// Threads: values and functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kvingest/codec/integer_array.hpp"
#include "kvingest/codec/tree_format.hpp"
#include "kvingest/codec/tree_parts.hpp"
#include "kvingest/codec/tree_value.hpp"
#include "kvingest/result.hpp"

namespace kvingest::codec {

/// A tree whose nodes lie in one array, in depth-first order when it was read.
template <class V>
class BinaryTree {
 public:
  using Handle = std::uint32_t;
  struct Node {
    V value{};
    Handle left = kNoNode;
    Handle right = kNoNode;
  };

  [[nodiscard]] Handle root() const noexcept { return root_; }
  [[nodiscard]] Handle left(Handle node) const noexcept { return nodes_[node].left; }
  [[nodiscard]] Handle right(Handle node) const noexcept { return nodes_[node].right; }
  [[nodiscard]] const V& value(Handle node) const noexcept { return nodes_[node].value; }
  [[nodiscard]] static bool is_null(Handle node) noexcept { return node == kNoNode; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

  /// Adds a node that hangs nowhere yet.
  Handle add(V value) {
    nodes_.push_back({std::move(value), kNoNode, kNoNode});
    return static_cast<Handle>(nodes_.size() - 1);
  }
  void set_root(Handle node) noexcept { root_ = node; }
  void set_left(Handle parent, Handle node) noexcept { nodes_[parent].left = node; }
  void set_right(Handle parent, Handle node) noexcept { nodes_[parent].right = node; }
  /// For who fills a tree at once.
  [[nodiscard]] std::vector<Node>& nodes() noexcept { return nodes_; }

 private:
  std::vector<Node> nodes_;
  Handle root_ = kNoNode;
};

/// A view of nodes that point at one another.
template <class Node>
class PointerTree {
 public:
  using Handle = const Node*;
  explicit PointerTree(const Node* root) noexcept : root_(root) {}
  [[nodiscard]] Handle root() const noexcept { return root_; }
  [[nodiscard]] Handle left(Handle node) const noexcept { return std::to_address(node->left); }
  [[nodiscard]] Handle right(Handle node) const noexcept { return std::to_address(node->right); }
  [[nodiscard]] const auto& value(Handle node) const noexcept { return node->value; }
  [[nodiscard]] static bool is_null(Handle node) noexcept { return node == nullptr; }

 private:
  const Node* root_;
};

/// The tree as bytes. Fails with: too_large (more than kTreeNodesMax nodes, or a cycle, which is no tree; values beyond
/// 4 GiB).
template <class View>
[[nodiscard]] Result<std::string> write_tree(const View& tree, TreeForm form) {
  using V = std::remove_cvref_t<decltype(tree.value(tree.root()))>;
  switch (form) {
    case TreeForm::compact:
      return tree_parts::write<V, tree_parts::BitStructure>(tree);
    case TreeForm::in_place:
      return tree_parts::write<V, tree_parts::RecordStructure>(tree);
    case TreeForm::offsets:
      return tree_parts::write<V, tree_parts::OffsetStructure>(tree);
  }
  return fail(Code::invalid_argument, "tree: an unknown form {}", static_cast<int>(form));
}

/// Reads a tree of any form. Fails with: corrupt (the text says what and where), unsupported (a newer version),
/// invalid_argument (values of another kind).
template <class V>
[[nodiscard]] Result<BinaryTree<V>> read_tree(std::string_view bytes);

}  // namespace kvingest::codec

#include "kvingest/codec/tree_read.hpp"
