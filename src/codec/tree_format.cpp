#include "kvingest/codec/tree_format.hpp"

#include <cstring>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::codec {
namespace {

constexpr std::string_view kMagic = "KVTR";
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kDictionaryFlag = 1;

/// What the counts ask for at the least: every index takes a byte, and so does a value's length.
std::uint64_t bytes_min(const TreeHeader& header, std::size_t value_bytes) noexcept {
  const bool has_varint_indices = header.dictionary && header.form == TreeForm::compact;
  const std::uint64_t one_value = value_bytes != 0 ? value_bytes : header.form == TreeForm::in_place ? 4 : 1;
  return kTreeHeaderBytes + header.structure_bytes() + (has_varint_indices ? header.nodes : 0) +
         header.values * one_value;
}

}  // namespace

std::uint64_t TreeHeader::structure_bytes() const noexcept {
  switch (form) {
    case TreeForm::compact:
      return (2 * nodes + 1 + 7) / 8;
    case TreeForm::in_place:
      return nodes * (dictionary ? 8 : 4);
    case TreeForm::offsets:
      return (2 * nodes + 1) * 4;
  }
  return 0;
}

void put_tree_header(char* to, const TreeHeader& header) noexcept {
  std::memcpy(to, kMagic.data(), kMagic.size());
  to[4] = static_cast<char>(kVersion);
  to[5] = static_cast<char>(header.form);
  to[6] = static_cast<char>(header.value_kind);
  to[7] = static_cast<char>(header.dictionary ? kDictionaryFlag : 0);
  put_fixed(to + 8, header.nodes);
  put_fixed(to + 16, header.values);
  put_fixed(to + 24, header.bytes);
}

Result<TreeHeader> read_tree_header(std::string_view bytes, std::uint8_t value_kind, std::size_t value_bytes) {
  if (bytes.size() < kTreeHeaderBytes || !bytes.starts_with(kMagic))
    return fail(Code::corrupt, "tree: {} bytes that do not begin with a header", bytes.size());
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  if (at(4) != kVersion)
    return fail(Code::unsupported, "tree: format version {}; this program reads version {}", at(4), kVersion);
  const TreeHeader header{.form = static_cast<TreeForm>(at(5)),
                          .value_kind = at(6),
                          .dictionary = at(7) == kDictionaryFlag,
                          .nodes = get_fixed<std::uint64_t>(bytes.data() + 8),
                          .values = get_fixed<std::uint64_t>(bytes.data() + 16),
                          .bytes = get_fixed<std::uint64_t>(bytes.data() + 24)};
  if (at(5) < 1 || at(5) > 3 || at(7) > kDictionaryFlag) return fail(Code::corrupt, "tree: an unknown form {}", at(5));
  if (header.value_kind != value_kind)
    return fail(Code::invalid_argument, "tree: its values are of kind {}, wanted are those of kind {}",
                header.value_kind, value_kind);
  if (header.bytes != bytes.size())
    return fail(Code::corrupt, "tree: {} bytes, of which its header says {}", bytes.size(), header.bytes);
  const bool counts_fit = header.nodes <= kTreeNodesMax && header.values <= header.nodes &&
                          (header.dictionary || header.values == header.nodes) &&
                          (header.nodes == 0 || header.values > 0);
  if (!counts_fit || bytes_min(header, value_bytes) > header.bytes)
    return fail(Code::corrupt, "tree: {} nodes and {} values do not fit {} bytes", header.nodes, header.values,
                header.bytes);
  return header;
}

}  // namespace kvingest::codec
