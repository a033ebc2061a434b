// lmdb_store.cpp -- the lmdb engine: the promises of kvingest/store.hpp kept with LMDB.
//
// Writes: one transaction for each batch. At `disk` LMDB's default: data pages and, after them, the header are on disk
// on return. Below it MDB_NOMETASYNC: the header of the last transaction may still be in the page cache, so that a
// power cut takes the last batches back, and never more than an exact prefix is left. MDB_NOSYNC would be faster and
// can destroy what was synced long ago; only `bulk=true` uses it, until the first sync().
//
// A failed sync latches the store by our hand: LMDB itself would go on with the next transaction, and below `disk` that
// is not sound, because the header it builds on may be the one that was lost.
#include <lmdb.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/quantity.hpp"
#include "storage/engine_rows.hpp"
#include "storage/lmdb/batch_writer.hpp"
#include "storage/lmdb/bulk_mark.hpp"
#include "storage/lmdb/environment.hpp"
#include "storage/lmdb/lmdb_error.hpp"

namespace kvingest {
namespace {

using lmdb::Databases;
using lmdb::Environment;
using lmdb::failure;
using lmdb::ReaderPool;

constexpr std::uint32_t kFormatVersion = 1;
constexpr std::chrono::seconds kStaleCheckPeriod{60};
constexpr std::string_view kLastBatchKey = "last batch";
constexpr const char* kCompactedName = "data.mdb.compact";

MDB_val to_val(std::string_view bytes) noexcept {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write through it.
}
std::string_view to_view(const MDB_val& value) noexcept {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

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

class LmdbStore final : public Store {
 public:
  LmdbStore(lmdb::Settings settings, bool bulk)
      : dir_(settings.dir),
        read_only_(settings.read_only),
        bulk_(bulk),
        posix_(settings.posix),
        notice_(settings.notice),
        settings_(std::move(settings)) {}
  ~LmdbStore() override { static_cast<void>(close()); }

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
  Result<void> commit_failed(int rc);
  [[nodiscard]] bool panicked() const noexcept;
  Result<void> latch(Error error);
  void look_after_readers();
  void use_level(Durability durability);
  Result<void> copy_to(const std::filesystem::path& path) const;

  const std::filesystem::path dir_;
  const bool read_only_;
  const bool bulk_;
  const Posix* const posix_;
  const std::function<void(std::string_view)> notice_;
  lmdb::Settings settings_;
  mutable std::unique_ptr<Environment> env_;  // Null when closed. mutable: reading begins transactions.
  lmdb::BatchWriter batch_writer_;
  std::atomic<std::uint64_t> last_batch_ = 0;
  std::atomic<std::uint64_t> appended_batches_ = 0;
  std::atomic<std::uint64_t> sorted_batches_ = 0;
  std::optional<Error> failure_;  // Latched. The writer's, like all below.
  bool loading_ = false;          // A bulk load is under way: MDB_NOSYNC is set and DIR/BULK exists.
  bool meta_sync_ = true;         // MDB_NOMETASYNC is off.
  bool header_synced_ = true;     // The last commit is on disk.
  std::chrono::steady_clock::time_point stale_checked_ = std::chrono::steady_clock::now();
};

Result<void> LmdbStore::open() {
  auto bulk_state = lmdb::read_bulk_mark(*posix_, dir_);
  KV_TRY(bulk_state);
  if (*bulk_state == lmdb::BulkState::other_boot) {
    return fail(Code::corrupt,
                "{}: the machine stopped during a bulk load, which leaves the store unsound; load it again",
                dir_.native());
  }
  auto opened = Environment::open(settings_);
  KV_TRY(opened);
  env_ = std::move(*opened);
  KV_TRY(read_last_batch());
  if (read_only_) return {};
  KV_TRY(env_->sync());  // What a killed process left in the page cache.
  if (*bulk_state == lmdb::BulkState::same_boot) {
    notice_("lmdb: a bulk load had been cut short; what it wrote is on disk now");
    KV_TRY(lmdb::clear_bulk_mark(*posix_, dir_));
  }
  const std::filesystem::path unfinished = dir_ / kCompactedName;
  posix_->unlink(unfinished.c_str());
  return bulk_ ? begin_bulk() : Result<void>{};
}

Result<void> LmdbStore::begin_bulk() {
  KV_TRY(lmdb::set_bulk_mark(*posix_, dir_));
  mdb_env_set_flags(env_->handle(), MDB_NOSYNC, 1);
  loading_ = true;
  notice_("lmdb: bulk load: until the first sync or a clean close a power cut may destroy the whole store");
  return {};
}

Result<void> LmdbStore::end_bulk() {
  mdb_env_set_flags(env_->handle(), MDB_NOSYNC, 0);
  loading_ = false;
  notice_("lmdb: the bulk load is on disk; from here on each batch is synced");
  return lmdb::clear_bulk_mark(*posix_, dir_);
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
  if (read_only_) return fail(Code::unsupported, "lmdb: {} is open for reading only", dir_.native());
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
    if (rc != MDB_MAP_FULL) return commit_failed(rc);
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

Result<void> LmdbStore::commit_failed(int rc) {
  Error error = lmdb::to_error(rc, fmt::format("write to {}", env_->data_path().native()));
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
  const bool harmless =
      (space || rc == EIO) && !panicked() && !env_->writeback_failed() && (space || env_->file_system_full());
  if (!harmless) return latch(std::move(error));
  return fail(space ? rc : ENOSPC, "write to {}: nothing of the batch was written; free space on its file system",
              env_->data_path().native());
}

// After a failed write of the header every transaction is refused until the environment is opened again.
bool LmdbStore::panicked() const noexcept {
  WriteTransaction probe;
  return probe.begin(env_->handle()) != MDB_SUCCESS;
}

Result<ReaderPool::Lease> LmdbStore::begin_read() const {
  if (env_ == nullptr) return fail(Code::invalid_argument, "lmdb: the store is closed");
  return env_->readers().acquire();
}

Result<bool> LmdbStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  auto reader = begin_read();
  KV_TRY(reader);
  MDB_val k = to_val(key);
  MDB_val value;
  const int rc = mdb_get(reader->txn(), database(space), &k, &value);
  if (rc == MDB_NOTFOUND) return false;
  if (rc != MDB_SUCCESS) return failure(rc, "get from {}", env_->data_path().native());
  visit(to_view(value));
  return true;
}

Result<std::size_t> LmdbStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  auto reader = begin_read();
  KV_TRY(reader);
  MDB_cursor* cursor = nullptr;  // Unlike mdb_get() it begins at the page of the key before: neighbours are cheap.
  if (const int rc = reader->cursor(database(Space::records), cursor)) return failure(rc, "get many");
  std::size_t found = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    MDB_val key = to_val(keys[i]);
    MDB_val value;
    const int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET);
    if (rc == MDB_NOTFOUND) continue;
    if (rc != MDB_SUCCESS) return failure(rc, "get from {}", env_->data_path().native());
    visit(i, to_view(value));
    ++found;
  }
  return found;
}

