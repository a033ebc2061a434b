// lmdb_store.hpp -- the promises of kvingest/store.hpp kept with LMDB.
//
// Writes: one transaction for each batch. At `disk` LMDB's default: data pages and, after them, the header are on disk
// on return. Below it MDB_NOMETASYNC: the header of the last transaction may still be in the page cache, so that a
// power cut takes the last batches back, and never more than an exact prefix is left. MDB_NOSYNC would be faster and
// can destroy what was synced long ago; only `bulk=true` uses it, until the first sync().
//
// Threads and errors: as kvingest/store.hpp says.
#pragma once

#include <lmdb.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "kvingest/store.hpp"
#include "storage/lmdb/batch_writer.hpp"
#include "storage/lmdb/environment.hpp"

namespace kvingest::lmdb {

class LmdbStore final : public Store {
 public:
  /// With `bulk`, nothing is synced until the first sync() or close().
  LmdbStore(Settings settings, bool bulk) : settings_(std::move(settings)), bulk_(bulk) {}
  ~LmdbStore() override { static_cast<void>(close()); }

  /// Before any other call. Fails like Environment::open(), and with: corrupt (a bulk load was cut off by a power cut).
  Result<void> open();

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    if (bulk_) return {.strongest = Durability::kernel, .exact_prefix = false};
    return {.syncs_each_write = true};
  }
  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override;
  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override;
  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override;
  Result<void> sync() override;
  [[nodiscard]] std::uint64_t last_batch() const noexcept override {
    return last_batch_.load(std::memory_order_relaxed);
  }
  Result<std::uint64_t> count() const override;
  void stats(StatVisitor visit) const override;
  Result<VerifyReport> verify() const override;
  Result<void> compact() override;
  Result<void> backup(const std::filesystem::path& to) const override;
  Result<void> close() override;

 private:
  [[nodiscard]] MDB_dbi database(Space space) const noexcept {
    return space == Space::meta ? env_->databases().meta : env_->databases().records;
  }
  Result<void> check_usable() const;
  Result<void> begin_bulk();
  Result<void> end_bulk();
  Result<void> read_last_batch();
  Result<ReaderPool::Lease> begin_read() const;
  int commit(const WriteBatch& batch);
  Result<void> commit_failed(int rc, std::uint64_t batch_bytes);
  [[nodiscard]] bool panicked() const noexcept;
  Result<void> latch(Error error);
  void look_after_readers();
  void use_level(Durability durability);
  Result<void> copy_to(const std::filesystem::path& path) const;

  const Settings settings_;
  const bool bulk_;
  std::unique_ptr<Environment> env_;  // Null when closed.
  BatchWriter batch_writer_;
  std::atomic<std::uint64_t> last_batch_ = 0;
  std::atomic<std::uint64_t> appended_batches_ = 0;
  std::atomic<std::uint64_t> sorted_batches_ = 0;
  std::optional<Error> failure_;  // Latched. The writer's, like all below.
  bool loading_ = false;          // A bulk load is under way: MDB_NOSYNC is set and DIR/BULK exists.
  bool meta_sync_ = true;         // MDB_NOMETASYNC is off.
  bool header_synced_ = true;     // The last commit is on disk.
  std::chrono::steady_clock::time_point stale_checked_ = std::chrono::steady_clock::now();
};

}  // namespace kvingest::lmdb
