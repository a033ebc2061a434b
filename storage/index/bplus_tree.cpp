#include "storage/index/bplus_tree.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest {
namespace {

// Moves the elements [from, count) of a node's array to begin at `to`.
template <class T>
void shift(T* array, std::uint32_t count, std::uint32_t from, std::uint32_t to) {
  std::memmove(array + to, array + from, (count - from) * sizeof(T));
}

}  // namespace

BplusTree::Key::Key(std::string_view bytes) noexcept
    : size_class(static_cast<std::uint8_t>(std::min<std::size_t>(bytes.size(), kLongKey))), whole(bytes) {
  char padded[sizeof(Prefix)] = {};
  std::memcpy(padded, bytes.data(), std::min(bytes.size(), sizeof padded));
  prefix = Prefix{codec::get_ordered<std::uint64_t>(padded)} << 64 | codec::get_ordered<std::uint64_t>(padded + 8);
}

Result<BplusTree> BplusTree::create(const KeySource& source, std::size_t bytes_max) {
  auto arena = NodeArena::reserve(kNodeBytes, bytes_max);
  KV_TRY(arena);
  return BplusTree(source, std::move(*arena));
}

void BplusTree::clear_root() noexcept {
  height_ = 0;
  root_ = first_leaf_ = last_leaf_ = NodeArena::kNone;
  size_ = 0;
}

bool BplusTree::room_for(std::size_t puts) const noexcept {
  // The worst case: every put splits another leaf, and some of those an inner node each.
  return arena_.free_slots() > puts + puts / (kInnerChildren / 2) + kHeightMax;
}

// ---- comparing ------------------------------------------------------------------------------------------------------

// Negative when the entry is below `key`, positive when above.
int BplusTree::compare(const Leaf& node, std::uint32_t position, const Key& key) const {
  if (node.prefixes[position] != key.prefix) return node.prefixes[position] < key.prefix ? -1 : 1;
  const std::uint8_t size_class = class_of(node.words[position]);
  if (size_class != key.size_class || size_class < kLongKey) return int{size_class} - int{key.size_class};
  return whole_key(node, position).compare(key.whole);
}

// Whether the keys of child `child` are all above `key`, whose prefix is that of the child's separator.
bool BplusTree::separator_above(const Inner& node, std::uint32_t child, std::uint32_t height, const Key& key) const {
  if (node.classes[child] != key.size_class || key.size_class < kLongKey) return node.classes[child] > key.size_class;
  Id least = node.children[child];
  for (--height; height > 0; --height) least = inner(least).children[0];
  return compare(leaf(least), 0, key) > 0;
}

std::uint32_t BplusTree::child_for(const Inner& node, std::uint32_t height, const Key& key) const {
  std::uint32_t base = 0;  // The last child whose separator's prefix is at most the key's.
  for (std::uint32_t n = node.count; n > 1;) {
    const std::uint32_t half = n / 2;
    base = node.prefixes[base + half] <= key.prefix ? base + half : base;
    n -= half;
  }
  if (base == 0 || node.prefixes[base] != key.prefix) return base;
  // Separators with the key's own prefix: find the last of them that is not above the key.
  std::uint32_t low = 0;  // Not above.
  for (std::uint32_t high = base + 1; high - low > 1;) {
    const std::uint32_t middle = low + (high - low) / 2;
    const bool above = node.prefixes[middle] == key.prefix && separator_above(node, middle, height, key);
    (above ? high : low) = middle;
  }
  return low;
}

// The first entry of the leaf that is not less than `key`.
BplusTree::Place BplusTree::place_in(const Leaf& node, const Key& key) const {
  std::uint32_t base = 0;
  for (std::uint32_t n = node.count; n > 1;) {
    const std::uint32_t half = n / 2;
    base = node.prefixes[base + half - 1] < key.prefix ? base + half : base;
    n -= half;
  }
  return place_from(node, base, key);
}

