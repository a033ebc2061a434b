// rocksdb_store.hpp -- the promises of kvingest/store.hpp kept with RocksDB.
//
// Writes: one rocksdb::WriteBatch for each of ours, with the number of the batch in it, always through the log. At
// `disk` RocksDB syncs the log before it returns; below it the record is handed to the kernel, and recovery to a point
// in time leaves an exact prefix of the batches.
//
// Keys:   one column family; the first byte of a key is its space, so that a batch over both spaces is atomic and no
// second family's old memtable can keep the log from being cut.
//
// Stalls: writes that RocksDB slows down are slowed down here, which is back-pressure. Where it stops them, write()
// waits a moment and returns `busy`, so that a service stays able to say what it waits for.
//
// Full disk: a log record that was cut short is not the end of it for RocksDB: it recovers by itself, and where its
// memtable is empty goes on with the same log, which then fails for good (or trips an assertion in Debian's build). So
// the database is opened anew, in place, when there is space; until then reads go on.
//
// Threads and errors: as kvingest/store.hpp says.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "kvingest/engine.hpp"
#include "storage/rocksdb/write_state.hpp"

namespace kvingest::rocks {

class RocksdbStore final : public Store {
 public:
  explicit RocksdbStore(const EngineContext& context);
  ~RocksdbStore() override { static_cast<void>(close()); }

  Result<void> open(const EngineOptions& options, bool fresh);

  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
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
  rocksdb::Status open_database(bool read_only);
  rocksdb::Status close_database();
  Result<void> open_anew(std::uint64_t batch_bytes);
  [[nodiscard]] bool has_room(std::uint64_t batch_bytes) const;
  Result<void> sync_log_files() const;
  Result<void> check_open() const;
  Result<void> check_writable() const;
  Result<void> read_last_batch();
  rocksdb::Status encode(const WriteBatch& batch);
  rocksdb::Status encode_entry(const BatchEntry& entry);
  rocksdb::Status write_while_stalled(rocksdb::WriteOptions options);
  Result<void> write_failed(const rocksdb::Status& status);
  Result<void> latch(Error error);
  Result<void> multi_get_part(const rocksdb::ReadOptions& options, std::span<const std::string_view> keys,
                              std::size_t first, IndexedValueVisitor visit, std::size_t& found) const;

  const std::filesystem::path dir_;
  const std::string path_;
  const bool read_only_;
  const std::shared_ptr<WriteState> write_state_ = std::make_shared<WriteState>();
  const Posix* const posix_;
  rocksdb::Options settings_;
  mutable std::shared_mutex in_use_;  // Shared by reads; the writer's alone while the database is exchanged or closed.
  std::unique_ptr<rocksdb::DB> db_;   // Null when closed. Guarded by in_use_, which the writer needs only to change it.
  const rocksdb::ReadOptions read_options_;
  rocksdb::WriteBatch encoded_;  // Kept for its memory.
  std::atomic<std::uint64_t> last_batch_ = 0;
  std::atomic<std::uint64_t> busy_writes_ = 0;
  std::atomic<std::uint64_t> opened_anew_ = 0;
  std::optional<Error> failure_;  // Latched. The writer's, like unsynced_.
  bool unsynced_ = false;         // The log holds batches that were not synced.
  bool log_torn_ = false;         // A record was cut short by a full disk: this database must not use its log again.
};

// The first byte of every key. Records come last, so that keys in order are appended to the whole.
inline constexpr char kOwnByte = 0;
inline constexpr char kMetaByte = 1;
inline constexpr char kRecordsByte = 2;
inline constexpr std::string_view kLastBatchKey{"\0last batch", 11};
static_assert(kLastBatchKey.front() == kOwnByte);

[[nodiscard]] constexpr char byte_of(Space space) noexcept {
  return space == Space::meta ? kMetaByte : kRecordsByte;
}
[[nodiscard]] inline rocksdb::Slice to_slice(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}
[[nodiscard]] inline std::string_view to_view(const rocksdb::Slice& bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

/// A key with the byte of its space in front, without an allocation.
class SpaceKey {
 public:
  /// `key` has at most kKeyBytesMax bytes.
  SpaceKey(Space space, std::string_view key) noexcept : size_(1 + key.size()) {
    bytes_[0] = byte_of(space);
    std::memcpy(bytes_ + 1, key.data(), key.size());
  }
  [[nodiscard]] rocksdb::Slice slice() const noexcept { return {bytes_, size_}; }

 private:
  std::size_t size_;
  char bytes_[1 + kKeyBytesMax];
};

}  // namespace kvingest::rocks
