#include "storage/lmdb/page_checker.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/lmdb/page_layout.hpp"

namespace kvingest::lmdb {
namespace {

class Checker {
 public:
  Checker(const File& data, std::uint64_t page_bytes, CheckDepth depth)
      : data_(data), page_bytes_(page_bytes), only_roots_(depth == CheckDepth::roots) {}

  Result<PageReport> run(std::uint64_t txn_id);

 private:
  /// One tree being walked: what its header says against what is found.
  struct Walk {
    std::string_view name;
    Tree tree;
    Tree found;
    bool numbers = false;  // Keys are numbers of transactions: the free list.
    bool names = false;    // Values may be trees.
  };
  // Keys of a page lie in [first, last).
  struct Bounds {
    std::string_view first;
    std::optional<std::string_view> last;
  };

  Result<void> walk(Walk& walk);
  Result<void> check_page(Walk& walk, std::uint64_t number, unsigned level, const Bounds& bounds);
  Result<void> check_branch(Walk& walk, std::uint64_t number, const std::string& page, unsigned level,
                            const Bounds& bounds);
  Result<void> check_leaf_entry(Walk& walk, std::uint64_t number, const Entry& entry);
  Result<void> check_overflow(Walk& walk, std::uint64_t first, std::uint64_t value_bytes);
  Result<void> check_free_list(std::uint64_t number, const Entry& entry);
  Result<void> check_key(const Walk& walk, std::uint64_t number, const Entry& entry, const Bounds& bounds,
                         std::optional<std::string_view> last) const;
  Result<std::string> read_page(std::uint64_t number);
  Result<Entry> entry_of(std::uint64_t number, const std::string& page, std::size_t index) const;
  Result<void> use_pages(std::uint64_t first, std::uint64_t count);

  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> damage(std::uint64_t number, fmt::format_string<Args...> what,
                                             Args&&... args) const {
    return fail(Code::corrupt, "{}: page {} at offset {}: {}", data_.path().native(), number, number * page_bytes_,
                fmt::format(what, std::forward<Args>(args)...));
  }

