// stores_records.hpp -- what the suite `stores` puts and gets: records of 16 + 100 bytes, made from their number, so
// that fifty million of them need no memory.
//
// Threads: values; one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::bench {

inline constexpr std::size_t kStoresKeyBytes = 16;
inline constexpr std::size_t kStoresValueBytes = 100;

/// In which order keys arrive.
enum class KeyOrder : std::uint8_t {
  sequential,  ///< Rising.
  series,      ///< 1,000 series in turns, each of them rising.
  random,      ///< Scattered over all keys.
};

/// "sequential", "series" or "random".
[[nodiscard]] std::string_view to_string(KeyOrder order) noexcept;

/// Mixes a number one to one: distinct numbers stay distinct.
[[nodiscard]] std::uint64_t scattered(std::uint64_t number) noexcept;

/// `bytes` bytes that no engine can compress away: others for another number, up to 57,000 of them.
[[nodiscard]] const char* noise_for(std::uint64_t number, std::size_t bytes) noexcept;

struct StoredRecord {
  std::string_view key;
  std::string_view value;
};

/// Some records at once, with the memory for them. Made outside of what is timed.
class RecordGroup {
 public:
  /// Records number `first` to `first + count - 1`, as they arrive.
  void fill(KeyOrder order, std::uint64_t first, std::size_t count);
  /// `count` of the first `records` records, scattered; another `turn` gives others.
  void pick(KeyOrder order, std::uint64_t records, std::uint64_t turn, std::size_t count);

  [[nodiscard]] std::span<const StoredRecord> records() const noexcept { return records_; }
  [[nodiscard]] std::span<const std::string_view> keys() const noexcept { return keys_; }
  /// Of the numbers of its records.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }

 private:
  void begin(std::size_t count);
  void add(KeyOrder order, std::uint64_t number);

  std::vector<char> bytes_;
  std::size_t at_ = 0;
  std::vector<StoredRecord> records_;
  std::vector<std::string_view> keys_;
  std::uint64_t sum_ = 0;
};

/// Looks at each value that a store hands out: one cache line of it, so that none wins by nobody reading; all of it
/// where it is to be `compared`.
struct Look {
  const RecordGroup* compared = nullptr;
  std::uint64_t sum = 0;  ///< Of the numbers of the records that were seen.
  std::uint64_t count = 0;
  std::uint64_t wrong = 0;

  /// The value of the record with this index in its group.
  void operator()(std::size_t index, std::string_view value) noexcept {
    ++count;
    if (value.size() != kStoresValueBytes) {
      ++wrong;
      return;
    }
    sum += codec::get_fixed<std::uint64_t>(value.data());
    if (compared != nullptr && compared->records()[index].value != value) ++wrong;
  }
};

}  // namespace kvingest::bench
