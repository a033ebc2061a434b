// address_space.hpp -- one reserved range of addresses that all segments of a store are mapped into, so that a place in
// the log is an offset into it and reading one is an addition. The range is reserved once: it never moves, so a
// reader's pointer stays right while segments come and go.
//
// Threads:  any.
// Lifetime: a place is valid from map() to unmap() of its segment.
// Errors:   map() fails with io_error, or no_space when the range is used up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "base/posix.hpp"
#include "kvingest/result.hpp"

namespace kvingest::mmap_store {

class Segment;

/// An offset into the address space: where a byte of the log is. It fits 44 bits: 16 TiB.
using Place = std::uint64_t;

class AddressSpace {
 public:
  static constexpr unsigned kPlaceBits = 44;
  static constexpr unsigned kGranuleBits = 20;
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{1}
                                                 << kGranuleBits;  ///< Segments begin on its multiples.

  /// Reserves addresses, no memory; less than wished where the system refuses so much. Fails with: io_error.
  static Result<AddressSpace> reserve(const Posix& posix);

  AddressSpace(AddressSpace&& other) noexcept;
  AddressSpace& operator=(AddressSpace&&) = delete;
  ~AddressSpace();

  /// Maps the first `bytes` of `file` and makes `owner` their owner. Nothing may be read beyond the file's end.
  Result<Place> map(const File& file, std::uint64_t bytes, bool writable, Segment& owner);
  void unmap(Place base, std::uint64_t bytes) noexcept;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] char* at(Place place) const noexcept { return base_ + place; }
  /// The segment that `place` lies in; null when there is none.
  [[nodiscard]] Segment* owner(Place place) const noexcept {
    return owners_[place >> kGranuleBits].load(std::memory_order_acquire);
  }

  /// While one lives, addresses that a segment leaves are not used again: a place then means one segment for ever.
  class Hold {
   public:
    explicit Hold(AddressSpace& space);
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold();

   private:
    AddressSpace& space_;
  };

 private:
  AddressSpace(const Posix& posix, char* base, std::atomic<Segment*>* owners, std::uint64_t bytes);
  void unmap_locked(Place base, std::uint64_t bytes) noexcept;
  void own(Place base, std::uint64_t bytes, Segment* owner) noexcept;
  void give_back(Place base, std::uint64_t bytes);

  const Posix* posix_;
  char* base_;
  std::atomic<Segment*>* owners_;  // One for each granule, in memory that is taken when touched.
  std::uint64_t bytes_;
  std::mutex mutex_;
  std::map<Place, std::uint64_t> free_;  // Guarded by mutex_. Begin and size of the free ranges, in whole granules.
  std::map<Place, std::uint64_t> held_;  // Guarded by mutex_. Those that become free when there is no Hold any more.
  std::size_t holds_ = 0;                // Guarded by mutex_.
};

}  // namespace kvingest::mmap_store