// Puts `cursor` on the first entry of `range` in the direction of the walk. Returns an LMDB code.
int seek(MDB_cursor* cursor, const Range& range, MDB_val& key, MDB_val& value) {
  if (!range.reverse) {
    if (!range.first || range.first->empty()) return mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    key = to_val(*range.first);
    return mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  }
  if (!range.last) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  if (range.last->empty()) return MDB_NOTFOUND;
  key = to_val(*range.last);
  const int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  if (rc == MDB_NOTFOUND) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  return rc != MDB_SUCCESS ? rc : mdb_cursor_get(cursor, &key, &value, MDB_PREV);
}

Result<std::size_t> LmdbStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  if (range.limit == 0) return 0;
  auto reader = begin_read();
  KV_TRY(reader);
  MDB_cursor* cursor = nullptr;
  if (const int rc = reader->cursor(database(space), cursor)) return failure(rc, "scan");
  const MDB_cursor_op step = range.reverse ? MDB_PREV : MDB_NEXT;
  MDB_val key;
  MDB_val value;
  std::size_t passed = 0;
  int rc = seek(cursor, range, key, value);
  for (; rc == MDB_SUCCESS; rc = mdb_cursor_get(cursor, &key, &value, step)) {
    const std::string_view at = to_view(key);
    if (range.reverse ? range.first && at < *range.first : range.last && at >= *range.last) return passed;
    ++passed;
    if (!visit(at, to_view(value)) || passed == range.limit) return passed;
  }
  if (rc == MDB_NOTFOUND) return passed;
  return failure(rc, "scan {}", env_->data_path().native());
}

