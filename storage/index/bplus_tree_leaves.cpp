// bplus_tree_leaves.cpp -- a B+tree taken apart leaf by leaf, and made again of leaves: each keeps what it held, so
// that a tree that is loaded grows as the one that was saved would have.
#include <algorithm>

#include "base/check.hpp"
#include "storage/index/bplus_tree.hpp"

namespace kvingest {
namespace {

// Of an inner node's children: the rest is room for splits.
constexpr std::size_t kChildrenFilled = 64;

// Of two neighbours as far as prefix and size class tell: two long keys may agree in both.
bool is_below(BplusTree::Prefix left, std::uint8_t left_class, BplusTree::Prefix right, std::uint8_t right_class) {
  if (left != right) return left < right;
  return left_class < right_class || (left_class == right_class && left_class == BplusTree::kLongKey);
}

}  // namespace

BplusTree::Entries BplusTree::take_leaf(Cursor& cursor) const noexcept {
  const Leaf& node = leaf(cursor.leaf_);
  const std::uint32_t from = cursor.position_;
  cursor.leaf_ = node.next;
  cursor.position_ = 0;
  return {std::span(node.prefixes).subspan(from, node.count - from),
          std::span(node.words).subspan(from, node.count - from)};
}

void BplusTree::clear() noexcept {
  clear_root();
  leaves_begun_ = 0;
  arena_.restart(0);
}

bool BplusTree::begin_leaves(std::size_t count) {
  clear();
  if (!room_for(count)) return false;
  arena_.restart(count);
  leaves_begun_ = count;
  return true;
}

bool BplusTree::fill_leaf(std::size_t number, const Entries& entries) noexcept {
  KV_ASSERT(number < leaves_begun_ && entries.words.size() <= kLeafEntries);
  Leaf& node = leaf(static_cast<Id>(number));
  node.count = static_cast<std::uint32_t>(entries.words.size());
  std::ranges::copy(entries.prefixes, node.prefixes);
  std::ranges::copy(entries.words, node.words);
  for (std::uint32_t i = 1; i < node.count; ++i) {
    if (!is_below(node.prefixes[i - 1], class_of(node.words[i - 1]), node.prefixes[i], class_of(node.words[i]))) {
      return false;
    }
  }
  return true;
}

bool BplusTree::finish_leaves() {
  std::vector<Separated> level;
  level.reserve(leaves_begun_);
  for (Id id = 0; id < leaves_begun_; ++id) {
    Leaf& node = leaf(id);
    if (node.count == 0) {
      arena_.release(id);
      continue;
    }
    node.previous = level.empty() ? NodeArena::kNone : level.back().node;
    node.next = NodeArena::kNone;
    if (!level.empty()) {
      Leaf& before = leaf(level.back().node);
      const std::uint32_t last = before.count - 1;
      if (!is_below(before.prefixes[last], class_of(before.words[last]), node.prefixes[0], class_of(node.words[0]))) {
        return false;
      }
      before.next = id;
    }
    size_ += node.count;
    level.push_back({id, node.prefixes[0], class_of(node.words[0])});
  }
  leaves_begun_ = 0;
  if (level.empty()) {
    clear();
    return true;
  }
  first_leaf_ = level.front().node;
  last_leaf_ = level.back().node;
  while (level.size() > 1) {
    std::vector<Separated> above;
    const std::size_t nodes = (level.size() + kChildrenFilled - 1) / kChildrenFilled;
    for (std::size_t i = 0; i < nodes; ++i) {  // Evenly: none of them is nearly empty.
      const std::size_t begin = level.size() * i / nodes;
      append_inner(std::span(level).subspan(begin, level.size() * (i + 1) / nodes - begin), above);
    }
    level = std::move(above);
    ++height_;
  }
  root_ = level.front().node;
  return true;
}

void BplusTree::append_inner(std::span<const Separated> children, std::vector<Separated>& level) {
  const Id id = arena_.allocate();
  Inner& node = inner(id);
  node.count = 0;
  for (const Separated& child : children) {
    node.children[node.count] = child.node;
    node.prefixes[node.count] = child.prefix;
    node.classes[node.count++] = child.size_class;
  }
  level.push_back({id, children.front().prefix, children.front().size_class});
}

}  // namespace kvingest
