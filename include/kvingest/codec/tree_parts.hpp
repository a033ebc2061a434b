// kvingest/codec/tree_parts.hpp -- how a tree is written: the walk, its values, and a structure for each form.
//
// Part of tree.hpp, which says what it is for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/codec/byte_buffer.hpp"
#include "kvingest/codec/fixed.hpp"
#include "kvingest/codec/integer_array.hpp"
#include "kvingest/codec/tree_format.hpp"
#include "kvingest/codec/tree_value.hpp"
#include "kvingest/result.hpp"

namespace kvingest::codec {

/// In place of a node's position: there is none.
inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

/// Passes the tree to `sink`, depth first: node(value) for each node, none() for each null pointer, in that order.
/// Stops when node() returns false, which it must at some point if the tree might not be one.
template <class View, class Sink>
void walk_tree(const View& tree, Sink& sink) {
  std::vector<typename View::Handle> rights;
  typename View::Handle at = tree.root();
  for (;;) {
    if (!View::is_null(at)) {
      if (!sink.node(tree.value(at))) return;
      rights.push_back(tree.right(at));
      at = tree.left(at);
      continue;
    }
    sink.none();
    if (rights.empty()) return;
    at = rights.back();
    rights.pop_back();
  }
}

namespace tree_parts {

/// The values of a tree in the order of its nodes: each one once, with an index for each node, as long as that pays.
///
/// It is judged when there are 1,024 nodes, at each doubling from there, and at the end: the dictionary is given up
/// when more than half of the nodes have a value of their own.
template <class V>
class ValueWriter {
 public:
  using Trait = TreeValue<V>;

  void add(const V& value) {
    ++nodes_;
    if (!has_dictionary_) {
      append(value);
      return;
    }
    indices_.push_back(index_of(value));
    if (nodes_ == judged_at_) {
      judged_at_ *= 2;
      judge();
    }
  }
  void judge() {
    if (has_dictionary_ && values_ > nodes_ / 2) give_up();
  }

  [[nodiscard]] std::uint64_t nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint64_t values() const noexcept { return values_; }
  [[nodiscard]] bool has_dictionary() const noexcept { return has_dictionary_; }
  /// The index of each node's value, when there is a dictionary.
  [[nodiscard]] const std::vector<std::uint32_t>& indices() const noexcept { return indices_; }

  /// false: `form` cannot say how long they are. It has 32 bits for that.
  [[nodiscard]] bool fit(TreeForm form) const noexcept {
    return Trait::kBytes != 0 ||
           (longest_ <= kLengthMax && (form != TreeForm::in_place || bytes_.size() <= kLengthMax));
  }
  /// Appends the array of values, as `form` has it.
  void put_values(std::string& out, TreeForm form) const {
    if constexpr (Trait::kBytes != 0) {
      out.append(bytes_.view());
    } else if (form == TreeForm::in_place) {
      put_ends(out);
      out.append(bytes_.view());
    } else {
      const char* at = bytes_.data();
      for (const std::uint32_t length : lengths_) {
        char room[kVarint64BytesMax];
        out.append(room, static_cast<std::size_t>(put_varint(room, length) - room)).append(at, length);
        at += length;
      }
    }
  }

 private:
  static constexpr std::size_t kLengthMax = ~std::uint32_t{0};
  static constexpr std::uint64_t kFirstJudged = 1024;
  static constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: spreads what is in a row.

  void append(const V& value) {
    ++values_;
    if constexpr (Trait::kBytes != 0)
      Trait::put(bytes_.extend(Trait::kBytes), value);
    else
      append_bytes(bytes_, lengths_, Trait::bytes(value));
  }
  void append_bytes(ByteBuffer& to, std::vector<std::uint32_t>& lengths, std::string_view bytes) {
    longest_ = std::max(longest_, bytes.size());
    to.append(bytes);
    lengths.push_back(static_cast<std::uint32_t>(bytes.size()));
  }

  [[nodiscard]] std::string_view bytes_of(std::uint32_t index) const noexcept {
    if constexpr (Trait::kBytes != 0)
      return {bytes_.data() + index * Trait::kBytes, Trait::kBytes};
    else
      return {bytes_.data() + starts_[index], lengths_[index]};
  }

  [[nodiscard]] std::uint32_t index_of(const V& value) {
    if constexpr (Trait::kBytes != 0) {
      std::array<char, Trait::kBytes> bytes;
      Trait::put(bytes.data(), value);
      return find_or_add(value, {bytes.data(), bytes.size()});
    } else {
      return find_or_add(value, Trait::bytes(value));
    }
  }
  std::uint32_t find_or_add(const V& value, std::string_view bytes) {
    if (2 * values_ >= slots_.size()) grow();
    std::uint32_t& slot = slot_of(bytes);
    if (slot == kNoNode) {
      slot = static_cast<std::uint32_t>(values_);
      if constexpr (Trait::kBytes == 0) starts_.push_back(bytes_.size());
      append(value);
    }
    return slot;
  }
  /// Where the index of the value with these bytes is, or would be.
  [[nodiscard]] std::uint32_t& slot_of(std::string_view bytes) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (std::hash<std::string_view>()(bytes) * kMixer) >> 32 & mask;
    while (slots_[at] != kNoNode && bytes_of(slots_[at]) != bytes) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), kNoNode);
    for (std::uint32_t i = 0; i < values_; ++i) slot_of(bytes_of(i)) = i;
  }
  /// From here on node i has value i.
  void give_up() {
    ByteBuffer all;
    std::vector<std::uint32_t> lengths;
    for (const std::uint32_t index : indices_) {
      if constexpr (Trait::kBytes != 0)
        all.append(bytes_of(index));
      else
        append_bytes(all, lengths, bytes_of(index));
    }
    bytes_ = std::move(all);
    lengths_ = std::move(lengths);
    values_ = nodes_;
    has_dictionary_ = false;
    indices_ = {};
    slots_ = {};
    starts_ = {};
  }
  void put_ends(std::string& out) const {
    char word[4];
    std::uint32_t end = 0;
    for (const std::uint32_t length : lengths_) {
      put_fixed(word, end += length);
      out.append(word, sizeof word);
    }
  }

  ByteBuffer bytes_;
  std::vector<std::uint32_t> lengths_;  // Of values of variable size.
  std::vector<std::size_t> starts_;     // Of the same, while there is a dictionary.
  std::vector<std::uint32_t> indices_;
  std::vector<std::uint32_t> slots_;
  std::size_t longest_ = 0;
  std::uint64_t nodes_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t judged_at_ = kFirstJudged;
  bool has_dictionary_ = true;
};

