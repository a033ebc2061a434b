// rocksdb_store.cpp -- the rocksdb engine: the promises of kvingest/store.hpp kept with RocksDB.
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
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "storage/engine_rows.hpp"
#include "storage/rocksdb/rocks_error.hpp"
#include "storage/rocksdb/rocks_options.hpp"
#include "storage/rocksdb/write_state.hpp"

namespace kvingest {
namespace {

using rocks::failure;
using rocksdb::Slice;
using rocksdb::Status;

constexpr std::uint32_t kFormatVersion = 1;
constexpr const char* kDatabaseName = "db";  // A directory of its own: RocksDB has a file LOCK, too.
constexpr std::chrono::milliseconds kStoppedWaitMax{200};
constexpr std::size_t kMultiGetMax = 1024;         // Values pinned at a time.
constexpr std::size_t kBatchKeptBytes = 16 << 20;  // A larger batch gives its memory back.

// The first byte of every key. Records come last, so that keys in order are appended to the whole.
constexpr char kOwnByte = 0;
constexpr char kMetaByte = 1;
constexpr char kRecordsByte = 2;
constexpr std::string_view kLastBatchKey{"\0last batch", 11};

constexpr char byte_of(Space space) noexcept {
  return space == Space::meta ? kMetaByte : kRecordsByte;
}
Slice to_slice(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}
std::string_view to_view(const Slice& bytes) noexcept {
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
  [[nodiscard]] Slice slice() const noexcept { return {bytes_, size_}; }

 private:
  std::size_t size_;
  char bytes_[1 + kKeyBytesMax];
};

class RocksdbStore final : public Store {
 public:
  explicit RocksdbStore(EngineContext context)
      : dir_(std::move(context.dir)), path_((dir_ / kDatabaseName).native()), read_only_(context.read_only) {}
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
  Result<void> check_open() const;
  Result<void> check_writable() const;
  Result<void> read_last_batch();
  Status encode(const WriteBatch& batch);
  Status encode_entry(const BatchEntry& entry);
  Status write_while_stalled(rocksdb::WriteOptions options);
  Result<void> write_failed(const Status& status);
  Result<void> latch(Error error);
  Result<void> multi_get_part(const rocksdb::ReadOptions& options, std::span<const std::string_view> keys,
                              std::size_t first, IndexedValueVisitor visit, std::size_t& found) const;