Result<void> LmdbStore::sync() {
  if (read_only_) return {};
  KV_TRY(check_usable());
  if (header_synced_ && !loading_) return {};
  if (auto synced = env_->sync(); !synced) return latch(std::move(synced).error());
  header_synced_ = true;
  return loading_ ? end_bulk() : Result<void>{};
}

Result<std::uint64_t> LmdbStore::count() const {
  auto reader = begin_read();
  KV_TRY(reader);
  MDB_stat stat{};
  if (const int rc = mdb_stat(reader->txn(), database(Space::records), &stat)) return failure(rc, "count");
  return stat.ms_entries;
}

// The free list is a tree of lists: each value begins with the number of pages that it names.
std::uint64_t free_pages(MDB_txn* txn) {
  constexpr MDB_dbi kFreeList = 0;
  MDB_cursor* cursor = nullptr;
  if (mdb_cursor_open(txn, kFreeList, &cursor) != MDB_SUCCESS) return 0;
  std::uint64_t pages = 0;
  MDB_val key;
  MDB_val list;
  while (mdb_cursor_get(cursor, &key, &list, MDB_NEXT) == MDB_SUCCESS) {
    std::size_t count = 0;
    std::memcpy(&count, list.mv_data, sizeof count);
    pages += count;
  }
  mdb_cursor_close(cursor);
  return pages;
}

void LmdbStore::stats(StatVisitor visit) const {
  auto reader = begin_read();
  if (!reader) return;
  MDB_stat records{};
  MDB_stat meta{};
  mdb_stat(reader->txn(), database(Space::records), &records);
  mdb_stat(reader->txn(), database(Space::meta), &meta);
  MDB_envinfo info{};
  mdb_env_info(env_->handle(), &info);
  const lmdb::Usage usage = env_->usage();
  const std::uint64_t free = free_pages(reader->txn());
  visit("records", records.ms_entries);
  visit("meta_entries", meta.ms_entries);
  visit("map_bytes", usage.map_bytes);
  visit("used_bytes", usage.used_bytes);
  visit("free_bytes", free * usage.page_bytes);
  visit("free_pages", free);
  visit("tree_depth", records.ms_depth);
  visit("branch_pages", records.ms_branch_pages);
  visit("leaf_pages", records.ms_leaf_pages);
  visit("overflow_pages", records.ms_overflow_pages);
  visit("reader_slots_used", info.me_numreaders);
  visit("reader_slots", info.me_maxreaders);
  visit("stale_readers_cleared", env_->readers().stale_cleared());
  visit("map_grown", env_->grown());
  visit("appended_batches", appended_batches_.load(std::memory_order_relaxed));
  visit("sorted_batches", sorted_batches_.load(std::memory_order_relaxed));
}

Result<VerifyReport> LmdbStore::verify() const {
  if (env_ == nullptr) return fail(Code::invalid_argument, "lmdb: the store is closed");
  auto checked = env_->check();
  KV_TRY(checked);
  return VerifyReport{.records = checked->records, .bytes_checked = checked->bytes_checked, .torn_tail = {}};
}

