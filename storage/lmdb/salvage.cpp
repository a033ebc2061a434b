// salvage.cpp -- reads every page of a damaged data file that is still in place, for `kvq repair`, without LMDB.
//
// The pages are those that page_checker.hpp describes. A page that is not as it should be is lost as a whole, with what
// is below it. LMDB writes no page over that the transaction before needs: where the newest tree is damaged, the one of
// the other header may have more, and is taken if it has lost less.
#include "storage/salvage.hpp"

#include <algorithm>
#include <vector>

#include "kvingest/function_ref.hpp"
#include "storage/lmdb/page_layout.hpp"

namespace kvingest::lmdb {
namespace {

struct Header {
  std::uint64_t txn = 0;
  std::uint64_t last_page = 0;
  Tree names;
};

// Keys of a page lie in [first, last).
struct Bounds {
  std::string first;
  std::optional<std::string> last;
};

struct Damage {
  std::uint64_t page = 0;
  std::string what;
};

/// One walk over the trees that a header names. What is found goes to `take`, what is not is remembered.
class TreeWalk {
 public:
  using Take = FunctionRef<Result<void>(const BatchOperation&)>;

  TreeWalk(const File& data, std::uint64_t page_bytes, const Header& header)
      : data_(data), page_bytes_(page_bytes), header_(header), used_(header.last_page + 1, false) {}

  Result<void> run(Take take) {
    return visit(header_.names, "names", [&](const Entry& entry, std::string_view) -> Result<void> {
      const bool tree = (entry.flags & kSubTree) != 0 && entry.value.size() == kTreeBytes;
      if (entry.key == "last batch" && entry.value.size() == sizeof(std::uint64_t))
        last_batch_ = load<std::uint64_t>(entry.value.data());
      if (!tree || (entry.key != "records" && entry.key != "meta")) return {};
      const Space space = entry.key == "meta" ? Space::meta : Space::records;
      ++trees_;
      return visit(Tree::from(entry.value.data()), entry.key,
                   [&](const Entry& found, std::string_view value) -> Result<void> {
                     ++entries_;
                     return take({space, false, found.key, value});
                   });
    });
  }

  [[nodiscard]] const std::vector<Damage>& damages() const noexcept { return damages_; }
  [[nodiscard]] std::optional<std::uint64_t> last_batch() const noexcept { return last_batch_; }
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }
  /// Both of the store's trees were found.
  [[nodiscard]] bool complete() const noexcept { return trees_ == 2; }

 private:
  using Leaf = FunctionRef<Result<void>(const Entry& entry, std::string_view value)>;

  Result<void> visit(const Tree& tree, std::string_view name, Leaf leaf) {
    if (tree.root == kNoPage) return {};
    const std::string own(name);  // The entry that holds it goes with its page.
    return visit_page(tree, own, tree.root, 1, {}, leaf);
  }

  Result<void> visit_page(const Tree& tree, const std::string& name, std::uint64_t number, unsigned level,
                          const Bounds& bounds, Leaf leaf) {
    auto page = read_page(number);
    const bool is_leaf = level == tree.depth;
    auto entries = page && level <= kDepthMax ? sound_entries(*page, number, is_leaf, bounds)
                                              : Result<std::vector<Entry>>(fail(Code::corrupt, "cannot be read"));
    if (!entries) {
      damages_.push_back({number, fmt::format("page {} of {}, keys {}: {}", number, name, text_of(bounds),
                                              page ? entries.error().text : page.error().text)});
      return {};
    }
    for (std::size_t i = 0; i < entries->size(); ++i) {
      const Entry& entry = (*entries)[i];
      if (is_leaf) {
        KV_TRY(visit_entry(number, name, entry, leaf));
        continue;
      }
      Bounds below = bounds;
      if (i > 0) below.first = entry.key;
      if (i + 1 < entries->size()) below.last = (*entries)[i + 1].key;
      KV_TRY(visit_page(tree, name, entry.child, level + 1, below, leaf));
    }
    return {};
  }

  Result<void> visit_entry(std::uint64_t number, const std::string& name, const Entry& entry, Leaf leaf) {
    if ((entry.flags & kBigData) == 0) return leaf(entry, entry.value);
    const std::uint64_t first = load<std::uint64_t>(entry.value.data());
    const auto value = big_value(first, entry.value_bytes);
    if (value) return leaf(entry, *value);
    damages_.push_back({first <= header_.last_page ? first : number,
                        fmt::format("the value of key {:?} of {}: {}", entry.key, name, value.error().text)});
    return {};
  }

  Result<std::string> read_page(std::uint64_t number) {
    if (number < kHeaderPages || number > header_.last_page) return fail(Code::corrupt, "lies outside the file");
    if (used_[number]) return fail(Code::corrupt, "is in use twice");
    used_[number] = true;
    std::string page(page_bytes_, '\0');
    KV_TRY(data_.read_at(page.data(), page.size(), number * page_bytes_));
    return page;
  }

