// bplus_tree.hpp -- an ordered map from byte-string keys to 56-bit values, for the stores that keep their records
// elsewhere: the first 16 bytes of a key are in the tree, the rest is looked up where the record is.
//
// An entry takes 24 bytes: a 16-byte prefix, padded with zeros, and one word that holds the value (a place in a log)
// and the key's size class: its size up to 16, or 17 for any longer one. Prefix and class order keys of up to 16 bytes
// completely; two longer keys with the same prefix are told apart through the KeySource.
//
//   "ab"     prefix 61 62 00 .. 00, class 2
//   "ab\0"   prefix 61 62 00 .. 00, class 3: the longer one is greater, as byte order wants it
//
// Keys that arrive in order fill leaves to the brim: an insert at the end of a full leaf opens a new leaf instead of
// halving the old one. That holds at every leaf, so that a thousand interleaved series cost no more memory than one.
//
// Threads:  any number of readers, or one writer: the owner has a latch. prefault() and the counters on any thread.
// Lifetime: a cursor is valid until the next change of the tree.
// Errors:   none; the owner checks room_for() before it inserts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kvingest/limits.hpp"
#include "kvingest/result.hpp"
#include "storage/index/node_arena.hpp"

namespace kvingest {

/// Where the tree finds a key that is longer than its prefix.
class KeySource {
 public:
  /// The whole key of the record that `value` stands for; valid until the next change of the tree.
  [[nodiscard]] virtual std::string_view key_at(std::uint64_t value) const = 0;

 protected:
  ~KeySource() = default;
};

class BplusTree {
 public:
  __extension__ using Prefix = unsigned __int128;  ///< The first 16 bytes of a key as one big-endian number.

  static constexpr unsigned kValueBits = 56;
  static constexpr std::uint64_t kValueMask = (std::uint64_t{1} << kValueBits) - 1;

  /// A place in the tree: an entry, or the end on either side.
  class Cursor {
   public:
    [[nodiscard]] bool valid() const noexcept { return leaf_ != NodeArena::kNone; }

   private:
    friend class BplusTree;
    NodeArena::Id leaf_ = NodeArena::kNone;
    std::uint32_t position_ = 0;
  };

  /// Memory for a key that is put together from an entry.
  using KeyBuffer = std::array<char, 16>;

  /// Slots of an arena for a tree have this size.
  static constexpr std::size_t kNodeBytes = 1600;

  /// A tree whose nodes take at most `bytes_max`. `source` outlives it. Fails with: io_error.
  static Result<BplusTree> create(const KeySource& source, std::size_t bytes_max);
  /// A tree whose nodes come from `arena`.
  BplusTree(const KeySource& source, NodeArena arena) : source_(&source), arena_(std::move(arena)) {}

  /// The value under `key`.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view key) const;
  /// The value under each of `keys`, into `values`, which has as many. Descents go side by side, so that the waits for
  /// memory overlap: where the tree is larger than the caches, several times as fast as one find() after the other.
  void find_many(std::span<const std::string_view> keys, std::span<std::optional<std::uint64_t>> values) const;
  /// Sets the value under `key` and returns the one it replaced. The caller has checked room_for().
  std::optional<std::uint64_t> put(std::string_view key, std::uint64_t value);
  /// Removes `key` and returns its value.
  std::optional<std::uint64_t> erase(std::string_view key);

  [[nodiscard]] Cursor first() const noexcept;
  [[nodiscard]] Cursor last() const noexcept;
  /// The first entry whose key is not less than `key`.
  [[nodiscard]] Cursor lower_bound(std::string_view key) const;
  /// The last entry whose key is less than `key`.
  [[nodiscard]] Cursor before(std::string_view key) const;
  void next(Cursor& cursor) const noexcept;
  void previous(Cursor& cursor) const noexcept;
  [[nodiscard]] std::uint64_t value(const Cursor& cursor) const noexcept;
  /// The key at `cursor`, in `buffer` or wherever the key source keeps it.
  [[nodiscard]] std::string_view key(const Cursor& cursor, KeyBuffer& buffer) const;
  void set_value(const Cursor& cursor, std::uint64_t value) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Whether `puts` more keys fit, whatever they are.
  [[nodiscard]] bool room_for(std::size_t puts) const noexcept;
  [[nodiscard]] std::size_t used_bytes() const noexcept { return arena_.used_bytes(); }
  /// Touches memory ahead of the writer, one step per call; false when there is nothing to do.
  bool prefault() noexcept { return arena_.prefault(); }
  [[nodiscard]] bool wants_prefault() const noexcept { return arena_.wants_prefault(); }

  /// How many entries a leaf gets while keys are put behind the last one, before they open a new leaf: all it can hold
  /// suits keys that go on like that. Where later ones fall anywhere, leaves that are all full would all split at once.
  void set_append_limit(std::uint32_t entries) noexcept { append_limit_ = entries; }

  /// Asserts the order of all keys and the shape of all nodes. For tests and verify.
  void check() const;

  // ---- leaf by leaf, for whoever saves a tree and makes it again ----

  static constexpr std::uint32_t kLeafEntries = 66;
  static constexpr std::uint8_t kLongKey = 17;  ///< The size class of every key that is longer than its prefix.

