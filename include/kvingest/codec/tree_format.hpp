// kvingest/codec/tree_format.hpp -- the header of a serialized tree. src/codec/TREE.md describes the whole, with an
// example.
//
// Errors: what a header says is checked against the length of the input before anybody makes room for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::codec {

enum class TreeForm : std::uint8_t {
  compact = 1,   ///< Structure in bits, values behind it: the smallest.
  in_place = 2,  ///< A record for each node: read where it lies, without a pass (tree_image.hpp).
  offsets = 3,   ///< A number for each pointer, 0 for null: what the compact form is compared with.
};

inline constexpr std::size_t kTreeHeaderBytes = 32;
/// Positions of nodes have 31 bits.
inline constexpr std::uint64_t kTreeNodesMax = (std::uint64_t{1} << 31) - 1;

struct TreeHeader {
  TreeForm form = TreeForm::compact;
  std::uint8_t value_kind = 0;
  bool dictionary = false;  ///< Nodes have an index into the values; else node i has value i.
  std::uint64_t nodes = 0;
  std::uint64_t values = 0;  ///< Equals `nodes` without a dictionary.
  std::uint64_t bytes = 0;   ///< Of the whole, this header included.

  /// Of the part between header and values whose length follows from the counts alone.
  [[nodiscard]] std::uint64_t structure_bytes() const noexcept;
};

void put_tree_header(char* to, const TreeHeader& header) noexcept;

/// Reads the header of `bytes`, which are the whole tree with values of `value_kind` and of `value_bytes` each (0: each
/// has its own length).
/// Fails with: corrupt (no tree, cut, longer or shorter than it says), unsupported (a newer version),
/// invalid_argument (values of another kind).
[[nodiscard]] Result<TreeHeader> read_tree_header(std::string_view bytes, std::uint8_t value_kind,
                                                  std::size_t value_bytes);

}  // namespace kvingest::codec
