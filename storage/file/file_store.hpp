// file_store.hpp -- the naive seek-and-write store: one seek and one write per record, into slots of one file, and
// still safe. README.md in this folder says how its parts work together.
//
// Threads: as kvingest/store.hpp says. Readers meet the writer in the versioned index only; a record they may reach is
//          neither cleared nor written over.
// Errors:  after a failed sync, or a commit header of which nobody knows whether it was written, every later call that
//          changes something fails with `failed`.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/posix.hpp"
#include "kvingest/store.hpp"
#include "storage/file/live_map.hpp"
#include "storage/file/slot_writer.hpp"
#include "storage/index/versioned_index.hpp"

namespace kvingest::slots {

class FileStore final : public Store {
 public:
  /// Shows what recover() found in `file`. `posix` outlives the store.
  FileStore(const Posix& posix, bool read_only, SlotFile file, Recovered recovered);
  ~FileStore() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  Result<void> write(const WriteBatch& batch, Durability durability) override;
  Result<bool> get(Space space, std::string_view key, ValueVisitor visit) const override;
  Result<std::size_t> multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const override;
  Result<std::size_t> scan(Space space, const Range& range, EntryVisitor visit) const override;
  Result<void> sync() override;
  [[nodiscard]] std::uint64_t last_batch() const noexcept override { return last_batch_.load(); }
  Result<std::uint64_t> count() const override { return index_.size(Space::records); }
  void stats(StatVisitor visit) const override;
  Result<VerifyReport> verify() const override;
  Result<void> compact() override;
  Result<void> backup(const std::filesystem::path& to) const override;
  Result<void> close() override;

 private:
  using Index = VersionedIndex<LiveMap>;

  /// What stats() and backup() see of the writer's state.
  struct Shown {
    std::uint64_t batch = 0;
    std::uint64_t synced = 0;
    LiveSum live;
    std::uint64_t index_bytes = 0;
    std::uint64_t waiting_slots = 0;
    std::uint64_t free_slots = 0;
    std::uint64_t end = 0;
    std::uint64_t syncs = 0;
    std::uint64_t self_syncs = 0;
  };

  [[nodiscard]] Result<void> check_writable() const;
  Result<void> prepare();
  void apply(const WriteBatch& batch, std::span<const Place> places);
  Result<void> sync_now();
  Result<void> clear_waiting();
  tl::unexpected<Error> latched(Error error);
  void show();
  [[nodiscard]] LiveSum live() { return index_.records().live() + index_.meta().live(); }
  [[nodiscard]] Shown shown() const;

  const Posix& posix_;
  const bool read_only_;
  const Geometry geometry_;
  const std::string torn_tail_;
  SlotFile file_;
  Index index_;
  SlotWriter writer_;
  std::optional<Error> failed_;  // The writer's; latched.
  bool changed_ = false;         // Something was written since opening.
  std::uint64_t self_syncs_ = 0;
  std::atomic<std::uint64_t> last_batch_;
  mutable std::atomic<int> backups_{0};  // That run now: nothing may be cleared.
  mutable std::mutex shown_mutex_;
  Shown shown_;  // Guarded by shown_mutex_.
};

}  // namespace kvingest::slots