  const std::filesystem::path dir_;
  const std::string path_;
  const bool read_only_;
  const std::shared_ptr<rocks::WriteState> write_state_ = std::make_shared<rocks::WriteState>();
  std::unique_ptr<rocksdb::DB> db_;  // Null when closed.
  const rocksdb::ReadOptions read_options_;
  rocksdb::WriteBatch encoded_;  // Kept for its memory.
  std::atomic<std::uint64_t> last_batch_ = 0;
  std::atomic<std::uint64_t> busy_writes_ = 0;
  std::optional<Error> failure_;  // Latched. The writer's, like unsynced_.
  bool unsynced_ = false;         // The log holds batches that were not synced.
};

Result<void> RocksdbStore::open(const EngineOptions& options, bool fresh) {
  std::error_code error;
  if (!fresh && !std::filesystem::exists(dir_ / kDatabaseName / "CURRENT", error)) {
    return error ? fail(error.value(), "open {}", path_) : fail(Code::corrupt, "{}: has no file CURRENT", path_);
  }
  auto settings = rocks::make_options(options);
  KV_TRY(settings);
  settings->create_if_missing = fresh && !read_only_;
  // Files that nobody needs any more are removed in the background, not by the end of a scan. A database opened for
  // reading has no background.
  settings->avoid_unnecessary_blocking_io = !read_only_;
  settings->listeners.push_back(write_state_);
  rocksdb::DB* db = nullptr;
  const Status opened =
      read_only_ ? rocksdb::DB::OpenForReadOnly(*settings, path_, &db) : rocksdb::DB::Open(*settings, path_, &db);
  db_.reset(db);
  if (!opened.ok()) return failure(opened, "open {}", path_);
  return read_last_batch();
}

Result<void> RocksdbStore::read_last_batch() {
  std::string value;
  const Status got = db_->Get(read_options_, to_slice(kLastBatchKey), &value);
  if (got.IsNotFound()) return {};  // Nothing has been written yet.
  if (!got.ok()) return failure(got, "{}: read the number of the last batch", path_);
  if (value.size() != sizeof(std::uint64_t))
    return fail(Code::corrupt, "{}: the number of the last batch has {} bytes", path_, value.size());
  last_batch_ = codec::get_fixed<std::uint64_t>(value.data());
  return {};
}

Result<void> RocksdbStore::check_open() const {
  if (db_ == nullptr) return fail(Code::invalid_argument, "rocksdb: the store is closed");
  return {};
}

Result<void> RocksdbStore::check_writable() const {
  if (failure_) return tl::unexpected<Error>(*failure_);
  KV_TRY(check_open());
  if (read_only_) return fail(Code::unsupported, "rocksdb: {} is open for reading only", path_);
  return {};
}

Result<void> RocksdbStore::latch(Error error) {
  error.code = Code::failed;
  error.text += "; what is on disk is unknown: open the store again";
  failure_ = error;
  return tl::unexpected<Error>(std::move(error));
}

Status RocksdbStore::encode(const WriteBatch& batch) {
  encoded_.Clear();
  BatchReader reader(batch.bytes());
  BatchEntry entry;
  while (true) {
    const auto more = reader.next(entry);
    KV_ASSERT(more.has_value());  // The batch was encoded in this process.
    if (!*more) break;
    if (Status encoded = encode_entry(entry); !encoded.ok()) return encoded;
  }
  char number[sizeof(std::uint64_t)];
  codec::put_fixed(number, last_batch() + 1);
  return encoded_.Put(to_slice(kLastBatchKey), Slice(number, sizeof number));
}

Status RocksdbStore::encode_entry(const BatchEntry& entry) {
  const char space = byte_of(entry.space());
  if (entry.kind == WriteBatch::Kind::run) {
    RunReader values(entry.value);
    char key[1 + kSeqKeyBytes];
    key[0] = kRecordsByte;
    for (std::uint32_t i = 0; i < entry.count; ++i) {
      const auto value = values.next();
      KV_ASSERT(value.has_value());
      codec::put_ordered(key + 1, entry.first + i);
      if (Status put = encoded_.Put(Slice(key, sizeof key), to_slice(*value)); !put.ok()) return put;
    }
    return Status::OK();
  }
  const std::array<Slice, 2> parts = {Slice(&space, 1), to_slice(entry.key)};
  const rocksdb::SliceParts key(parts.data(), static_cast<int>(parts.size()));
  if (entry.kind == WriteBatch::Kind::erase || entry.kind == WriteBatch::Kind::erase_meta) return encoded_.Delete(key);
  const Slice value = to_slice(entry.value);
  return encoded_.Put(key, rocksdb::SliceParts(&value, 1));
}

Result<void> RocksdbStore::write(const WriteBatch& batch, Durability durability) {
  KV_TRY(check_writable());
  Status status = encode(batch);
  if (status.ok()) {
    rocksdb::WriteOptions options;
    options.sync = durability == Durability::disk;
    options.no_slowdown = true;  // First find out whether it would have to wait.
    status = db_->Write(options, &encoded_);
    if (status.IsIncomplete()) status = write_while_stalled(options);
  }
  if (encoded_.GetDataSize() > kBatchKeptBytes) encoded_ = rocksdb::WriteBatch();
  if (!status.ok()) return write_failed(status);
  last_batch_.fetch_add(1, std::memory_order_relaxed);
  unsynced_ = durability != Durability::disk;
  return {};
}

Status RocksdbStore::write_while_stalled(rocksdb::WriteOptions options) {
  std::uint64_t stopped = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kIsWriteStopped, &stopped);
  if (stopped != 0 && !write_state_->wait_while_stopped(kStoppedWaitMax)) {
    if (write_state_->out_of_space()) return Status::NoSpace("a flush or compaction needs space");
    busy_writes_.fetch_add(1, std::memory_order_relaxed);
    return Status::Incomplete("writes are stopped until flushes and compactions catch up");
  }
  options.no_slowdown = false;  // Slowed down only: RocksDB paces it.
  return db_->Write(options, &encoded_);
}

Result<void> RocksdbStore::write_failed(const Status& status) {
  Error error = rocks::to_error(status, fmt::format("write to {}", path_));
  switch (error.code) {
    case Code::no_space:  // The log record is cut short; RocksDB goes on by itself when space is back.
    case Code::busy:
    case Code::invalid_argument:
      return tl::unexpected<Error>(std::move(error));
    default:
      return latch(std::move(error));
  }
}

Result<bool> RocksdbStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  KV_TRY(check_open());
  if (key.size() > kKeyBytesMax) return false;
  const SpaceKey at(space, key);
  rocksdb::PinnableSlice value;
  const Status got = db_->Get(read_options_, db_->DefaultColumnFamily(), at.slice(), &value);
  if (got.IsNotFound()) return false;
  if (!got.ok()) return failure(got, "get from {}", path_);
  visit(to_view(value));
  return true;
}