  static Result<std::vector<Entry>> sound_entries(const std::string& page, std::uint64_t number, bool leaf,
                                                  const Bounds& bounds) {
    const auto count = entries_of(page, number, leaf);
    KV_TRY(count);
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < *count; ++i) {
      auto entry = entry_at(page, i);
      KV_TRY(entry);
      // The first key of a branch stands for everything below the second; LMDB never looks at it.
      const bool has_key = leaf || i > 0;
      const std::size_t first = leaf ? 0 : 1;
      if (has_key && (entry->key.empty() || entry->key < bounds.first || (bounds.last && entry->key >= *bounds.last)))
        return fail(Code::corrupt, "a key lies outside the bounds of its branch");
      if (i > first && entry->key <= entries.back().key) return fail(Code::corrupt, "a key does not rise");
      entries.push_back(*entry);
    }
    return entries;
  }

  Result<std::string> big_value(std::uint64_t first, std::uint64_t value_bytes) {
    const std::uint64_t count = overflow_pages(value_bytes, page_bytes_);
    std::string pages;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto page = read_page(first + i);
      KV_TRY(page);
      if (i == 0 && !begins_overflow(*page, first, count))
        return fail(Code::corrupt, "page {} is not the first of {} overflow pages", first, count);
      pages += *page;
    }
    return pages.substr(kPageHeadBytes, value_bytes);
  }

  static std::string text_of(const Bounds& bounds) {
    if (bounds.first.empty()) return bounds.last ? fmt::format("up to {:?}", *bounds.last) : std::string("all");
    return bounds.last ? fmt::format("from {:?} to {:?}", bounds.first, *bounds.last)
                       : fmt::format("from {:?} on", bounds.first);
  }

  const File& data_;
  const std::uint64_t page_bytes_;
  const Header header_;
  std::vector<bool> used_;
  std::vector<Damage> damages_;
  std::optional<std::uint64_t> last_batch_;
  std::uint64_t entries_ = 0;
  int trees_ = 0;
};

struct Headers {
  std::uint64_t page_bytes = 0;
  std::vector<Header> sound;  ///< The newer one first.
};

/// The headers that can be what they should be.
Result<Headers> read_headers(const File& data, Salvager& salvager) {
  Headers headers;
  const auto file_bytes = data.size();
  KV_TRY(file_bytes);
  for (std::uint64_t page_bytes = kPageBytesMin; page_bytes <= kPageBytesMax; page_bytes *= 2) {
    headers.page_bytes = page_bytes;
    for (std::uint64_t number = 0; number < kHeaderPages; ++number) {
      char bytes[kHeaderBytes];
      if (*file_bytes < number * page_bytes + sizeof bytes) continue;
      KV_TRY(data.read_at(bytes, sizeof bytes, number * page_bytes));
      const char* const at = bytes + kPageHeadBytes;
      const Header header{.txn = load<std::uint64_t>(at + 128),
                          .last_page = load<std::uint64_t>(at + 120),
                          .names = Tree::from(at + 24 + kTreeBytes)};
      const bool sound = load<std::uint32_t>(at) == kPageMagic && load<std::uint32_t>(at + 4) == kPageVersion &&
                         load<std::uint32_t>(at + 24) == page_bytes && (header.txn & 1) == number &&
                         header.last_page / 2 <= *file_bytes / page_bytes + kHeaderPages;
      if (sound) headers.sound.push_back(header);
    }
    if (!headers.sound.empty()) break;
  }
  if (headers.sound.empty()) return fail(Code::corrupt, "{}: neither header can be read", data.path().native());
  std::sort(headers.sound.begin(), headers.sound.end(), [](const Header& a, const Header& b) { return a.txn > b.txn; });
  if (headers.sound.size() < kHeaderPages)
    KV_TRY(salvager.lose({data.path(), (headers.sound[0].txn + 1) % 2 * headers.page_bytes, kHeaderBytes,
                          "a header is damaged; the other one is used"}));
  return headers;
}

/// The header whose trees have lost least; of equal ones the newer.
Result<Header> choose(const File& data, const Headers& headers) {
  std::optional<std::pair<std::size_t, const Header*>> best;
  for (const Header& header : headers.sound) {
    TreeWalk walk(data, headers.page_bytes, header);
    KV_TRY(walk.run([](const BatchOperation&) { return Result<void>(); }));
    const std::size_t damages = walk.damages().size() + (walk.complete() ? 0 : 1);
    if (!best || damages < best->first) best = {damages, &header};
  }
  return *best->second;
}

}  // namespace

Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager) {
  auto data = File::open(source.posix, source.dir / "data.mdb", O_RDONLY);
  KV_TRY(data);
  const auto headers = read_headers(*data, salvager);
  KV_TRY(headers);
  const auto header = choose(*data, *headers);
  KV_TRY(header);
  if (header->txn != headers->sound.front().txn)
    KV_TRY(salvager.lose({data->path(), 0, 0,
                          fmt::format("transaction {} has lost pages that transaction {} in front of it still has: "
                                      "what it changed is as it was before",
                                      headers->sound.front().txn, header->txn)}));
  TreeWalk walk(*data, headers->page_bytes, *header);
  KV_TRY(walk.run([&](const BatchOperation& operation) { return salvager.take(operation); }));
  for (const Damage& damage : walk.damages())
    KV_TRY(salvager.lose({data->path(), damage.page * headers->page_bytes, headers->page_bytes, damage.what}));
  return walk.last_batch();
}

}  // namespace kvingest::lmdb
