#include "query/pages.hpp"

#include <algorithm>

#include "record/key_prefix.hpp"

namespace kvingest::query {
namespace {

constexpr std::uint64_t kPageRows = 1'000;
constexpr std::size_t kPageBytes = 1 << 20;

}  // namespace

Selection select(std::optional<std::string> prefix, std::optional<std::string> from, std::optional<std::string> to) {
  Selection selection{.first = std::move(from), .last = std::move(to)};
  if (!prefix) return selection;
  const auto end = end_of_prefix(*prefix);
  if (!selection.first || *selection.first < *prefix) selection.first = std::move(prefix);
  if (end && (!selection.last || *end < *selection.last)) selection.last = end;
  return selection;
}

Result<std::uint64_t> walk_pages(const Store& store, Space space, const Selection& selection,
                                 FunctionRef<void(std::string_view key, std::string_view value)> visit,
                                 FunctionRef<Result<bool>()> between) {
  std::optional<std::string> first = selection.first;
  std::optional<std::string> last = selection.last;
  std::uint64_t passed = 0;
  while (passed < selection.limit) {
    if (first && last && *first >= *last) break;
    const Range range{.first = first,
                      .last = last,
                      .reverse = selection.reverse,
                      .limit = static_cast<std::size_t>(std::min(kPageRows, selection.limit - passed))};
    std::string reached;
    std::size_t bytes = 0;
    const auto rows = store.scan(space, range, [&](std::string_view key, std::string_view value) {
      visit(key, value);
      reached = key;
      bytes += key.size() + value.size();
      return bytes < kPageBytes;
    });
    KV_TRY(rows);
    passed += *rows;
    const auto more = between();
    KV_TRY(more);
    if (!*more || (*rows < range.limit && bytes < kPageBytes)) break;
    // The next page begins at the first key behind the last one seen.
    if (selection.reverse) {
      last = std::move(reached);
    } else {
      first = std::move(reached) + '\0';
    }
  }
  return passed;
}

}  // namespace kvingest::query
