// mmap_store.hpp -- the fast store: an append-only log in mapped segments, and an ordered index of it in memory.
//
// write() appends the batch as one frame (log.hpp) and then tells the index where its records are (record_index.hpp in
// a VersionedIndex); reads go from the index straight into the mapping. README.md names the files in the order to read.
//
// Threads:  as kvingest/store.hpp says. Two helpers: `kv-mmap-ahead` makes the next segment and touches index memory
//           before the writer needs them, `kv-mmap-sync` syncs full segments. Neither touches the index's content.
// Lifetime: close() stops the helpers; the mapping lives until the destructor.
#pragma once

#include <absl/container/btree_map.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"
#include "storage/index/versioned_index.hpp"
#include "storage/mmap/background.hpp"
#include "storage/mmap/log.hpp"
#include "storage/mmap/log_view.hpp"
#include "storage/mmap/record_index.hpp"
#include "storage/mmap/recovery.hpp"

namespace kvingest::mmap_store {

struct Options {
  std::uint64_t segment_bytes;
  std::uint64_t index_bytes_max;
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
  using MetaIndex = SortedMap<absl::btree_map<std::string, RecordPlace, std::less<>>>;
  using Index = VersionedIndex<RecordIndex, MetaIndex>;
  class BatchTarget;
  class ReplayTarget;
  struct Plan {
    std::size_t operations = 0;  // A run is one.
    std::size_t tree_puts = 0;   // At most so many new keys in the tree.
  };

  MmapStore(const EngineContext& context, const Options& options, AddressSpace space, NodeArena arena,
            std::uint64_t store_id);

  Result<void> recover(const std::vector<SegmentFile>& files, const EngineContext& context);
  Result<Plan> plan_of(std::string_view batch) const;
  void apply(std::string_view payload, Place at, std::size_t operations);
  void count_record(RecordPlace place);
  void count_run(Place payload, std::uint32_t count, std::size_t bytes);
  void count_dead(RecordPlace place);
  void touch_ahead();
  [[nodiscard]] tl::unexpected<Error> index_full() const;
  [[nodiscard]] std::size_t index_bytes() const;
  [[nodiscard]] tl::unexpected<Error> damaged(RecordPlace place) const;
  Result<std::uint64_t> verify_frames() const;
  Result<std::uint64_t> verify_index(Space space) const;

  AddressSpace space_;
  LogView view_;
  const SegmentHome home_;
  const Options options_;
  const bool read_only_;
  Background ahead_{"kv-mmap-ahead"};
  Background syncer_{"kv-mmap-sync"};
  SegmentSupply supply_;
  std::optional<Log> log_;  // Set by recover(), before anybody else sees the store.
  Index index_;
  std::string torn_tail_;
  std::atomic<bool> touching_{false};  // The helper has been asked to touch index memory.
  bool closed_ = false;
};

}  // namespace kvingest::mmap_store
