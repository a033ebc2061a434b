// lmdb_reads.cpp -- the reading half of LmdbStore: each call is one read transaction from the pool.
#include <cstring>

#include "storage/lmdb/lmdb_error.hpp"
#include "storage/lmdb/lmdb_store.hpp"

namespace kvingest::lmdb {
namespace {

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

}  // namespace

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

Result<std::uint64_t> LmdbStore::count() const {
  auto reader = begin_read();
  KV_TRY(reader);
  MDB_stat stat{};
  if (const int rc = mdb_stat(reader->txn(), database(Space::records), &stat)) return failure(rc, "count");
  return stat.ms_entries;
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
  const Usage usage = env_->usage();
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

}  // namespace kvingest::lmdb