Result<std::size_t> RocksdbStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  KV_TRY(check_open());
  rocksdb::ReadOptions options = read_options_;
  const bool in_parts = keys.size() > kMultiGetMax;  // Then a snapshot makes them one view.
  if (in_parts) options.snapshot = db_->GetSnapshot();
  std::size_t found = 0;
  Result<void> got;
  for (std::size_t first = 0; first < keys.size() && got; first += kMultiGetMax) {
    const auto part = keys.subspan(first, std::min(kMultiGetMax, keys.size() - first));
    got = multi_get_part(options, part, first, visit, found);
  }
  if (in_parts) db_->ReleaseSnapshot(options.snapshot);
  KV_TRY(got);
  return found;
}

Result<void> RocksdbStore::multi_get_part(const rocksdb::ReadOptions& options, std::span<const std::string_view> keys,
                                          std::size_t first, IndexedValueVisitor visit, std::size_t& found) const {
  std::string bytes;  // All keys with their space in front, one behind the other.
  std::vector<Slice> slices(keys.size());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  std::size_t total = 0;
  for (const std::string_view key : keys) total += 1 + key.size();
  bytes.reserve(total);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    slices[i] = Slice(bytes.data() + bytes.size(), 1 + keys[i].size());
    bytes += kRecordsByte;
    bytes += keys[i];
  }
  db_->MultiGet(options, db_->DefaultColumnFamily(), keys.size(), slices.data(), values.data(), statuses.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].IsNotFound()) continue;
    if (!statuses[i].ok()) return failure(statuses[i], "get from {}", path_);
    visit(first + i, to_view(values[i]));
    ++found;
  }
  return {};
}

Result<std::size_t> RocksdbStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  KV_TRY(check_open());
  if (range.limit == 0) return 0;
  const char byte = byte_of(space);
  const char next_byte = static_cast<char>(byte + 1);
  const std::string lower = std::string(1, byte).append(range.first.value_or(""));
  const std::string upper = range.last ? std::string(1, byte).append(*range.last) : std::string(1, next_byte);
  if (lower >= upper) return 0;
  const Slice lower_bound = lower;
  const Slice upper_bound = upper;
  rocksdb::ReadOptions options = read_options_;
  options.iterate_lower_bound = &lower_bound;
  options.iterate_upper_bound = &upper_bound;  // Without it a scan walks the tombstones behind its end.
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));  // Sees the store as of now.
  std::size_t passed = 0;
  range.reverse ? at->SeekToLast() : at->SeekToFirst();
  for (; at->Valid(); range.reverse ? at->Prev() : at->Next()) {
    ++passed;
    if (!visit(to_view(at->key()).substr(1), to_view(at->value())) || passed == range.limit) return passed;
  }
  // An error ends the walk like the last entry does.
  if (const Status status = at->status(); !status.ok()) return failure(status, "scan {}", path_);
  return passed;
}

Result<void> RocksdbStore::sync() {
  if (read_only_) return {};
  KV_TRY(check_writable());
  if (!unsynced_) return {};
  const Status synced = db_->SyncWAL();
  if (!synced.ok()) return latch(rocks::to_error(synced, fmt::format("sync {}", path_)));
  unsynced_ = false;
  return {};
}

