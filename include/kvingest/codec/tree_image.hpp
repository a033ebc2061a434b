// kvingest/codec/tree_image.hpp -- a serialized tree of the in-place form, read where it lies: in a mapped file, say.
//
// open() looks at the header only, whatever the size. Nodes are positions 0, 1, 2 ... in depth-first order.
//
// Threads:  values; any number of readers.
// Lifetime: borrows the bytes; a std::string_view that it hands out points into them.
// Errors:   damage must not lead anywhere: a child is always behind its parent, so every way down ends; what lies
//           outside the tree is no node, and the value that a damaged node has is empty or 0. verify() finds all damage
//           of the structure in one pass; who does not trust the bytes calls it first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/tree_format.hpp"
#include "kvingest/codec/tree_parts.hpp"
#include "kvingest/codec/tree_value.hpp"
#include "kvingest/result.hpp"

namespace kvingest::codec {

template <class V>
class TreeImage {
  using Trait = TreeValue<V>;

 public:
  using Handle = std::uint32_t;
  /// What a node's value is seen as: itself, or the bytes of one that has its own size.
  using Seen = std::conditional_t<Trait::kBytes != 0, V, std::string_view>;

  /// Fails with: corrupt (no tree of this form, or not as long as it says), unsupported, invalid_argument.
  [[nodiscard]] static Result<TreeImage> open(std::string_view bytes) {
    auto header = read_tree_header(bytes, Trait::kKind, Trait::kBytes);
    KV_TRY(header);
    if (header->form != TreeForm::in_place)
      return fail(Code::corrupt, "tree: form {} is not the one that is read in place", static_cast<int>(header->form));
    return TreeImage(bytes, *header);
  }

  [[nodiscard]] std::size_t size() const noexcept { return header_.nodes; }
  [[nodiscard]] Handle root() const noexcept { return header_.nodes == 0 ? kNoNode : 0; }
  [[nodiscard]] Handle left(Handle node) const noexcept {
    const bool has_left = (word(node) & tree_parts::RecordStructure::kHasLeft) != 0;
    return has_left && node + 1 < header_.nodes ? node + 1 : kNoNode;
  }
  [[nodiscard]] Handle right(Handle node) const noexcept {
    const Handle child = word(node) & ~tree_parts::RecordStructure::kHasLeft;
    return child > node && child < header_.nodes ? child : kNoNode;
  }
  [[nodiscard]] static bool is_null(Handle node) noexcept { return node == kNoNode; }
  [[nodiscard]] Seen value(Handle node) const noexcept {
    const std::uint64_t index = header_.dictionary ? get_fixed<std::uint32_t>(record(node) + 4) : node;
    if (index >= header_.values) return Seen{};
    if constexpr (Trait::kBytes != 0)
      return Trait::get(values_ + index * Trait::kBytes);
    else
      return text(index);
  }

  /// Looks at all of it. Fails with: corrupt (which node or value is not as it was written).
  [[nodiscard]] Result<void> verify() const {
    KV_TRY(verify_values());
    // The nodes in the order in which they must come: each is the left child of the one before, or the right child of
    // the last one that waits for one.
    std::vector<Handle> waiting;
    for (Handle node = 0; node < header_.nodes; ++node) {
      const Handle right_child = word(node) & ~tree_parts::RecordStructure::kHasLeft;
      const bool has_left = (word(node) & tree_parts::RecordStructure::kHasLeft) != 0;
      const bool points_back = right_child != 0 && (right_child <= node || right_child >= header_.nodes);
      const bool has_value = !header_.dictionary || get_fixed<std::uint32_t>(record(node) + 4) < header_.values;
      if (points_back || !has_value) return damaged(node);
      if (right_child != 0) waiting.push_back(right_child);
      if (has_left) {
        if (node + 1 == header_.nodes || right_child == node + 1) return damaged(node);
        continue;
      }
      // Its left side is at its end: the next node is the right child of the nearest that has one.
      if (waiting.empty() ? node + 1 != header_.nodes : waiting.back() != node + 1) return damaged(node);
      if (!waiting.empty()) waiting.pop_back();
    }
    return {};
  }

 private:
  TreeImage(std::string_view bytes, const TreeHeader& header) noexcept
      : header_(header),
        records_(bytes.data() + kTreeHeaderBytes),
        values_(records_ + header.structure_bytes()),
        end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] const char* record(Handle node) const noexcept {
    return records_ + std::uint64_t{node} * (header_.dictionary ? 8 : 4);
  }
  [[nodiscard]] std::uint32_t word(Handle node) const noexcept { return get_fixed<std::uint32_t>(record(node)); }
  [[nodiscard]] static tl::unexpected<Error> damaged(Handle node) {
    return fail(Code::corrupt, "tree: node {} is damaged", node);
  }

  // Of values that have their own size: where each ends, then their bytes.
  [[nodiscard]] std::uint32_t value_end(std::uint64_t index) const noexcept {
    return get_fixed<std::uint32_t>(values_ + 4 * index);
  }
  [[nodiscard]] std::string_view text(std::uint64_t index) const noexcept {
    const char* const texts = values_ + 4 * header_.values;
    const std::uint32_t begin = index == 0 ? 0 : value_end(index - 1);
    const std::uint32_t end = value_end(index);
    if (begin > end || end > static_cast<std::uint64_t>(end_ - texts)) return {};
    return {texts + begin, end - begin};
  }
  [[nodiscard]] Result<void> verify_values() const {
    if constexpr (Trait::kBytes != 0) {
      const std::uint64_t bytes = header_.values * Trait::kBytes;
      if (bytes != static_cast<std::uint64_t>(end_ - values_))
        return fail(Code::corrupt, "tree: bytes behind its values");
    } else {
      std::uint32_t before = 0;
      for (std::uint64_t i = 0; i < header_.values; ++i) {
        if (value_end(i) < before) return fail(Code::corrupt, "tree: value {} ends before it begins", i);
        before = value_end(i);
      }
      if (before != static_cast<std::uint64_t>(end_ - values_) - 4 * header_.values)
        return fail(Code::corrupt, "tree: its values end at {} and not at the end", before);
    }
    return {};
  }

  TreeHeader header_;
  const char* records_;
  const char* values_;
  const char* end_;
};

}  // namespace kvingest::codec
