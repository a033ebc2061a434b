#include "bench/read_back.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "bench/trades.hpp"
#include "kvingest/codec/fixed.hpp"
#include "kvingest/engine.hpp"

namespace kvingest::bench {
namespace {

constexpr std::size_t kPageRecords = 1000;
constexpr std::string_view kMessage = "Benchmark Message ";

/// Walks through the expected records in step with the store's.
class Expectation {
 public:
  /// false: this record is not the next one.
  bool take(std::string_view key, std::string_view value) {
    char number[20];
    const char* const digits = std::to_chars(number, number + sizeof number, seen_).ptr;
    ++seen_;
    char sequence[kSeqKeyBytes];  // The records are numbered from 1.
    codec::put_ordered(sequence, seen_);
    return key == std::string_view(sequence, sizeof sequence) && value.starts_with(kMessage) &&
           value.substr(kMessage.size()) == std::string_view(number, static_cast<std::size_t>(digits - number));
  }
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }

 private:
  std::uint64_t seen_ = 0;
};

/// Passes every record to `take`, which says whether to go on, a page at a time.
template <class Take>
Result<void> walk_all(const Store& store, Take&& take) {
  std::string first;
  bool more = true;
  for (std::size_t page = kPageRecords; more && page == kPageRecords;) {
    const Range range{.first = first.empty() ? std::nullopt : std::optional<std::string_view>(first),
                      .limit = kPageRecords};
    std::string last;
    auto walked = store.scan(range, [&](std::string_view key, std::string_view value) {
      more = take(key, value);
      last = key;
      return more;
    });
    KV_TRY(walked);
    page = *walked;
    first = last + '\0';  // The least key behind the last one.
  }
  return {};
}

bool is_trade_key(std::string_view key, std::string_view line) {
  const std::string_view symbol = trade_symbol(line);
  return key.size() > symbol.size() && key.starts_with(symbol) && key[symbol.size()] == '/' &&
         key.substr(symbol.size() + 1) == trade_time(line);
}

bool is_number_key(std::string_view key, std::uint64_t number) {
  char sequence[kSeqKeyBytes];
  codec::put_ordered(sequence, number);
  return key == std::string_view(sequence, sizeof sequence);
}

}  // namespace

Result<void> check_records(const std::filesystem::path& dir, std::uint64_t count) {
  auto store = open_store({.dir = dir, .read_only = true, .create = false});
  KV_TRY(store);
  Expectation expected;
  bool right = true;
  KV_TRY(walk_all(**store, [&](std::string_view key, std::string_view value) {
    right = expected.take(key, value);
    return right;
  }));
  KV_TRY((*store)->close());
  if (!right) return fail(Code::corrupt, "record {} is not what was sent", expected.seen());
  if (expected.seen() != count)
    return fail(Code::corrupt, "{} records were sent, {} are there", count, expected.seen());
  return {};
}

Result<void> check_lines(const std::filesystem::path& dir, std::uint64_t count, std::uint64_t digest,
                         KeyedBy keyed_by) {
  auto store = open_store({.dir = dir, .read_only = true, .create = false});
  KV_TRY(store);
  std::uint64_t seen = 0;
  std::uint64_t found = 0;
  bool right = true;
  KV_TRY(walk_all(**store, [&](std::string_view key, std::string_view value) {
    ++seen;
    found += line_digest(value);
    right = keyed_by == KeyedBy::trade ? is_trade_key(key, value) : is_number_key(key, seen);
    return right;
  }));
  KV_TRY((*store)->close());
  if (!right) return fail(Code::corrupt, "record {} does not stand under its key", seen);
  if (seen != count) return fail(Code::corrupt, "{} records were sent, {} are there", count, seen);
  if (found != digest) return fail(Code::corrupt, "{} records are there, but they are not those that were sent", seen);
  return {};
}

}  // namespace kvingest::bench
