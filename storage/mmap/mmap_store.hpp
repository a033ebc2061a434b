// mmap_store.hpp -- the fast store: an append-only log in mapped segments, and an ordered index of it in memory.
//
// write() appends the batch as one frame (log.hpp) and then tells the index where its records are (record_index.hpp in
// a VersionedIndex); reads go from the index straight into the mapping. README.md names the files in the order to read.
//
// Threads:  as kvingest/store.hpp says. Four helpers: `kv-mmap-ahead` makes the next segment and touches index memory
//           before the writer needs them, `kv-mmap-sync` syncs full segments, `kv-mmap-compact` gives back the space of
//           dead records (compactor.hpp); it alone changes the index, in turns with the writer. `kv-mmap-index` writes
//           checkpoints of the index (checkpointer.hpp).
// Lifetime: close() stops the helpers; the mapping lives until the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"
#include "storage/mmap/accounts.hpp"
#include "storage/mmap/background.hpp"
#include "storage/mmap/bus_guard.hpp"
#include "storage/mmap/checkpoint_reader.hpp"
#include "storage/mmap/checkpointer.hpp"
#include "storage/mmap/compactor.hpp"
#include "storage/mmap/log.hpp"
#include "storage/mmap/log_view.hpp"
#include "storage/mmap/recovery.hpp"
#include "storage/mmap/store_index.hpp"
#include "storage/mmap/turns.hpp"

namespace kvingest::mmap_store {

struct Options {
  std::uint64_t segment_bytes;
  std::uint64_t index_bytes_max;
  std::uint64_t compact_bytes_per_second;
  std::uint64_t checkpoint_bytes;
  bool write_through_map;
};

class MmapStore final : public Store {
 public:
  /// Opens the log in `context.dir`, replaying it. Fails as Engine::open does.
  static Result<std::unique_ptr<Store>> open(const EngineContext& context, const Options& options);

  ~MmapStore() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override;
  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override;
  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override;
  Result<void> sync() override;
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return log_->last_batch(); }
  Result<std::uint64_t> count() const override { return index_.size(Space::records); }
  void stats(StatVisitor visit) const override;
  Result<VerifyReport> verify() const override;
  Result<void> compact() override;
  Result<void> backup(const std::filesystem::path& to) const override;
  Result<void> close() override;

 private:
  class BatchTarget;
  struct Plan {
    std::size_t operations = 0;  // A run is one.
    std::size_t tree_puts = 0;   // At most so many new keys in the tree.
  };

  MmapStore(const EngineContext& context, const Options& options, AddressSpace space, NodeArena arena,
            std::uint64_t store_id);

  Result<void> recover(const LogFiles& files, const EngineContext& context);
  static std::optional<Checkpoint> find_checkpoint(const LogFiles& files, const EngineContext& context);
  const CheckpointTable* load_checkpoint(const Checkpoint& checkpoint, ThreadPool& pool,
                                         std::span<const std::unique_ptr<Segment>> segments,
                                         const EngineContext& context);
  Result<Plan> plan_of(std::string_view batch) const;
  [[nodiscard]] bool must_wait_for_space(std::size_t bytes);
  void apply(std::string_view payload, Place at, std::size_t operations);
  void start_helpers();
  void look_for_dead();
  void touch_ahead();
  [[nodiscard]] tl::unexpected<Error> index_full() const;
  [[nodiscard]] std::size_t index_bytes() const;
  [[nodiscard]] tl::unexpected<Error> damaged(RecordPlace place) const;
  [[nodiscard]] Result<void> check_search() const;
  Result<std::uint64_t> verify_frames() const;
  Result<std::uint64_t> verify_index(Space space) const;

  AddressSpace space_;
  WatchedRange watched_;
  LogView view_;
  Accounts accounts_;
  const SegmentHome home_;
  const Options options_;
  const bool read_only_;
  Background ahead_{"kv-mmap-ahead"};
  Background syncer_{"kv-mmap-sync"};
  SegmentSupply supply_;
  std::optional<Log> log_;  // Set by recover(), before anybody else sees the store.
  Index index_;
  Turns turns_;                         // Who holds it may append and change the index: the writer and compaction.
  std::optional<Compactor> compactor_;  // Absent in a store that is read only, as the next.
  std::optional<Checkpointer> checkpointer_;
  std::uint64_t dead_bytes_ = 0;      // Since compaction last had a look. Guarded by the turn, as the one below.
  std::uint64_t next_number_ = 0;     // Of segments, when it had one.
  std::uint64_t unlooked_bytes_ = 0;  // Written since must_wait_for_space() had a look; the writer's, as the next.
  std::uint64_t waited_in_ = 0;       // The next segment's number when it had the writer wait last.
  std::atomic<std::uint64_t> batch_bytes_{0};  // Written since the store was opened.
  std::string torn_tail_;
  std::atomic<bool> touching_{false};  // The helper has been asked to touch index memory.
  bool closed_ = false;
};

}  // namespace kvingest::mmap_store
