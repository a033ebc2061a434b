#include "storage/lmdb/page_layout.hpp"

namespace kvingest::lmdb {

Result<std::size_t> entries_of(std::string_view page, std::uint64_t number, bool leaf) {
  if (const auto says = load<std::uint64_t>(page.data()); says != number)
    return fail(Code::corrupt, "says it is {}", says);
  const auto flags = load<std::uint16_t>(page.data() + 10);
  if (flags != (leaf ? kLeaf : kBranch)) return fail(Code::corrupt, "has flags {:#x}", flags);
  const std::size_t offsets_end = load<std::uint16_t>(page.data() + 12);
  const std::size_t entries_begin = load<std::uint16_t>(page.data() + 14);
  if (offsets_end <= kPageHeadBytes || offsets_end > entries_begin || entries_begin > page.size())
    return fail(Code::corrupt, "offsets end at {}, entries begin at {}", offsets_end, entries_begin);
  return (offsets_end - kPageHeadBytes) / 2;
}

Result<Entry> entry_at(std::string_view page, std::size_t index) {
  const std::size_t at = load<std::uint16_t>(page.data() + kPageHeadBytes + 2 * index);
  const std::size_t begin = load<std::uint16_t>(page.data() + 14);
  if (at < begin || at + kEntryHeadBytes > page.size()) return fail(Code::corrupt, "entry {} lies outside", index);
  const char* const head = page.data() + at;
  const bool branch = (load<std::uint16_t>(page.data() + 10) & kBranch) != 0;
  const std::uint64_t low = load<std::uint16_t>(head);
  const std::uint64_t high = load<std::uint16_t>(head + 2);
  Entry entry;
  entry.flags = load<std::uint16_t>(head + 4);
  const std::size_t key_bytes = load<std::uint16_t>(head + 6);
  std::size_t room = page.size() - at - kEntryHeadBytes;
  if (key_bytes > room) return fail(Code::corrupt, "the key of entry {} lies outside", index);
  room -= key_bytes;
  entry.key = std::string_view(head + kEntryHeadBytes, key_bytes);
  if (branch) {
    entry.child = low | high << 16 | std::uint64_t{entry.flags} << 32;
    return entry;
  }
  entry.value_bytes = low | high << 16;
  const std::uint64_t here = (entry.flags & kBigData) != 0 ? sizeof(std::uint64_t) : entry.value_bytes;
  if (here > room) return fail(Code::corrupt, "the value of entry {} lies outside", index);
  entry.value = std::string_view(head + kEntryHeadBytes + key_bytes, here);
  return entry;
}

bool begins_overflow(std::string_view page, std::uint64_t number, std::uint64_t count) noexcept {
  return load<std::uint64_t>(page.data()) == number && load<std::uint16_t>(page.data() + 10) == kOverflow &&
         load<std::uint32_t>(page.data() + 12) == count;
}

}  // namespace kvingest::lmdb