  const File& data_;
  const std::uint64_t page_bytes_;
  const bool only_roots_;
  std::uint64_t pages_ = 0;
  std::vector<bool> used_;
  std::string big_value_;  // Where the free list needs one.
  PageReport report_;
};

bool before(const std::string_view a, const std::string_view b, bool numbers) noexcept {
  if (numbers && a.size() == sizeof(std::uint64_t) && b.size() == a.size())
    return load<std::uint64_t>(a.data()) < load<std::uint64_t>(b.data());
  return a < b;
}

Result<PageReport> Checker::run(std::uint64_t txn_id) {
  const std::uint64_t number = txn_id & 1;
  auto page = read_page(number);
  KV_TRY(page);
  auto same = read_page(number);
  KV_TRY(same);
  if (*page != *same) return fail(Code::busy, "{}: its header is being written", data_.path().native());
  const char* const header = page->data() + kPageHeadBytes;
  const auto found_txn = load<std::uint64_t>(header + 128);
  if (found_txn > txn_id) return fail(Code::busy, "{}: a later transaction took its header", data_.path().native());
  if (found_txn != txn_id) return damage(number, "is the header of transaction {}, not {}", found_txn, txn_id);
  pages_ = load<std::uint64_t>(header + 120) + 1;
  used_.assign(only_roots_ ? 0 : pages_, false);
  KV_TRY(use_pages(0, kHeaderPages));
  Walk free{.name = "free list", .tree = Tree::from(header + 24), .numbers = true};
  Walk names{.name = "names", .tree = Tree::from(header + 24 + kTreeBytes), .names = true};
  KV_TRY(walk(free));
  KV_TRY(walk(names));
  return report_;
}

Result<void> Checker::walk(Walk& walk) {
  const Tree& says = walk.tree;
  if (says.root == kNoPage) {
    if (says.entries == 0) return {};
    return fail(Code::corrupt, "{}: the tree {} has {} entries and no root", data_.path().native(), walk.name,
                says.entries);
  }
  KV_TRY(check_page(walk, says.root, 1, Bounds{}));
  if (only_roots_ && !walk.names) return {};
  const Tree& found = walk.found;
  if (found.entries != says.entries || found.leaf_pages != says.leaf_pages || found.branch_pages != says.branch_pages ||
      found.overflow_pages != says.overflow_pages) {
    return fail(
        Code::corrupt,
        "{}: the tree {} has {} entries on {} leaf, {} branch and {} overflow pages; its header says {}, {}, {} "
        "and {}",
        data_.path().native(), walk.name, found.entries, found.leaf_pages, found.branch_pages, found.overflow_pages,
        says.entries, says.leaf_pages, says.branch_pages, says.overflow_pages);
  }
  return {};
}

Result<void> Checker::use_pages(std::uint64_t first, std::uint64_t count) {
  if (first >= pages_ || count > pages_ - first) return damage(first, "lies beyond the last page, {}", pages_ - 1);
  if (only_roots_) return {};
  for (std::uint64_t number = first; number < first + count; ++number) {
    if (used_[number]) return damage(number, "is in use twice");
    used_[number] = true;
  }
  return {};
}

Result<std::string> Checker::read_page(std::uint64_t number) {
  std::string page(page_bytes_, '\0');
  KV_TRY(data_.read_at(page.data(), page.size(), number * page_bytes_));
  report_.bytes_checked += page.size();
  return page;
}

Result<Entry> Checker::entry_of(std::uint64_t number, const std::string& page, std::size_t index) const {
  auto entry = entry_at(page, index);
  if (!entry) return damage(number, "{}", entry.error().text);
  return entry;
}

Result<void> Checker::check_key(const Walk& walk, std::uint64_t number, const Entry& entry, const Bounds& bounds,
                                std::optional<std::string_view> last) const {
  const std::string_view key = entry.key;
  if (key.empty() || (walk.numbers && key.size() != sizeof(std::uint64_t)))
    return damage(number, "a key has {} bytes", key.size());
  if (last && !before(*last, key, walk.numbers)) return damage(number, "a key does not rise");
  const bool below = !bounds.first.empty() && before(key, bounds.first, walk.numbers);
  if (below || (bounds.last && !before(key, *bounds.last, walk.numbers)))
    return damage(number, "a key lies outside the bounds of its branch");
  return {};
}

Result<void> Checker::check_page(Walk& walk, std::uint64_t number, unsigned level, const Bounds& bounds) {
  KV_TRY(use_pages(number, 1));
  auto page = read_page(number);
  KV_TRY(page);
  const bool leaf = level == walk.tree.depth;
  if (level > kDepthMax) return damage(number, "is at level {} of {}", level, walk.tree.depth);
  const auto entries = entries_of(*page, number, leaf);
  if (!entries) return damage(number, "{}", entries.error().text);
  if (!leaf) return check_branch(walk, number, *page, level, bounds);
  ++walk.found.leaf_pages;
  std::optional<std::string_view> last;
  for (std::size_t i = 0; i < *entries; ++i) {
    auto entry = entry_of(number, *page, i);
    KV_TRY(entry);
    KV_TRY(check_key(walk, number, *entry, bounds, last));
    last = entry->key;
    ++walk.found.entries;
    if (!only_roots_ || walk.names) KV_TRY(check_leaf_entry(walk, number, *entry));
  }
  return {};
}

Result<void> Checker::check_branch(Walk& walk, std::uint64_t number, const std::string& page, unsigned level,
                                   const Bounds& bounds) {
  ++walk.found.branch_pages;
  const std::size_t count = (load<std::uint16_t>(page.data() + 12) - kPageHeadBytes) / 2;
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    auto entry = entry_of(number, page, i);
    KV_TRY(entry);
    // The first key of a branch stands for everything below the second; LMDB never looks at it.
    if (i > 0) {
      KV_TRY(check_key(walk, number, *entry, bounds, i > 1 ? std::optional(entries.back().key) : std::nullopt));
    }
    entries.push_back(*entry);
  }
  if (only_roots_ && !walk.names) return {};
  for (std::size_t i = 0; i < count; ++i) {
    Bounds below = bounds;
    if (i > 0) below.first = entries[i].key;
    if (i + 1 < count) below.last = entries[i + 1].key;
    KV_TRY(check_page(walk, entries[i].child, level + 1, below));
  }
  return {};
}

Result<void> Checker::check_leaf_entry(Walk& walk, std::uint64_t number, const Entry& entry) {
  if ((entry.flags & ~(kBigData | kSubTree)) != 0) return damage(number, "an entry has flags {:#x}", entry.flags);
  if ((entry.flags & kSubTree) != 0) {
    if (!walk.names || entry.value.size() != kTreeBytes) return damage(number, "a tree where none belongs");
    Walk sub{.name = entry.key, .tree = Tree::from(entry.value.data())};
    KV_TRY(this->walk(sub));
    if (entry.key == "records") report_.records = sub.found.entries;
    return {};
  }
  big_value_.clear();
  if ((entry.flags & kBigData) != 0)
    KV_TRY(check_overflow(walk, load<std::uint64_t>(entry.value.data()), entry.value_bytes));
  return walk.numbers ? check_free_list(number, entry) : Result<void>{};
}

Result<void> Checker::check_overflow(Walk& walk, std::uint64_t first, std::uint64_t value_bytes) {
  const std::uint64_t count = overflow_pages(value_bytes, page_bytes_);
  KV_TRY(use_pages(first, count));
  walk.found.overflow_pages += count;
  auto head = read_page(first);
  KV_TRY(head);
  if (!begins_overflow(*head, first, count)) return damage(first, "is not the first of {} overflow pages", count);
  if (walk.numbers) big_value_ = head->substr(kPageHeadBytes);
  for (std::uint64_t number = first + 1; number < first + count; ++number) {
    auto page = read_page(number);
    KV_TRY(page);
    if (walk.numbers) big_value_ += *page;
  }
  return {};
}

Result<void> Checker::check_free_list(std::uint64_t number, const Entry& entry) {
  const std::string_view list = (entry.flags & kBigData) != 0 ? big_value_ : entry.value;
  const std::uint64_t room = entry.value_bytes / sizeof(std::uint64_t);
  const std::uint64_t count = room == 0 ? 0 : load<std::uint64_t>(list.data());
  if (room == 0 || count >= room) return damage(number, "a list of free pages is cut short");
  for (std::uint64_t i = 1; i <= count; ++i) KV_TRY(use_pages(load<std::uint64_t>(list.data() + 8 * i), 1));
  return {};
}

}  // namespace

