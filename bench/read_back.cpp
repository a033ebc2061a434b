#include "bench/read_back.hpp"

#include <charconv>
#include <optional>
#include <string>

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
    key_ = key;
    char sequence[kSeqKeyBytes];  // The records are numbered from 1.
    codec::put_ordered(sequence, seen_);
    return key == std::string_view(sequence, sizeof sequence) && value.starts_with(kMessage) &&
           value.substr(kMessage.size()) == std::string_view(number, static_cast<std::size_t>(digits - number));
  }
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  [[nodiscard]] const std::string& last_key() const noexcept { return key_; }

 private:
  std::uint64_t seen_ = 0;
  std::string key_;
};

}  // namespace

Result<void> check_records(const std::filesystem::path& dir, std::uint64_t count) {
  auto store = open_store({.dir = dir, .read_only = true, .create = false});
  KV_TRY(store);
  Expectation expected;
  bool right = true;
  for (std::size_t page = kPageRecords; right && page == kPageRecords;) {
    const std::string first = expected.last_key() + '\0';  // The least key behind the last one.
    const Range range{.first = expected.seen() == 0 ? std::nullopt : std::optional<std::string_view>(first),
                      .limit = kPageRecords};
    auto walked = (*store)->scan(range, [&](std::string_view key, std::string_view value) {
      right = expected.take(key, value);
      return right;
    });
    KV_TRY(walked);
    page = *walked;
  }
  KV_TRY((*store)->close());
  if (!right) return fail(Code::corrupt, "record {} is not what was sent", expected.seen());
  if (expected.seen() != count)
    return fail(Code::corrupt, "{} records were sent, {} are there", count, expected.seen());
  return {};
}

}  // namespace kvingest::bench
