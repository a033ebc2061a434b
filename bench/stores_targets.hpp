// stores_targets.hpp -- what the suite `stores` measures: stores through the one interface, and what they are compared
// with: loops on the engines' own interfaces, and on plain files.
//
// The loops do the same work with the same batches at the same level, set up as our adapters set the engines up: what
// differs is the interface. LMDB's renews its read transaction for each get, since each get is to see the newest.
//
// Threads: one.
// Errors:  io_error and what stores fail with; the text says what was being done.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "bench/stores_records.hpp"
#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"

namespace kvingest::bench {

class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  /// Takes the records as one batch.
  virtual Result<void> put(const RecordGroup& group) = 0;
  /// Gets each key by a call of its own.
  virtual Result<void> get(const RecordGroup& group, Look& look) = 0;
  virtual Result<void> close() = 0;
  /// The store behind it; null where there is none.
  [[nodiscard]] virtual Store* store() noexcept { return nullptr; }
};

using OpenedTarget = Result<std::unique_ptr<Target>>;

/// A store, opened with `spec` in the new directory `dir`. With `arrival`, records are put under arrival numbers.
[[nodiscard]] OpenedTarget open_store_target(const std::string& spec, const std::filesystem::path& dir,
                                             Durability level, bool arrival = false);

/// LMDB and RocksDB by themselves, at `kernel`. Fail with: unsupported (not in this build).
[[nodiscard]] OpenedTarget open_bare_lmdb(const std::filesystem::path& dir);
[[nodiscard]] OpenedTarget open_bare_rocksdb(const std::filesystem::path& dir);

/// Writes as many bytes as a batch of these records has to a file that was allocated before, and syncs it: the least
/// that putting them on disk can cost.
[[nodiscard]] OpenedTarget open_synced_file(const std::filesystem::path& dir, std::uint64_t records);

/// One lseek and one write for each record, of as many bytes as it takes in the slots of store `file`.
[[nodiscard]] OpenedTarget open_seek_file(const std::filesystem::path& dir);

}  // namespace kvingest::bench
