#include "storage/lmdb/lmdb_store.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/lmdb/bulk_mark.hpp"
#include "storage/lmdb/lmdb_error.hpp"

namespace kvingest::lmdb {
namespace {

constexpr std::chrono::seconds kStaleCheckPeriod{60};
constexpr std::string_view kLastBatchKey = "last batch";
// What a commit may write for a batch: each small record can change a page of its own.
constexpr std::uint64_t kPagesPerBatchPage = 64;
constexpr std::uint64_t kProbeBytesMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kProbeBytesMax = std::uint64_t{1} << 30;
constexpr const char* kCompactedName = "data.mdb.compact";

/// Ends with an abort unless it was committed.
class WriteTransaction {
 public:
  WriteTransaction() = default;
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  ~WriteTransaction() { mdb_txn_abort(txn_); }

  int begin(MDB_env* env) noexcept { return mdb_txn_begin(env, nullptr, 0, &txn_); }
  int commit() noexcept { return mdb_txn_commit(std::exchange(txn_, nullptr)); }
  [[nodiscard]] MDB_txn* txn() const noexcept { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

}  // namespace

Result<void> LmdbStore::open() {
  auto bulk_state = read_bulk_mark(*settings_.posix, settings_.dir);
  KV_TRY(bulk_state);
  if (*bulk_state == BulkState::other_boot) {
    return fail(Code::corrupt,
                "{}: the machine stopped during a bulk load, which leaves the store unsound; load it again",
                settings_.dir.native());
  }
  auto opened = Environment::open(settings_);
  KV_TRY(opened);
  env_ = std::move(*opened);
  KV_TRY(read_last_batch());
  if (settings_.read_only) return {};
  KV_TRY(env_->sync());  // What a killed process left in the page cache.
  if (*bulk_state == BulkState::same_boot) {
    settings_.notice("lmdb: a bulk load had been cut short; what it wrote is on disk now");
    KV_TRY(clear_bulk_mark(*settings_.posix, settings_.dir));
  }
  const std::filesystem::path unfinished = settings_.dir / kCompactedName;
  settings_.posix->unlink(unfinished.c_str());
  return bulk_ ? begin_bulk() : Result<void>{};
}

Result<void> LmdbStore::begin_bulk() {
  KV_TRY(set_bulk_mark(*settings_.posix, settings_.dir));
  mdb_env_set_flags(env_->handle(), MDB_NOSYNC, 1);
  loading_ = true;
  settings_.notice("lmdb: bulk load: until the first sync or a clean close a power cut may destroy the whole store");
  return {};
}

Result<void> LmdbStore::end_bulk() {
  mdb_env_set_flags(env_->handle(), MDB_NOSYNC, 0);
  loading_ = false;
  settings_.notice("lmdb: the bulk load is on disk; from here on each batch is synced");
  return clear_bulk_mark(*settings_.posix, settings_.dir);
}

Result<void> LmdbStore::read_last_batch() {
  auto reader = env_->readers().acquire();
  KV_TRY(reader);
  MDB_val key = to_val(kLastBatchKey);
  MDB_val value;
  const int rc = mdb_get(reader->txn(), env_->databases().unnamed, &key, &value);
  if (rc == MDB_NOTFOUND) return {};  // Nothing has been written yet.
  if (rc != MDB_SUCCESS) return failure(rc, "{}: read the number of the last batch", env_->data_path().native());
  if (value.mv_size != sizeof(std::uint64_t))
    return fail(Code::corrupt, "{}: the number of the last batch has {} bytes", env_->data_path().native(),
                value.mv_size);
  last_batch_ = codec::get_fixed<std::uint64_t>(static_cast<const char*>(value.mv_data));
  return {};
}

Result<void> LmdbStore::check_usable() const {
  if (failure_) return tl::unexpected<Error>(*failure_);
  if (env_ == nullptr) return fail(Code::invalid_argument, "lmdb: the store is closed");
  if (settings_.read_only) return fail(Code::unsupported, "lmdb: {} is open for reading only", settings_.dir.native());
  return {};
}

Result<void> LmdbStore::latch(Error error) {
  error.code = Code::failed;
  error.text += "; what is on disk is unknown: open the store again";
  failure_ = error;
  return tl::unexpected<Error>(std::move(error));
}

void LmdbStore::look_after_readers() {
  const auto now = std::chrono::steady_clock::now();
  if (now - stale_checked_ < kStaleCheckPeriod) return;
  stale_checked_ = now;
  env_->readers().clear_stale();
}

void LmdbStore::use_level(Durability durability) {
  const bool meta_sync = durability == Durability::disk;
  if (meta_sync == meta_sync_) return;
  mdb_env_set_flags(env_->handle(), MDB_NOMETASYNC,
                    meta_sync ? 0 : 1);  // One of the flags that may change at any time.
  meta_sync_ = meta_sync;
}

Result<void> LmdbStore::write(const WriteBatch& batch, Durability durability) {
  KV_TRY(check_usable());
  look_after_readers();
  use_level(durability);
  const bool only_erases = batch.puts() == 0;
  if (!only_erases) KV_TRY(env_->shrink_to_limit());
  while (true) {
    const int rc = commit(batch);
    if (rc == MDB_SUCCESS) break;
    if (rc != MDB_MAP_FULL) return commit_failed(rc, batch.bytes().size());
    KV_TRY(env_->grow(batch.bytes().size(), only_erases));
  }
  last_batch_.fetch_add(1, std::memory_order_relaxed);
  header_synced_ = meta_sync_ && !loading_;
  (batch_writer_.appended() ? appended_batches_ : sorted_batches_).fetch_add(1, std::memory_order_relaxed);
  return {};
}

int LmdbStore::commit(const WriteBatch& batch) {
  WriteTransaction transaction;
  if (const int rc = transaction.begin(env_->handle())) return rc;
  if (const int rc = batch_writer_.apply(transaction.txn(), env_->databases(), batch)) return rc;
  char number[sizeof(std::uint64_t)];
  codec::put_fixed(number, last_batch() + 1);
  MDB_val key = to_val(kLastBatchKey);
  MDB_val value = to_val({number, sizeof number});
  if (const int rc = mdb_put(transaction.txn(), env_->databases().unnamed, &key, &value, 0)) return rc;
  return transaction.commit();
}

Result<void> LmdbStore::commit_failed(int rc, std::uint64_t batch_bytes) {
  Error error = to_error(rc, fmt::format("write to {}", env_->data_path().native()));
  switch (error.code) {
    case Code::busy:  // These met LMDB before it wrote anything.
    case Code::invalid_argument:
    case Code::too_large:
    case Code::corrupt:
      return tl::unexpected<Error>(std::move(error));
    default:
      break;
  }
  // A full file system is ENOSPC, or EIO where the last write was cut short by it. Both are harmless, because no header
  // names the pages yet, unless they came from the sync or from writing the header.
  const bool space = error.code == Code::no_space;
  const std::uint64_t wanted = std::clamp(batch_bytes * kPagesPerBatchPage, kProbeBytesMin, kProbeBytesMax);
  const bool harmless =
      (space || rc == EIO) && !panicked() && !env_->writeback_failed() && (space || env_->file_system_full(wanted));
  if (!harmless) return latch(std::move(error));
  return fail(space ? rc : ENOSPC, "write to {}: nothing of the batch was written; free space on its file system",
              env_->data_path().native());
}

// After a failed write of the header every transaction is refused until the environment is opened again.
bool LmdbStore::panicked() const noexcept {
  WriteTransaction probe;
  return probe.begin(env_->handle()) != MDB_SUCCESS;
}

Result<void> LmdbStore::sync() {
  if (settings_.read_only) return {};
  KV_TRY(check_usable());
  if (header_synced_ && !loading_) return {};
  if (auto synced = env_->sync(); !synced) return latch(std::move(synced).error());
  header_synced_ = true;
  return loading_ ? end_bulk() : Result<void>{};
}

// The copy is made of a snapshot, without free pages, and is on disk on return.
Result<void> LmdbStore::copy_to(const std::filesystem::path& path) const {
  auto reader = begin_read();  // While it lives the map does not move under the copying.
  KV_TRY(reader);
  auto file = File::open(*settings_.posix, path, O_WRONLY | O_CREAT | O_EXCL);
  KV_TRY(file);
  Result<void> copied;
  if (const int rc = mdb_env_copyfd2(env_->handle(), file->fd(), MDB_CP_COMPACT)) {
    copied = failure(rc, "copy {} to {}", env_->data_path().native(), path.native());
  } else {
    copied = file->sync_all();
  }
  if (!copied) settings_.posix->unlink(path.c_str());
  return copied;
}

Result<void> LmdbStore::compact() {
  KV_TRY(check_usable());
  KV_TRY(sync());
  const std::filesystem::path compacted = settings_.dir / kCompactedName;
  KV_TRY(copy_to(compacted));
  auto replaced = env_->replace_data(compacted);
  meta_sync_ = true;  // As every environment is opened.
  if (replaced) return {};
  settings_.posix->unlink(compacted.c_str());
  if (env_->handle() == nullptr) return latch(std::move(replaced).error());
  return replaced;
}

Result<void> LmdbStore::backup(const std::filesystem::path& to) const {
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return fail(error.value(), "create {}", to.native());
  KV_TRY(copy_to(to / "data.mdb"));
  return sync_directory(*settings_.posix, to);
}

Result<void> LmdbStore::close() {
  if (env_ == nullptr) return {};
  Result<void> closed = sync();
  env_.reset();
  return closed;
}

}  // namespace kvingest::lmdb
