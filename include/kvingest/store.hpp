// kvingest/store.hpp -- what every storage engine promises. Start here.
//
// A Store maps byte-string keys to byte-string values, in two key spaces: records and meta. Open one by name with
// open_store() (kvingest/engine.hpp); the engines are in storage/. Keys order by unsigned bytes; their limits are in
// kvingest/limits.hpp.
//
// Threads:  one writer at a time (write, sync, compact, close); reads on any thread, at any time before close().
// Lifetime: a view passed to a visitor is valid only until the visitor returns. A visitor does not block, does not
//           throw and does not call the store. Nothing else leaves a store: no iterator, snapshot or transaction.
// Errors:   a missing key is an answer. After a failed sync, or a write whose outcome is unknown, the store refuses
//           every later call with `failed`: what reached the disk is not known, and reopening is the way out.
//           After close() every call fails with invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvingest/function_ref.hpp"
#include "kvingest/limits.hpp"
#include "kvingest/result.hpp"
#include "kvingest/write_batch.hpp"

namespace kvingest {

/// Which crash a batch survives once write() has returned. Each level includes those before it.
enum class Durability : std::uint8_t {
  memory,  ///< None: lost with the process.
  kernel,  ///< kill -9: handed to the kernel, lost when power fails.
  disk,    ///< Power loss: on stable storage.
};

/// "memory", "kernel" or "disk".
[[nodiscard]] std::string_view to_string(Durability level) noexcept;

/// What an engine can do; constant while it is open.
struct Capabilities {
  bool ordered = true;                      ///< false: scan() fails with unsupported.
  bool persistent = true;                   ///< false: nothing outlives the process.
  Durability weakest = Durability::kernel;  ///< What asking for less gives.
  Durability strongest = Durability::disk;  ///< What asking for more gives.
  bool exact_prefix = true;                 ///< After power loss below `disk`: a prefix of the batches, no holes.
  bool syncs_each_write = false;            ///< Below `disk`, too, each write() waits for the disk.

  /// The level a write() asked at `level` really has.
  [[nodiscard]] constexpr Durability given(Durability level) const noexcept {
    return level < weakest ? weakest : level > strongest ? strongest : level;
  }
};

/// The keys from `first` on, up to but without `last`, each open where absent. `reverse` walks them from the last one.
struct Range {
  std::optional<std::string_view> first;
  std::optional<std::string_view> last;
  bool reverse = false;
  std::size_t limit = std::numeric_limits<std::size_t>::max();  ///< At most so many entries are visited.
};

/// What verify() found sound.
struct VerifyReport {
  std::uint64_t records = 0;
  std::uint64_t bytes_checked = 0;
  std::string torn_tail;  ///< Empty, or what an unacknowledged, torn end of the log holds and where it begins.
};

class Store {
 public:
  using ValueVisitor = FunctionRef<void(std::string_view value)>;
  using IndexedValueVisitor = FunctionRef<void(std::size_t index, std::string_view value)>;
  using EntryVisitor = FunctionRef<bool(std::string_view key, std::string_view value)>;
  using StatVisitor = FunctionRef<void(std::string_view name, std::uint64_t value)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;

  /// Applies every operation of `batch` in order, all or none; what `durability` names holds on return, and reads that
  /// start after it see the batch. There is no default level: say it.
  /// Fails with: invalid_argument, too_large, no_space and busy (nothing was written), io_error, failed.
  virtual Result<void> write(const WriteBatch& batch, Durability durability) = 0;

  /// Passes the value under `key` to `visit` and returns true; false, without calling it, when there is none.
  /// Fails with: corrupt (a checksum does not match), io_error, failed.
  virtual Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const = 0;
  Result<bool> get(std::string_view key, ValueVisitor visit) const { return get(Space::records, key, visit); }

  /// Looks up all `keys` in one view and passes each value found with its index in `keys`. Returns how many were found.
  virtual Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const = 0;

  /// Passes the entries of `range` in key order to `visit` until it returns false; returns how many were passed. One
  /// call sees the store as of its start while writes go on. Callers page (1,000 rows or 1 MiB).
  /// Fails with: unsupported (an unordered engine), corrupt, io_error, failed.
  virtual Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const = 0;
  Result<std::size_t> scan(const Range& range, EntryVisitor visit) const { return scan(Space::records, range, visit); }

  /// Puts all that write() has acknowledged on disk. A memory engine returns at once.
  /// Fails with: io_error, and the store is `failed` from then on.
  virtual Result<void> sync() = 0;

  /// Number of the last batch: write() counts its calls that returned without an error, from 1, for the store's
  /// lifetime; kept in the same atomic step as the batch itself.
  [[nodiscard]] virtual std::uint64_t last_batch() const noexcept = 0;

  /// Number of records. May walk the store.
  virtual Result<std::uint64_t> count() const = 0;

  /// Sizes and counters: bytes where the name ends in _bytes, else a count.
  virtual void stats(StatVisitor visit) const = 0;

  /// Reads every checksum and holds the index against the data. Fails with: corrupt, naming the first damaged place.
  virtual Result<VerifyReport> verify() const = 0;

  /// Gives back the space of what was overwritten and erased.
  virtual Result<void> compact() = 0;

  /// Copies the store, as of one moment, into the new directory `to`; the store directory layer adds its marker.
  virtual Result<void> backup(const std::filesystem::path& to) const = 0;

  /// Syncs and gives everything back. A destructor does the same but cannot report. A second call does nothing.
  virtual Result<void> close() = 0;
};

}  // namespace kvingest