// The same, where the entries before `base` are known to be less, and the one behind it not.
BplusTree::Place BplusTree::place_from(const Leaf& node, std::uint32_t base, const Key& key) const {
  if (base < node.count && node.prefixes[base] < key.prefix) ++base;
  if (base == node.count || node.prefixes[base] != key.prefix) return {base, false};
  std::uint32_t end = base + 1;  // Entries with the key's own prefix: [base, end).
  while (end < node.count && node.prefixes[end] == key.prefix) ++end;
  while (base < end) {
    const std::uint32_t middle = base + (end - base) / 2;
    const int order = compare(node, middle, key);
    if (order == 0) return {middle, true};
    if (order < 0) {
      base = middle + 1;
    } else {
      end = middle;
    }
  }
  return {base, false};
}

NodeArena::Id BplusTree::descend(const Key& key) const {
  Id node = root_;
  for (std::uint32_t height = height_; height > 0; --height) {
    const Inner& here = inner(node);
    node = here.children[child_for(here, height, key)];
  }
  return node;
}

void BplusTree::descend(const Key& key, Path& path) const {
  Id node = root_;
  for (std::uint32_t depth = 0; depth < height_; ++depth) {
    const Inner& here = inner(node);
    const std::uint32_t child = child_for(here, height_ - depth, key);
    path.steps[depth] = {node, child};
    node = here.children[child];
  }
  path.leaf = node;
}

// ---- reading --------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> BplusTree::find(std::string_view key) const {
  if (size_ == 0) return std::nullopt;
  const Key wanted(key);
  const Leaf& node = leaf(descend(wanted));
  const Place place = place_in(node, wanted);
  if (!place.found) return std::nullopt;
  return node.words[place.position] & kValueMask;
}

void BplusTree::find_many(std::span<const std::string_view> keys,
                          std::span<std::optional<std::uint64_t>> values) const {
  KV_ASSERT(keys.size() == values.size());
  for (std::size_t at = 0; at < keys.size(); at += kSideBySide) {
    const std::size_t count = std::min(kSideBySide, keys.size() - at);
    find_group(keys.subspan(at, count), values.subspan(at, count));
  }
}

