#include "storage/rocksdb/rocksdb_store.hpp"

#include <rocksdb/convenience.h>
#include <rocksdb/utilities/checkpoint.h>

#include <array>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "base/posix.hpp"
#include "storage/rocksdb/info_log.hpp"
#include "storage/rocksdb/rocks_error.hpp"
#include "storage/rocksdb/rocks_options.hpp"

namespace kvingest::rocks {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr const char* kDatabaseName = "db";  // A directory of its own: RocksDB has a file LOCK, too.
constexpr std::chrono::milliseconds kStoppedWaitMax{200};
constexpr std::size_t kBatchKeptBytes = 16 << 20;  // A larger batch gives its memory back.

}  // namespace

RocksdbStore::RocksdbStore(const EngineContext& context)
    : dir_(context.dir), path_((dir_ / kDatabaseName).native()), read_only_(context.read_only), posix_(context.posix) {}

Result<void> RocksdbStore::open(const EngineOptions& options, bool fresh) {
  std::error_code error;
  // What an interrupted creation left has never held anything.
  if (fresh && !read_only_) std::filesystem::remove_all(dir_ / kDatabaseName, error);
  if (!fresh && !std::filesystem::exists(dir_ / kDatabaseName / "CURRENT", error)) {
    return error ? fail(error.value(), "open {}", path_) : fail(Code::corrupt, "{}: has no file CURRENT", path_);
  }
  auto settings = make_options(options);
  KV_TRY(settings);
  settings_ = std::move(*settings);
  settings_.create_if_missing = fresh && !read_only_;
  settings_.listeners.push_back(write_state_);
  if (!read_only_) {
    std::filesystem::create_directories(path_, error);  // Where it cannot be made, RocksDB says so.
    settings_.info_log = std::make_shared<InfoLog>(*posix_, path_);
  }
  if (const Status opened = open_database(read_only_); !opened.ok()) return failure(opened, "open {}", path_);
  return read_last_batch();
}

Status RocksdbStore::open_database(bool read_only) {
  // Files that nobody needs any more are removed in the background, not by the end of a scan. A database opened for
  // reading has no background.
  settings_.avoid_unnecessary_blocking_io = !read_only;
  rocksdb::DB* db = nullptr;
  Status opened =
      read_only ? rocksdb::DB::OpenForReadOnly(settings_, path_, &db) : rocksdb::DB::Open(settings_, path_, &db);
  db_.reset(db);
  return opened;
}

// Always ends with the database gone: a process that ends with it after an I/O error is aborted by RocksDB.
Status RocksdbStore::close_database() {
  rocksdb::CancelAllBackgroundWork(db_.get(), true);
  Status closed = db_->Close();
  db_.reset();
  return closed;
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
  if (log_torn_) KV_TRY(open_anew(batch.bytes().size()));
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
  Error error = to_error(status, fmt::format("write to {}", path_));
  switch (error.code) {
    case Code::no_space:
      log_torn_ = true;
      return tl::unexpected<Error>(std::move(error));
    case Code::busy:
    case Code::invalid_argument:
      return tl::unexpected<Error>(std::move(error));
    default:
      return latch(std::move(error));
  }
}

// Opening writes what the log holds into a table file.
bool RocksdbStore::has_room(std::uint64_t batch_bytes) const {
  constexpr std::uint64_t kOwnBytes = std::uint64_t{2} << 20;  // Manifest, options, the beginning of a log.
  std::uint64_t in_memtables = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &in_memtables);
  std::error_code error;
  const auto space = std::filesystem::space(dir_, error);
  return !error && space.available >= in_memtables + 2 * batch_bytes + kOwnBytes;
}

Result<void> RocksdbStore::open_anew(std::uint64_t batch_bytes) {
  const auto full = [&] {
    return fail(Code::no_space, "write to {}: nothing was written; free space on its file system", path_);
  };
  if (!has_room(batch_bytes)) return full();
  const std::unique_lock lock(in_use_);
  static_cast<void>(close_database());  // Its complaint is the one that was answered already.
  write_state_->reset();
  Status opened = open_database(false);
  const bool still_full = !opened.ok() && is_no_space(opened);
  if (still_full) opened = open_database(true);  // At least reads go on.
  if (!opened.ok()) return latch(to_error(opened, fmt::format("open {} again after a full disk", path_)));
  if (still_full) return full();
  const std::uint64_t answered = last_batch();
  KV_TRY(read_last_batch());
  if (last_batch() != answered)
    return latch({Code::failed, 0, fmt::format("{}: is at batch {}, not {}", path_, last_batch(), answered)});
  log_torn_ = false;
  unsynced_ = false;  // Opening has put all of it into a table file.
  opened_anew_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// What SyncWAL() does, without the log that must not be used: what it holds was handed to the kernel by each write().
Result<void> RocksdbStore::sync_log_files() const {
  std::error_code error;
  for (std::filesystem::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".log") continue;
    auto file = File::open(*posix_, at->path(), O_RDONLY);
    KV_TRY(file);
    KV_TRY(file->sync_data());
  }
  if (error) return fail(error.value(), "list {}", path_);
  return sync_directory(*posix_, path_);
}

Result<void> RocksdbStore::sync() {
  if (read_only_) return {};
  KV_TRY(check_writable());
  if (!unsynced_) return {};
  if (log_torn_) {
    if (auto synced = sync_log_files(); !synced) return latch(std::move(synced).error());
  } else if (const Status synced = db_->SyncWAL(); !synced.ok()) {
    return latch(to_error(synced, fmt::format("sync {}", path_)));
  }
  unsynced_ = false;
  return {};
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
  const std::shared_lock lock(in_use_);
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
  const std::unique_lock lock(in_use_);
  const Status status = close_database();
  // After a full disk it complains once more; that was answered, and what was acknowledged is on disk.
  if (closed && !status.ok() && !log_torn_) closed = failure(status, "close {}", path_);
  return closed;
}

}  // namespace kvingest::rocks
