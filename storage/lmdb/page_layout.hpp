// page_layout.hpp -- the bytes of LMDB's pages, headers and entries, as page_checker.hpp describes them.
//
// Threads: pure functions.
// Errors:  corrupt; the text says what is wrong, and the caller adds which page it is.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "kvingest/result.hpp"

namespace kvingest::lmdb {

inline constexpr std::uint32_t kPageMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kPageVersion = 1;
inline constexpr std::uint64_t kHeaderPages = 2;
inline constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
inline constexpr std::size_t kPageHeadBytes = 16;
inline constexpr std::size_t kEntryHeadBytes = 8;
inline constexpr std::size_t kTreeBytes = 48;
inline constexpr std::size_t kHeaderBytes = kPageHeadBytes + 136;
inline constexpr std::size_t kPageBytesMin = 512;
inline constexpr std::size_t kPageBytesMax = 65'536;
inline constexpr unsigned kDepthMax = 32;  // LMDB's cursors hold no more.

// Flags of pages.
inline constexpr std::uint16_t kBranch = 0x01;
inline constexpr std::uint16_t kLeaf = 0x02;
inline constexpr std::uint16_t kOverflow = 0x04;
// Flags of entries.
inline constexpr std::uint16_t kBigData = 0x01;
inline constexpr std::uint16_t kSubTree = 0x02;

template <class T>
[[nodiscard]] T load(const char* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

struct Tree {
  unsigned depth = 0;
  std::uint64_t branch_pages = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint64_t entries = 0;
  std::uint64_t root = kNoPage;

  static Tree from(const char* at) noexcept {
    return {load<std::uint16_t>(at + 6),  load<std::uint64_t>(at + 8),  load<std::uint64_t>(at + 16),
            load<std::uint64_t>(at + 24), load<std::uint64_t>(at + 32), load<std::uint64_t>(at + 40)};
  }
};

/// One entry of a page, whose bounds have been checked.
struct Entry {
  std::string_view key;
  std::string_view value;         ///< Of a leaf; with kBigData the number of the first overflow page.
  std::uint64_t value_bytes = 0;  ///< Of the whole value.
  std::uint64_t child = 0;        ///< Of a branch.
  std::uint16_t flags = 0;
};

/// Whether `page` says that it is `number` and of this kind, and how many entries it has.
[[nodiscard]] Result<std::size_t> entries_of(std::string_view page, std::uint64_t number, bool leaf);
/// Entry `index` of a page whose head has been checked.
[[nodiscard]] Result<Entry> entry_at(std::string_view page, std::size_t index);
/// How many pages a value of so many bytes takes outside of its leaf.
[[nodiscard]] constexpr std::uint64_t overflow_pages(std::uint64_t value_bytes, std::uint64_t page_bytes) noexcept {
  return (kPageHeadBytes + value_bytes + page_bytes - 1) / page_bytes;
}
/// Whether `page` is the first of `count` overflow pages, and says it is `number`.
[[nodiscard]] bool begins_overflow(std::string_view page, std::uint64_t number, std::uint64_t count) noexcept;

}  // namespace kvingest::lmdb
