// log_view.hpp -- reads records where they lie in the mapped log.
//
// Threads:  any, while whatever keeps the segment mapped is held (the index's latch, a registered reader, or a pin).
// Lifetime: views point into the mapping.
// Errors:   nothing is read outside the segment, whatever its bytes say; what makes no sense there is nullopt, and so
// is
//           every record of a segment that is found damaged when it is first read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "storage/index/bplus_tree.hpp"
#include "storage/mmap/address_space.hpp"
#include "storage/mmap/record_place.hpp"

namespace kvingest::mmap_store {

struct RecordView {
  std::string_view key;  ///< Empty for a record of a run, whose key is its number.
  std::string_view value;
};

class LogView final : public KeySource {
 public:
  explicit LogView(const AddressSpace& space) : space_(space) {}

  [[nodiscard]] std::optional<RecordView> record(RecordPlace place) const noexcept;
  /// Empty where the log makes no sense; record() then says so to whoever asks for the value.
  [[nodiscard]] std::string_view key_at(std::uint64_t word) const override;

  [[nodiscard]] const char* at(Place place) const noexcept { return space_.at(place); }
  /// Asks for the record's bytes, its first ones where there are many, ahead of their use.
  void prefetch(RecordPlace place) const noexcept {
    constexpr std::uint64_t kLineBytes = 64;
    const std::uint64_t bytes = std::min(place.about_bytes(), 4 * kLineBytes);
    const char* const at = space_.at(place.place());
    for (std::uint64_t offset = 0; offset < bytes; offset += kLineBytes) __builtin_prefetch(at + offset);
    __builtin_prefetch(at + bytes);
  }
  /// The damage that was found in frames which opening had not read, if any: `corrupt`, with file and offset. Where
  /// keys were compared with such a record, the index may have been searched, and changed, in the wrong place.
  [[nodiscard]] std::optional<Error> damage() const {
    return damaged_.load(std::memory_order_acquire) == nullptr ? std::nullopt : std::optional(describe_damage());
  }

  /// "000017.log at offset 4096", for messages.
  [[nodiscard]] std::string describe(Place place) const;

 private:
  [[nodiscard]] Error describe_damage() const;

  const AddressSpace& space_;
  mutable std::atomic<const Segment*> damaged_{nullptr};  // It is never dropped: its compaction fails.
};

}  // namespace kvingest::mmap_store