/// Compact: one bit for each pointer, 1 where there is a node; then the indices.
class BitStructure {
 public:
  static constexpr TreeForm kForm = TreeForm::compact;
  void node() {
    word_ |= std::uint64_t{1} << bits_;
    none();
  }
  void none() {
    if (++bits_ < 64) return;
    put_fixed(bytes_.extend(sizeof word_), word_);
    word_ = 0;
    bits_ = 0;
  }
  template <class Values>
  void put(std::string& out, const Values& values) const {
    char last[sizeof word_];
    put_fixed(last, word_);
    out.append(bytes_.view()).append(last, (bits_ + 7) / 8);
    if (!values.has_dictionary()) return;
    const std::vector<std::uint32_t>& indices = values.indices();
    ByteBuffer room;
    char* const begin = room.extend(encoded_bytes_max<std::uint32_t>(indices.size()));
    out.append(begin, encode_array<std::uint32_t>(Form::leb128, indices, begin));
  }

 private:
  ByteBuffer bytes_;
  std::uint64_t word_ = 0;
  unsigned bits_ = 0;
};

/// In place: a word for each node: the position of its right child or 0, and whether the next node is its left child.
class RecordStructure {
 public:
  static constexpr TreeForm kForm = TreeForm::in_place;
  static constexpr std::uint32_t kHasLeft = std::uint32_t{1} << 31;

  void node() {
    const auto at = static_cast<std::uint32_t>(words_.size());
    if (is_left_)
      words_.back() |= kHasLeft;
    else if (parent_ != kNoNode)
      words_[parent_] |= at;
    words_.push_back(0);
    waiting_.push_back(at);
    is_left_ = true;
  }
  void none() {
    is_left_ = false;
    if (waiting_.empty()) return;
    parent_ = waiting_.back();  // What comes now is its right child.
    waiting_.pop_back();
  }
  template <class Values>
  void put(std::string& out, const Values& values) const {
    const std::size_t bytes_each = values.has_dictionary() ? 8 : 4;
    const std::size_t before = out.size();
    out.resize(before + words_.size() * bytes_each);
    char* at = out.data() + before;
    for (std::size_t i = 0; i < words_.size(); ++i, at += bytes_each) {
      put_fixed(at, words_[i]);
      if (values.has_dictionary()) put_fixed(at + 4, values.indices()[i]);
    }
  }

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> waiting_;  // Nodes whose right child has not come.
  std::uint32_t parent_ = kNoNode;
  bool is_left_ = false;
};

/// Offsets: for each pointer 0, or one more than the index of the node's value.
class OffsetStructure {
 public:
  static constexpr TreeForm kForm = TreeForm::offsets;
  void node() { words_.push_back(1); }
  void none() { words_.push_back(0); }
  template <class Values>
  void put(std::string& out, const Values& values) const {
    const std::size_t before = out.size();
    out.resize(before + words_.size() * sizeof(std::uint32_t));
    char* at = out.data() + before;
    std::uint32_t node = 0;
    for (const std::uint32_t is_node : words_) {
      std::uint32_t word = 0;
      if (is_node != 0) {
        word = (values.has_dictionary() ? values.indices()[node] : node) + 1;
        ++node;
      }
      put_fixed(at, word);
      at += sizeof word;
    }
  }

 private:
  std::vector<std::uint32_t> words_;
};

template <class V, class Structure>
struct Writer {
  Structure structure;
  ValueWriter<V> values;
  bool has_too_many = false;

  bool node(const V& value) {
    if (values.nodes() == kTreeNodesMax) return has_too_many = true, false;
    structure.node();
    values.add(value);
    return true;
  }
  void none() { structure.none(); }
};

template <class V, class Structure, class View>
Result<std::string> write(const View& tree) {
  Writer<V, Structure> writer;
  walk_tree(tree, writer);
  if (writer.has_too_many) return fail(Code::too_large, "a tree of more than {} nodes, or a cycle", kTreeNodesMax);
  if (!writer.values.fit(Structure::kForm)) return fail(Code::too_large, "a tree with more than 4 GiB of values");
  writer.values.judge();
  std::string out(kTreeHeaderBytes, '\0');
  writer.structure.put(out, writer.values);
  writer.values.put_values(out, Structure::kForm);
  put_tree_header(out.data(), {.form = Structure::kForm,
                               .value_kind = TreeValue<V>::kKind,
                               .dictionary = writer.values.has_dictionary() && writer.values.nodes() > 0,
                               .nodes = writer.values.nodes(),
                               .values = writer.values.values(),
                               .bytes = out.size()});
  return out;
}

}  // namespace tree_parts
}  // namespace kvingest::codec
