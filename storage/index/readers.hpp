// readers.hpp -- who reads a versioned index right now, and as of which batch: what they may still need is not given
// back.
//
// Threads:  any, except where said.
// Lifetime: a Reader is registered from its construction to its destruction and stays where it is.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvingest/write_batch.hpp"

namespace kvingest {

/// The keys that were there when somebody began to read and that he may still ask for.
struct KeyInterval {
  std::string low = {};                  ///< Inclusive.
  std::optional<std::string> high = {};  ///< Inclusive; absent: no upper end.
  bool empty = false;

  [[nodiscard]] bool contains(std::string_view key) const noexcept { return reaches(key) && key >= low; }
  /// Whether a key at or behind `key` may be in it.
  [[nodiscard]] bool reaches(std::string_view key) const noexcept { return !empty && (!high || key <= *high); }
};

class Readers {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  class Reader {
   public:
    /// Reads places only: they stay valid, but changes need not be recorded.
    Reader(Readers& readers, std::uint64_t sequence);
    /// Reads `keys` of `space` as of batch `sequence`.
    Reader(Readers& readers, std::uint64_t sequence, Space space, KeyInterval keys);
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();

    [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
    [[nodiscard]] const KeyInterval& keys() const noexcept { return keys_; }

   private:
    friend class Readers;
    Readers& readers_;
    std::uint64_t sequence_;
    std::uint64_t begun_before_ = 0;  // So many others.
    Space space_ = Space::records;
    KeyInterval keys_;
  };

  /// How many have begun to read so far, and whether one of the first `count` of them still does.
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] bool any_before(std::uint64_t count) const;
  /// The lowest batch somebody reads as of; kNone when nobody reads.
  [[nodiscard]] std::uint64_t oldest() const;

  /// Keeps the list as it is; while it is held, the functions below may be called.
  [[nodiscard]] std::unique_lock<std::mutex> freeze() const { return std::unique_lock(mutex_); }
  [[nodiscard]] bool frozen_empty() const noexcept { return active_.empty(); }
  [[nodiscard]] std::uint64_t frozen_oldest() const noexcept;
  /// Whether somebody may ask for `key` as it was.
  [[nodiscard]] bool frozen_need(Space space, std::string_view key) const noexcept;
  /// Whether somebody may ask for a key at or behind `first` as it was.
  [[nodiscard]] bool frozen_need_from(Space space, std::string_view first) const noexcept;

 private:
  void add(Reader& reader);

  mutable std::mutex mutex_;
  std::vector<Reader*> active_;  // Guarded by mutex_.
  std::uint64_t begun_ = 0;      // Guarded by mutex_.
};

}  // namespace kvingest