// Each step asks for the memory that the next one of the same descent needs, and then goes on with the others.
void BplusTree::find_group(std::span<const std::string_view> keys,
                           std::span<std::optional<std::uint64_t>> values) const {
  struct Descent {
    Key key;
    Id node;
    std::uint32_t base;
    std::uint32_t left;
  };
  std::array<Descent, kSideBySide> all;
  if (size_ == 0) return std::fill(values.begin(), values.end(), std::nullopt);
  const std::span<Descent> descents(all.data(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) descents[i] = {Key(keys[i]), root_, 0, 0};

  for (std::uint32_t height = height_; height > 0; --height) {
    for (Descent& one : descents) {
      const Inner& here = inner(one.node);
      one.node = here.children[child_for(here, height, one.key)];
      __builtin_prefetch(arena_.at(one.node));
    }
  }
  for (Descent& one : descents) {
    const Leaf& node = leaf(one.node);
    one.left = node.count;
    __builtin_prefetch(&node.prefixes[std::max(node.count / 2, 1U) - 1]);
  }
  for (bool more = true; more;) {
    more = false;
    for (Descent& one : descents) {
      if (one.left <= 1) continue;
      const Leaf& node = leaf(one.node);
      const std::uint32_t half = one.left / 2;
      one.base = node.prefixes[one.base + half - 1] < one.key.prefix ? one.base + half : one.base;
      one.left -= half;
      if (one.left == 1) __builtin_prefetch(&node.words[one.base]);
      __builtin_prefetch(&node.prefixes[one.base + std::max(one.left / 2, 1U) - 1]);
      more |= one.left > 1;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Leaf& node = leaf(descents[i].node);
    const Place place = place_from(node, descents[i].base, descents[i].key);
    values[i] = place.found ? std::optional(node.words[place.position] & kValueMask) : std::nullopt;
  }
}

BplusTree::Cursor BplusTree::first() const noexcept {
  Cursor cursor;
  cursor.leaf_ = first_leaf_;
  return cursor;
}

BplusTree::Cursor BplusTree::last() const noexcept {
  Cursor cursor;
  cursor.leaf_ = last_leaf_;
  if (cursor.valid()) cursor.position_ = leaf(last_leaf_).count - 1;
  return cursor;
}

BplusTree::Cursor BplusTree::lower_bound(std::string_view key) const {
  Cursor cursor;
  if (size_ == 0) return cursor;
  const Key wanted(key);
  cursor.leaf_ = descend(wanted);
  cursor.position_ = place_in(leaf(cursor.leaf_), wanted).position;
  if (cursor.position_ == leaf(cursor.leaf_).count) {
    cursor.leaf_ = leaf(cursor.leaf_).next;
    cursor.position_ = 0;
  }
  return cursor;
}

BplusTree::Cursor BplusTree::before(std::string_view key) const {
  Cursor cursor = lower_bound(key);
  if (!cursor.valid()) return last();
  previous(cursor);
  return cursor;
}

void BplusTree::next(Cursor& cursor) const noexcept {
  const Leaf& node = leaf(cursor.leaf_);
  if (++cursor.position_ < node.count) return;
  cursor.leaf_ = node.next;
  cursor.position_ = 0;
}

void BplusTree::previous(Cursor& cursor) const noexcept {
  if (cursor.position_ > 0) {
    --cursor.position_;
    return;
  }
  cursor.leaf_ = leaf(cursor.leaf_).previous;
  if (cursor.valid()) cursor.position_ = leaf(cursor.leaf_).count - 1;
}

std::uint64_t BplusTree::value(const Cursor& cursor) const noexcept {
  return leaf(cursor.leaf_).words[cursor.position_] & kValueMask;
}

std::string_view BplusTree::key(const Cursor& cursor, KeyBuffer& buffer) const {
  const Leaf& node = leaf(cursor.leaf_);
  const std::uint8_t size_class = class_of(node.words[cursor.position_]);
  if (size_class == kLongKey) return whole_key(node, cursor.position_);
  const Prefix prefix = node.prefixes[cursor.position_];
  codec::put_ordered(buffer.data(), static_cast<std::uint64_t>(prefix >> 64));
  codec::put_ordered(buffer.data() + 8, static_cast<std::uint64_t>(prefix));
  return {buffer.data(), size_class};
}

void BplusTree::set_value(const Cursor& cursor, std::uint64_t value) noexcept {
  std::uint64_t& word = leaf(cursor.leaf_).words[cursor.position_];
  word = (word & ~kValueMask) | value;
}

// ---- inserting ------------------------------------------------------------------------------------------------------

bool BplusTree::belongs_at_end(const Key& key) const {
  const Leaf& node = leaf(last_leaf_);
  return node.count < append_limit_ && compare(node, node.count - 1, key) < 0;
}

std::optional<std::uint64_t> BplusTree::put(std::string_view key, std::uint64_t value) {
  KV_ASSERT(value <= kValueMask);
  const Key wanted(key);
  const std::uint64_t word = std::uint64_t{wanted.size_class} << kValueBits | value;
  if (size_ == 0) {
    root_ = first_leaf_ = last_leaf_ = arena_.allocate();
    leaf(root_) = Leaf{.count = 0, .previous = NodeArena::kNone, .next = NodeArena::kNone};
  } else if (!belongs_at_end(wanted)) {
    Path path;
    descend(wanted, path);
    Leaf& node = leaf(path.leaf);
    const Place place = place_in(node, wanted);
    if (place.found) return std::exchange(node.words[place.position], word) & kValueMask;
    insert_at(path, place.position, wanted, word);
    return std::nullopt;
  }
  Leaf& node = leaf(last_leaf_);
  node.prefixes[node.count] = wanted.prefix;
  node.words[node.count++] = word;
  ++size_;
  return std::nullopt;
}

void BplusTree::insert_at(Path& path, std::uint32_t position, const Key& key, std::uint64_t word) {
  Leaf* node = &leaf(path.leaf);
  const bool limited = path.leaf == last_leaf_ && position == node->count && node->count >= append_limit_;
  ++size_;
  if (node->count < kLeafEntries && !limited) {
    shift(node->prefixes, node->count, position, position + 1);
    shift(node->words, node->count, position, position + 1);
    node->prefixes[position] = key.prefix;
    node->words[position] = word;
    ++node->count;
    return;
  }
  const Id right_id = split_leaf(*node, path.leaf, position);
  Leaf& right = leaf(right_id);
  if (position >= node->count && (right.count == 0 || position > node->count)) {
    position -= node->count;
    node = &right;
  }
  shift(node->prefixes, node->count, position, position + 1);
  shift(node->words, node->count, position, position + 1);
  node->prefixes[position] = key.prefix;
  node->words[position] = word;
  ++node->count;
  insert_child(path, height_, right.prefixes[0], class_of(right.words[0]), right_id);
}

// Makes a right neighbour of a leaf that is full, or filled as far as it may be: empty when the new entry goes behind
// the last one, else with the upper half.
NodeArena::Id BplusTree::split_leaf(Leaf& full, Id full_id, std::uint32_t position) {
  const Id right_id = arena_.allocate();
  Leaf& right = leaf(right_id);
  const std::uint32_t keep = position == full.count ? full.count : kLeafEntries / 2;
  right.count = full.count - keep;
  right.previous = full_id;
  right.next = full.next;
  std::memcpy(right.prefixes, full.prefixes + keep, right.count * sizeof(Prefix));
  std::memcpy(right.words, full.words + keep, right.count * sizeof(std::uint64_t));
  full.count = keep;
  full.next = right_id;
  if (right.next == NodeArena::kNone) {
    last_leaf_ = right_id;
  } else {
    leaf(right.next).previous = right_id;
  }
  return right_id;
}

// Puts `child` behind the one that the path took at depth - 1.
void BplusTree::insert_child(Path& path, std::uint32_t depth, Prefix prefix, std::uint8_t size_class, Id child) {
  if (depth == 0) {  // The root was split.
    KV_ASSERT(height_ + 1 < kHeightMax);
    const Id old_root = std::exchange(root_, arena_.allocate());
    Inner& root = inner(root_);
    root.count = 2;
    root.children[0] = old_root;
    root.children[1] = child;
    root.prefixes[1] = prefix;
    root.classes[1] = size_class;
    ++height_;
    return;
  }
  const Step step = path.steps[depth - 1];
  Inner* node = &inner(step.node);
  std::uint32_t position = step.child + 1;
  Id right_id = NodeArena::kNone;
  if (node->count == kInnerChildren) {
    right_id = arena_.allocate();
    Inner& right = inner(right_id);
    const std::uint32_t keep = position == kInnerChildren ? kInnerChildren : kInnerChildren / 2;
    right.count = kInnerChildren - keep;
    std::memcpy(right.prefixes, node->prefixes + keep, right.count * sizeof(Prefix));
    std::memcpy(right.children, node->children + keep, right.count * sizeof(Id));
    std::memcpy(right.classes, node->classes + keep, right.count);
    node->count = keep;
    if (position > keep || right.count == 0) {
      position -= keep;
      node = &right;
    }
  }
  shift(node->prefixes, node->count, position, position + 1);
  shift(node->children, node->count, position, position + 1);
  shift(node->classes, node->count, position, position + 1);
  node->prefixes[position] = prefix;
  node->children[position] = child;
  node->classes[position] = size_class;
  ++node->count;
  if (right_id == NodeArena::kNone) return;
  const Inner& right = inner(right_id);
  insert_child(path, depth - 1, right.prefixes[0], right.classes[0], right_id);
}

// ---- erasing --------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> BplusTree::erase(std::string_view key) {
  if (size_ == 0) return std::nullopt;
  const Key wanted(key);
  Path path;
  descend(wanted, path);
  const Leaf& node = leaf(path.leaf);
  const Place place = place_in(node, wanted);
  if (!place.found) return std::nullopt;
  const std::uint64_t value = node.words[place.position] & kValueMask;
  erase_at(path, place.position);
  return value;
}

void BplusTree::erase_at(Path& path, std::uint32_t position) {
  Leaf& node = leaf(path.leaf);
  shift(node.prefixes, node.count, position + 1, position);
  shift(node.words, node.count, position + 1, position);
  --node.count;
  --size_;
  if (node.count == 0) {
    unlink(node);
    arena_.release(path.leaf);
    remove_child(path, height_);
    return;
  }
  if (node.count < kLeafEntries / 4 && height_ > 0) merge_leaf(path);
}

void BplusTree::unlink(const Leaf& node) noexcept {
  (node.previous == NodeArena::kNone ? first_leaf_ : leaf(node.previous).next) = node.next;
  (node.next == NodeArena::kNone ? last_leaf_ : leaf(node.next).previous) = node.previous;
}

// Takes the child away that the path took at depth - 1; its node is released already.
void BplusTree::remove_child(Path& path, std::uint32_t depth) {
  if (depth == 0) {
    clear_root();
    return;
  }
  const Step step = path.steps[depth - 1];
  Inner& node = inner(step.node);
  shift(node.prefixes, node.count, step.child + 1, step.child);
  shift(node.children, node.count, step.child + 1, step.child);
  shift(node.classes, node.count, step.child + 1, step.child);
  --node.count;
  if (node.count == 0) {
    arena_.release(step.node);
    remove_child(path, depth - 1);
  } else if (depth == 1 && node.count == 1) {
    root_ = node.children[0];
    --height_;
    arena_.release(step.node);
  } else if (depth > 1 && node.count < kInnerChildren / 4) {
    merge_inner(path, depth - 1);
  }
}

// Joins a sparse leaf with a neighbour under the same parent, if the two leave room for more.
void BplusTree::merge_leaf(Path& path) {
  Step& step = path.steps[height_ - 1];
  const Inner& parent = inner(step.node);
  if (parent.count < 2) return;
  const std::uint32_t left_child = step.child > 0 ? step.child - 1 : 0;
  Leaf& left = leaf(parent.children[left_child]);
  const Id right_id = parent.children[left_child + 1];
  const Leaf& right = leaf(right_id);
  if (left.count + right.count > kLeafEntries * 3 / 4) return;
  std::memcpy(left.prefixes + left.count, right.prefixes, right.count * sizeof(Prefix));
  std::memcpy(left.words + left.count, right.words, right.count * sizeof(std::uint64_t));
  left.count += right.count;
  unlink(right);
  arena_.release(right_id);
  step.child = left_child + 1;
  remove_child(path, height_);
}

// The same for the inner node that the path took at depth - 1.
void BplusTree::merge_inner(Path& path, std::uint32_t depth) {
  Step& step = path.steps[depth - 1];
  const Inner& parent = inner(step.node);
  if (parent.count < 2) return;
  const std::uint32_t left_child = step.child > 0 ? step.child - 1 : 0;
  Inner& left = inner(parent.children[left_child]);
  const Id right_id = parent.children[left_child + 1];
  Inner& right = inner(right_id);
  if (left.count + right.count > kInnerChildren * 3 / 4) return;
  right.prefixes[0] = parent.prefixes[left_child + 1];
  right.classes[0] = parent.classes[left_child + 1];
  std::memcpy(left.prefixes + left.count, right.prefixes, right.count * sizeof(Prefix));
  std::memcpy(left.children + left.count, right.children, right.count * sizeof(Id));
  std::memcpy(left.classes + left.count, right.classes, right.count);
  left.count += right.count;
  arena_.release(right_id);
  step.child = left_child + 1;
  remove_child(path, depth);
}

// ---- checking -------------------------------------------------------------------------------------------------------

void BplusTree::check() const {
  if (size_ == 0) {
    KV_ASSERT(root_ == NodeArena::kNone && first_leaf_ == NodeArena::kNone && last_leaf_ == NodeArena::kNone);
    return;
  }
  std::size_t entries = 0;
  Id expected_leaf = first_leaf_;
  check_node(root_, height_, entries, expected_leaf);
  KV_ASSERT(entries == size_ && expected_leaf == NodeArena::kNone);
  std::string before;
  for (Cursor cursor = first(); cursor.valid(); next(cursor)) {
    KeyBuffer buffer;
    const std::string_view now = key(cursor, buffer);
    KV_ASSERT(before < now);
    KV_ASSERT(find(now) == value(cursor));
    before = now;
  }
}

void BplusTree::check_node(Id node, std::uint32_t height, std::size_t& entries, Id& expected_leaf) const {
  if (height == 0) {
    KV_ASSERT(node == expected_leaf && leaf(node).count > 0);
    entries += leaf(node).count;
    expected_leaf = leaf(node).next;
    KV_ASSERT(expected_leaf == NodeArena::kNone ? node == last_leaf_ : leaf(expected_leaf).previous == node);
    return;
  }
  const Inner& here = inner(node);
  KV_ASSERT(here.count > 0 && here.count <= kInnerChildren);
  for (std::uint32_t i = 0; i < here.count; ++i) check_node(here.children[i], height - 1, entries, expected_leaf);
}

}  // namespace kvingest
