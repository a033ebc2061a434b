// kvingest/codec/tree_read.hpp -- how a tree is read back: the structure first, then the values into its nodes.
//
// Part of tree.hpp, which includes it at its end.
#pragma once

#include "kvingest/codec/tree.hpp"
#include "kvingest/codec/tree_image.hpp"

namespace kvingest::codec {
namespace tree_parts {

/// Hangs nodes on one another as they come, depth first. Nodes whose right child is still to come are a list through
/// their `right`: no memory but the nodes is needed, however deep the tree.
template <class Node>
class Linker {
 public:
  Linker(std::vector<Node>& nodes, std::uint32_t& root) noexcept : nodes_(nodes), place_(&root) {}

  /// false: there are more of them than was said.
  bool node() noexcept {
    if (made_ == nodes_.size()) return false;
    *place_ = made_;
    Node& node = nodes_[made_];
    node.right = waiting_;
    waiting_ = made_++;
    place_ = &node.left;
    return true;
  }
  /// false: that was the last pointer of the tree.
  bool none() noexcept {
    *place_ = kNoNode;
    if (waiting_ == kNoNode) return false;
    place_ = &nodes_[waiting_].right;
    waiting_ = *place_;
    return true;
  }
  [[nodiscard]] std::uint32_t made() const noexcept { return made_; }

 private:
  std::vector<Node>& nodes_;
  std::uint32_t* place_;  // Where the next one is hung.
  std::uint32_t waiting_ = kNoNode;
  std::uint32_t made_ = 0;
};

/// Hangs the nodes of `pointers` pointers, of which is_node(i) says whether pointer i has one.
template <class Node, class IsNode>
Result<void> link_nodes(std::vector<Node>& nodes, std::uint32_t& root, std::uint64_t pointers, IsNode&& is_node) {
  Linker<Node> linker(nodes, root);
  for (std::uint64_t i = 0; i < pointers; ++i) {
    const bool goes_on = is_node(i) ? linker.node() : linker.none();
    if (goes_on) continue;
    if (i + 1 == pointers && linker.made() == nodes.size()) return {};
    return fail(Code::corrupt, "tree: ends at pointer {} of {} with {} nodes of {}", i, pointers, linker.made(),
                nodes.size());
  }
  return fail(Code::corrupt, "tree: does not end within its {} pointers", pointers);
}

/// Fills `to(i)` for each of `count` values from [from, end), which they use up.
template <class V, class To>
Result<void> read_values(const char* from, const char* end, std::uint64_t count, To&& to) {
  using Trait = TreeValue<V>;
  const auto left = [&] { return static_cast<std::uint64_t>(end - from); };
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t bytes = Trait::kBytes;
    if constexpr (Trait::kBytes == 0) {
      const char* const begin = get_varint(from, end, bytes);
      if (begin == nullptr) return fail(Code::corrupt, "tree: the length of value {} is malformed", i);
      from = begin;
    }
    if (bytes > left()) return fail(Code::corrupt, "tree: value {} of {} is beyond the end", i, count);
    if constexpr (Trait::kBytes == 0)
      to(i) = Trait::from({from, bytes});
    else
      to(i) = Trait::get(from);
    from += bytes;
  }
  if (left() != 0) return fail(Code::corrupt, "tree: {} bytes behind the last value", left());
  return {};
}

/// The values of the compact and the offset form, `indices` into which are empty without a dictionary.
template <class V>
Result<void> fill_values(BinaryTree<V>& tree, const TreeHeader& header, const std::vector<std::uint32_t>& indices,
                         const char* from, const char* end) {
  auto& nodes = tree.nodes();
  if (!header.dictionary)
    return read_values<V>(from, end, header.values, [&](std::uint64_t i) -> V& { return nodes[i].value; });
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= header.values)
      return fail(Code::corrupt, "tree: node {} has value {} of {}", i, indices[i], header.values);
  }
  std::vector<V> values(header.values);
  KV_TRY(read_values<V>(from, end, header.values, [&](std::uint64_t i) -> V& { return values[i]; }));
  for (std::size_t i = 0; i < indices.size(); ++i) nodes[i].value = values[indices[i]];
  return {};
}

template <class V>
Result<void> read_compact(BinaryTree<V>& tree, std::uint32_t& root, const TreeHeader& header, std::string_view bytes) {
  const char* at = bytes.data() + kTreeHeaderBytes;
  const char* const end = bytes.data() + bytes.size();
  const std::uint64_t pointers = 2 * header.nodes + 1;
  KV_TRY(link_nodes(tree.nodes(), root, pointers,
                    [&](std::uint64_t i) { return (static_cast<unsigned char>(at[i / 8]) >> (i % 8) & 1) != 0; }));
  at += header.structure_bytes();
  if (pointers % 8 != 0 && static_cast<unsigned char>(at[-1]) >> (pointers % 8) != 0)
    return fail(Code::corrupt, "tree: bits behind its structure");
  std::vector<std::uint32_t> indices(header.dictionary ? header.nodes : 0);
  auto used = decode_array<std::uint32_t>(Form::leb128, {at, end}, indices);
  if (!used) return fail(std::move(used).error(), "tree: the indices");
  return fill_values(tree, header, indices, at + *used, end);
}

template <class V>
Result<void> read_offsets(BinaryTree<V>& tree, std::uint32_t& root, const TreeHeader& header, std::string_view bytes) {
  const char* const at = bytes.data() + kTreeHeaderBytes;
  const auto word = [&](std::uint64_t i) { return get_fixed<std::uint32_t>(at + i * sizeof(std::uint32_t)); };
  const std::uint64_t pointers = 2 * header.nodes + 1;
  std::vector<std::uint32_t> indices;
  indices.reserve(header.nodes);
  KV_TRY(link_nodes(tree.nodes(), root, pointers, [&](std::uint64_t i) {
    const std::uint32_t offset = word(i);
    if (offset != 0 && indices.size() < header.nodes) indices.push_back(offset - 1);
    return offset != 0;
  }));
  for (std::uint32_t i = 0; !header.dictionary && i < indices.size(); ++i) {
    if (indices[i] != i) return fail(Code::corrupt, "tree: node {} has value {}, without a dictionary", i, indices[i]);
  }
  return fill_values(tree, header, indices, at + header.structure_bytes(), bytes.data() + bytes.size());
}

template <class V>
Result<void> read_in_place(BinaryTree<V>& tree, std::uint32_t& root, std::string_view bytes) {
  auto image = TreeImage<V>::open(bytes);
  KV_TRY(image);
  KV_TRY(image->verify());
  auto& nodes = tree.nodes();
  for (std::uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = {V(image->value(i)), image->left(i), image->right(i)};
  root = image->root();
  return {};
}

}  // namespace tree_parts

template <class V>
Result<BinaryTree<V>> read_tree(std::string_view bytes) {
  auto header = read_tree_header(bytes, TreeValue<V>::kKind, TreeValue<V>::kBytes);
  KV_TRY(header);
  BinaryTree<V> tree;
  tree.nodes().resize(header->nodes);
  std::uint32_t root = kNoNode;
  switch (header->form) {
    case TreeForm::compact:
      KV_TRY(tree_parts::read_compact(tree, root, *header, bytes));
      break;
    case TreeForm::in_place:
      KV_TRY(tree_parts::read_in_place(tree, root, bytes));
      break;
    case TreeForm::offsets:
      KV_TRY(tree_parts::read_offsets(tree, root, *header, bytes));
      break;
  }
  tree.set_root(root);
  return tree;
}

}  // namespace kvingest::codec