Result<std::uint64_t> RocksdbStore::count() const {
  auto counted = scan(Space::records, {}, [](std::string_view, std::string_view) { return true; });
  KV_TRY(counted);
  return *counted;
}

void RocksdbStore::stats(StatVisitor visit) const {
  using Properties = rocksdb::DB::Properties;
  if (db_ == nullptr) return;
  const std::pair<std::string_view, const std::string*> properties[] = {
      {"records_estimated", &Properties::kEstimateNumKeys},
      {"live_data_bytes", &Properties::kEstimateLiveDataSize},
      {"table_files_bytes", &Properties::kTotalSstFilesSize},
      {"blob_files_bytes", &Properties::kTotalBlobFileSize},
      {"memtables_bytes", &Properties::kCurSizeAllMemTables},
      {"table_readers_bytes", &Properties::kEstimateTableReadersMem},
      {"block_cache_bytes", &Properties::kBlockCacheUsage},
      {"compaction_pending_bytes", &Properties::kEstimatePendingCompactionBytes},
      {"flushes_running", &Properties::kNumRunningFlushes},
      {"compactions_running", &Properties::kNumRunningCompactions},
      {"writes_stopped", &Properties::kIsWriteStopped},
      {"delayed_write_rate_bytes", &Properties::kActualDelayedWriteRate},
  };
  for (const auto& [name, property] : properties) {
    std::uint64_t value = 0;
    if (db_->GetIntProperty(*property, &value)) visit(name, value);
  }
  const auto counters = write_state_->counters();
  visit("write_slowdowns", counters.slowdowns);
  visit("write_stops", counters.stops);
  visit("busy_writes", busy_writes_.load(std::memory_order_relaxed));
  visit("background_errors", counters.errors);
  visit("background_recoveries", counters.recoveries);
}

Result<VerifyReport> RocksdbStore::verify() const {
  KV_TRY(check_open());
  rocksdb::ReadOptions options = read_options_;
  options.fill_cache = false;
  if (const Status checked = db_->VerifyChecksum(options); !checked.ok()) return failure(checked, "verify {}", path_);
  VerifyReport report;
  std::string last;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string_view key = to_view(at->key());
    if (key <= last) return fail(Code::corrupt, "{}: entry {} is out of order", path_, report.records);
    last = key;
    if (key.front() == kRecordsByte) ++report.records;
    report.bytes_checked += key.size() + at->value().size();
  }
  if (!at->status().ok()) return failure(at->status(), "verify {}", path_);
  return report;
}

Result<void> RocksdbStore::compact() {
  KV_TRY(check_writable());
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  const Status compacted = db_->CompactRange(options, nullptr, nullptr);
  if (!compacted.ok()) return failure(compacted, "compact {}", path_);
  return {};
}

Result<void> RocksdbStore::backup(const std::filesystem::path& to) const {
  KV_TRY(check_open());
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return fail(error.value(), "create {}", to.native());
  rocksdb::Checkpoint* made = nullptr;
  Status status = rocksdb::Checkpoint::Create(db_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint((to / kDatabaseName).native());
  if (!status.ok()) return failure(status, "back up {} to {}", path_, to.native());
  return {};
}

Result<void> RocksdbStore::close() {
  if (db_ == nullptr) return {};
  Result<void> closed = sync();
  rocksdb::CancelAllBackgroundWork(db_.get(), true);
  const Status status = db_->Close();
  db_.reset();  // Always: a process that ends with the database alive after an I/O error is aborted by RocksDB.
  if (closed && !status.ok()) closed = failure(status, "close {}", path_);
  return closed;
}

Result<std::unique_ptr<Store>> open_rocksdb(EngineContext context) {
  const EngineOptions options = std::move(context.options);
  const bool fresh = context.fresh;
  auto store = std::make_unique<RocksdbStore>(std::move(context));
  KV_TRY(store->open(options, fresh));
  return store;
}

}  // namespace

constinit const Engine kRocksdbEngine{
    .name = "rocksdb",
    .summary = "RocksDB: write-heavy, compressed, data much larger than memory",
    .persistent = true,
    .shared_readers = false,
    .format_version = kFormatVersion,
    .options = rocks::kEngineOptions,
    .missing = {},
    .open = open_rocksdb,
};

}  // namespace kvingest