  /// Neighbours in one leaf. A word is a value with the key's size class in front, in its top 8 bits.
  struct Entries {
    std::span<const Prefix> prefixes;
    std::span<const std::uint64_t> words;
  };
  static std::uint8_t class_of(std::uint64_t word) noexcept { return static_cast<std::uint8_t>(word >> kValueBits); }

  /// The entries from `cursor` to the end of its leaf; then moves it to the next leaf.
  [[nodiscard]] Entries take_leaf(Cursor& cursor) const noexcept;

  /// Empties the tree and gives it `count` leaves, numbered from 0, that are to be filled. False: there is no room.
  [[nodiscard]] bool begin_leaves(std::size_t count);
  /// Fills one of them, at most kLeafEntries in rising order, or leaves it empty. On any thread, each leaf once. False
  /// when the order is wrong.
  [[nodiscard]] bool fill_leaf(std::size_t number, const Entries& entries) noexcept;
  /// Makes a tree of the leaves. False when their order is wrong: the tree is then to be cleared.
  [[nodiscard]] bool finish_leaves();
  void clear() noexcept;

 private:
  using Id = NodeArena::Id;

  static constexpr std::uint32_t kHeightMax = 12;
  static constexpr std::uint32_t kInnerChildren = 72;

  static constexpr std::size_t kSideBySide = 16;  // Descents: about as many lines as a core asks memory for at a time.

  struct Key {  // What a descent compares.
    Key() = default;
    explicit Key(std::string_view bytes) noexcept;
    Prefix prefix = 0;
    std::uint8_t size_class = 0;
    std::string_view whole;
  };

  struct Leaf {
    std::uint32_t count;
    Id previous;
    Id next;
    std::uint32_t unused;
    Prefix prefixes[kLeafEntries];
    std::uint64_t words[kLeafEntries];  // Size class in the top 8 bits, value below.
  };

  // Child i holds the keys from separator i on, up to separator i + 1. Separator 0 is never looked at. Of a long key a
  // separator knows only the prefix; its rest is that of the least key now below the child.
  struct Inner {
    std::uint32_t count;
    std::uint32_t unused[3];
    Prefix prefixes[kInnerChildren];
    Id children[kInnerChildren];
    std::uint8_t classes[kInnerChildren];
  };

  static_assert(sizeof(Leaf) <= kNodeBytes && sizeof(Inner) <= kNodeBytes, "a node must fit into its slot");
  static_assert(kNodeBytes % alignof(Prefix) == 0);

  struct Step {  // One inner node on the way down, and which child was taken.
    Id node;
    std::uint32_t child;
  };
  struct Path {
    std::array<Step, kHeightMax> steps;
    Id leaf;
  };
  struct Place {
    std::uint32_t position;
    bool found;
  };

  [[nodiscard]] Leaf& leaf(Id id) const noexcept { return *reinterpret_cast<Leaf*>(arena_.at(id)); }
  [[nodiscard]] Inner& inner(Id id) const noexcept { return *reinterpret_cast<Inner*>(arena_.at(id)); }
  struct Separated {  // A node, and the least key below it.
    Id node;
    Prefix prefix;
    std::uint8_t size_class;
  };

  void clear_root() noexcept;
  [[nodiscard]] std::string_view whole_key(const Leaf& node, std::uint32_t position) const {
    return source_->key_at(node.words[position] & kValueMask);
  }
  [[nodiscard]] int compare(const Leaf& node, std::uint32_t position, const Key& key) const;
  [[nodiscard]] bool separator_above(const Inner& node, std::uint32_t child, std::uint32_t height,
                                     const Key& key) const;
  [[nodiscard]] std::uint32_t child_for(const Inner& node, std::uint32_t height, const Key& key) const;
  [[nodiscard]] Place place_in(const Leaf& node, const Key& key) const;
  [[nodiscard]] Place place_from(const Leaf& node, std::uint32_t base, const Key& key) const;
  void find_group(std::span<const std::string_view> keys, std::span<std::optional<std::uint64_t>> values) const;
  [[nodiscard]] Id descend(const Key& key) const;
  void descend(const Key& key, Path& path) const;
  [[nodiscard]] bool belongs_at_end(const Key& key) const;

  void insert_at(Path& path, std::uint32_t position, const Key& key, std::uint64_t word);
  Id split_leaf(Leaf& full, Id full_id, std::uint32_t position);
  void insert_child(Path& path, std::uint32_t depth, Prefix prefix, std::uint8_t size_class, Id child);
  void erase_at(Path& path, std::uint32_t position);
  void remove_child(Path& path, std::uint32_t depth);
  void merge_leaf(Path& path);
  void merge_inner(Path& path, std::uint32_t depth);
  void unlink(const Leaf& node) noexcept;
  void append_inner(std::span<const Separated> children, std::vector<Separated>& level);
  void check_node(Id node, std::uint32_t height, std::size_t& entries, Id& expected_leaf) const;

  const KeySource* source_;
  NodeArena arena_;
  Id root_ = NodeArena::kNone;
  std::uint32_t height_ = 0;  // Inner levels above the leaves.
  Id first_leaf_ = NodeArena::kNone;
  Id last_leaf_ = NodeArena::kNone;
  std::size_t size_ = 0;
  std::uint32_t append_limit_ = kLeafEntries;
  std::size_t leaves_begun_ = 0;  // By begin_leaves(), with the ids from 0 on.
};

}  // namespace kvingest