Result<void> check_headers(const File& data) {
  // Above map_max by default; half of all addresses.
  constexpr std::uint64_t kTrustedMapBytesMax = std::uint64_t{65} << 40;
  auto file_bytes = data.size();
  KV_TRY(file_bytes);
  std::uint64_t at = 0;
  for (std::uint64_t number = 0; number < kHeaderPages; ++number) {
    char bytes[kHeaderBytes];
    KV_TRY(data.read_at(bytes, sizeof bytes, at));
    const char* const header = bytes + kPageHeadBytes;
    const auto damage = [&](std::string_view what, std::uint64_t value) {
      return fail(Code::corrupt, "{}: page {} at offset {}: {} {}", data.path().native(), number, at, what, value);
    };
    const auto magic = load<std::uint32_t>(header);
    const auto version = load<std::uint32_t>(header + 4);
    const auto map_bytes = load<std::uint64_t>(header + 16);
    const auto page_bytes = load<std::uint32_t>(header + 24);
    const auto last_page = load<std::uint64_t>(header + 120);
    if (magic != kPageMagic) return damage("is no header of LMDB: it begins with", magic);
    if (version != kPageVersion) return fail(Code::unsupported, "{}: LMDB format {}", data.path().native(), version);
    if (page_bytes < kPageBytesMin || page_bytes > kPageBytesMax || (page_bytes & (page_bytes - 1)) != 0)
      return damage("names pages of", page_bytes);
    if (map_bytes > kTrustedMapBytesMax) return damage("names a map of", map_bytes);
    // Free pages at the end may never have been written, but they are few.
    if (last_page / 2 > *file_bytes / page_bytes + kHeaderPages) return damage("names the last page", last_page);
    at = page_bytes;
  }
  return {};
}

Result<PageReport> check_pages(const File& data, std::uint64_t page_bytes, std::uint64_t txn_id, CheckDepth depth) {
  return Checker(data, page_bytes, depth).run(txn_id);
}

}  // namespace kvingest::lmdb
