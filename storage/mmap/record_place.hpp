// record_place.hpp -- what the index keeps of a record: where it is, and enough to account for it when it dies without
// touching it again.
//
//   bits  0-43  place in the address space: of the operation, or of the record inside a run
//   bit   44    it is a record of a run: what lies there is the value's length and the value; the key is its number
//   bits 45-55  size class: the record's bytes in the log, to within a 128th
//
// Threads: values.
#pragma once

#include <bit>
#include <cstdint>

#include "storage/mmap/address_space.hpp"

namespace kvingest::mmap_store {

class RecordPlace {
 public:
  static constexpr unsigned kBits = 56;

  RecordPlace() = default;
  RecordPlace(Place place, bool in_run, std::uint64_t record_bytes) noexcept
      : word_(place | std::uint64_t{in_run} << kRunBit | size_class(record_bytes) << kSizeShift) {}
  static RecordPlace from_word(std::uint64_t word) noexcept {
    RecordPlace place;
    place.word_ = word;
    return place;
  }

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] Place place() const noexcept { return word_ & ((std::uint64_t{1} << AddressSpace::kPlaceBits) - 1); }
  [[nodiscard]] bool in_run() const noexcept { return (word_ >> kRunBit & 1) != 0; }
  /// About the bytes that the record takes in the log; the same whenever it is asked.
  [[nodiscard]] std::uint64_t about_bytes() const noexcept { return class_bytes(word_ >> kSizeShift); }

  /// What about_bytes() says of a record of so many bytes.
  [[nodiscard]] static std::uint64_t about_bytes(std::uint64_t record_bytes) noexcept {
    return class_bytes(size_class(record_bytes));
  }

  friend bool operator==(RecordPlace, RecordPlace) = default;

 private:
  static constexpr unsigned kRunBit = AddressSpace::kPlaceBits;
  static constexpr unsigned kSizeShift = kRunBit + 1;
  static constexpr std::uint64_t kSizeBytesMax = (std::uint64_t{1} << 32) - 1;

  // A floating-point number with six bits behind the leading one: below 128 the bytes themselves, then classes of a
  // 64th of their leading power of two each, up to number 1,727.
  static constexpr unsigned kFractionBits = 6;
  static constexpr std::uint64_t kFractions = std::uint64_t{1} << kFractionBits;

  static std::uint64_t size_class(std::uint64_t bytes) noexcept {
    if (bytes < kFractions) return bytes;
    bytes = bytes < kSizeBytesMax ? bytes : kSizeBytesMax;
    const auto exponent = static_cast<unsigned>(std::bit_width(bytes)) - 1;
    return kFractions * (exponent - kFractionBits + 1) + (bytes >> (exponent - kFractionBits) & (kFractions - 1));
  }
  static std::uint64_t class_bytes(std::uint64_t size_class) noexcept {
    if (size_class < kFractions) return size_class;
    const unsigned exponent = static_cast<unsigned>(size_class / kFractions) + kFractionBits - 1;
    const std::uint64_t step = std::uint64_t{1} << (exponent - kFractionBits);
    return (kFractions + size_class % kFractions) * step + step / 2;  // The middle of its class.
  }

  std::uint64_t word_ = 0;
};

}  // namespace kvingest::mmap_store