// The copy is made of a snapshot, without free pages, and is on disk on return.
Result<void> LmdbStore::copy_to(const std::filesystem::path& path) const {
  auto reader = begin_read();  // While it lives the map does not move under the copying.
  KV_TRY(reader);
  auto file = File::open(*posix_, path, O_WRONLY | O_CREAT | O_EXCL);
  KV_TRY(file);
  Result<void> copied;
  if (const int rc = mdb_env_copyfd2(env_->handle(), file->fd(), MDB_CP_COMPACT)) {
    copied = failure(rc, "copy {} to {}", env_->data_path().native(), path.native());
  } else {
    copied = file->sync_all();
  }
  if (!copied) posix_->unlink(path.c_str());
  return copied;
}

Result<void> LmdbStore::compact() {
  KV_TRY(check_usable());
  KV_TRY(sync());
  const std::filesystem::path compacted = dir_ / kCompactedName;
  KV_TRY(copy_to(compacted));
  auto replaced = env_->replace_data(compacted);
  meta_sync_ = true;  // As every environment is opened.
  if (replaced) return {};
  posix_->unlink(compacted.c_str());
  if (env_->handle() == nullptr) return latch(std::move(replaced).error());
  return replaced;
}

Result<void> LmdbStore::backup(const std::filesystem::path& to) const {
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return fail(error.value(), "create {}", to.native());
  KV_TRY(copy_to(to / "data.mdb"));
  return sync_directory(*posix_, to);
}

Result<void> LmdbStore::close() {
  if (env_ == nullptr) return {};
  Result<void> closed = sync();
  env_.reset();
  return closed;
}

constexpr EngineOption kOptions[] = {
    {"map", "64G", "address space reserved for the map; it is grown when full"},
    {"map_max", "64T", "the largest map: beyond it writes are refused as no_space, erasing still works"},
    {"readahead", "auto", "on, off, or auto: off where the data is larger than memory"},
    {"bulk", "false", "true: no syncs until the first sync or the end; a power cut before it destroys the store"},
};

Result<std::unique_ptr<Store>> open_lmdb(EngineContext context) {
  lmdb::Settings settings{.dir = std::move(context.dir),
                          .read_only = context.read_only,
                          .fresh = context.fresh,
                          .posix = context.posix,
                          .notice = std::move(context.notice)};
  const auto text = [&](const EngineOption& option) -> std::string_view {
    const auto given = context.options.find(option.name);
    return given == context.options.end() ? option.fallback : std::string_view(given->second);
  };
  auto map = parse_size(text(kOptions[0]));
  if (!map) return fail(std::move(map).error(), "lmdb: map");
  auto map_max = parse_size(text(kOptions[1]));
  if (!map_max) return fail(std::move(map_max).error(), "lmdb: map_max");
  settings.map_bytes_max = std::clamp(*map_max, lmdb::kMapBytesMin, lmdb::kMapBytesMax);
  settings.map_bytes = std::clamp(*map, lmdb::kMapBytesMin, settings.map_bytes_max);
  const std::string_view readahead = text(kOptions[2]);
  if (readahead != "auto" && readahead != "on" && readahead != "off")
    return fail(Code::invalid_argument, "lmdb: readahead={}: one of auto, on, off", readahead);
  settings.readahead = readahead == "on"    ? lmdb::Readahead::on
                       : readahead == "off" ? lmdb::Readahead::off
                                            : lmdb::Readahead::automatic;
  const std::string_view bulk = text(kOptions[3]);
  if (bulk != "true" && bulk != "false") return fail(Code::invalid_argument, "lmdb: bulk={}: true or false", bulk);
  auto store = std::make_unique<LmdbStore>(std::move(settings), bulk == "true");
  KV_TRY(store->open());
  return store;
}

}  // namespace

constinit const Engine kLmdbEngine{
    .name = "lmdb",
    .summary = "LMDB: the default; many reading processes, data larger than memory",
    .persistent = true,
    .shared_readers = true,
    .format_version = kFormatVersion,
    .options = kOptions,
    .missing = {},
    .open = open_lmdb,
};

}  // namespace kvingest
