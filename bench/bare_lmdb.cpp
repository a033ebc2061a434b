// bare_lmdb.cpp -- LMDB by its own C interface, as somebody who knows it writes the loop: one transaction for each
// batch, keys in order appended, others put in key order; one read transaction, renewed for each get.
#include "bench/stores_targets.hpp"

#if defined(KVINGEST_WITH_LMDB)
#include <lmdb.h>

#include <algorithm>
#endif

namespace kvingest::bench {

#if defined(KVINGEST_WITH_LMDB)
namespace {

constexpr std::size_t kMapBytes = std::size_t{64} << 30;

MDB_val to_val(std::string_view bytes) noexcept {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write through it.
}

class BareLmdb final : public Target {
 public:
  ~BareLmdb() override { give_back(); }

  Result<void> open(const std::filesystem::path& dir) {
    int rc = mdb_env_create(&env_);
    if (rc == MDB_SUCCESS) rc = mdb_env_set_mapsize(env_, kMapBytes);
    if (rc == MDB_SUCCESS) rc = mdb_env_open(env_, dir.c_str(), MDB_NOTLS | MDB_NOMETASYNC, 0644);
    MDB_txn* txn = nullptr;
    if (rc == MDB_SUCCESS) rc = mdb_txn_begin(env_, nullptr, 0, &txn);
    if (rc == MDB_SUCCESS) rc = mdb_dbi_open(txn, nullptr, 0, &records_);
    if (rc == MDB_SUCCESS) rc = mdb_txn_commit(txn);
    if (rc == MDB_SUCCESS) rc = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_);
    if (rc == MDB_SUCCESS) mdb_txn_reset(reader_);
    return result(rc, "open");
  }

  Result<void> put(const RecordGroup& group) override {
    MDB_txn* txn = nullptr;
    if (const int rc = mdb_txn_begin(env_, nullptr, 0, &txn)) return result(rc, "begin");
    if (const int rc = put_all(txn, group)) {
      mdb_txn_abort(txn);
      return result(rc, "put");
    }
    return result(mdb_txn_commit(txn), "commit");
  }

  Result<void> get(const RecordGroup& group, Look& look) override {
    const auto keys = group.keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const int rc = mdb_txn_renew(reader_)) return result(rc, "renew");
      MDB_val key = to_val(keys[i]);
      MDB_val value;
      const int rc = mdb_get(reader_, records_, &key, &value);
      if (rc == MDB_SUCCESS) look(i, {static_cast<const char*>(value.mv_data), value.mv_size});
      mdb_txn_reset(reader_);
      if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND) return result(rc, "get");
    }
    return {};
  }

  Result<void> close() override {
    give_back();
    return {};
  }

 private:
  static Result<void> result(int rc, std::string_view doing) {
    if (rc == MDB_SUCCESS) return {};
    return fail(Code::io_error, "bare lmdb: {}: {}", doing, mdb_strerror(rc));
  }

  int put_all(MDB_txn* txn, const RecordGroup& group) {
    MDB_cursor* cursor = nullptr;  // Ends with its transaction.
    if (const int rc = mdb_cursor_open(txn, records_, &cursor)) return rc;
    std::size_t appended = 0;
    const auto records = group.records();
    for (; appended < records.size(); ++appended) {
      const int rc = put_one(cursor, records[appended], MDB_APPEND);
      if (rc == MDB_KEYEXIST) break;  // Not behind the last key.
      if (rc != MDB_SUCCESS) return rc;
    }
    sorted_.assign(records.begin() + static_cast<std::ptrdiff_t>(appended), records.end());
    std::sort(sorted_.begin(), sorted_.end(),
              [](const StoredRecord& a, const StoredRecord& b) { return a.key < b.key; });
    for (const StoredRecord& record : sorted_) {
      if (const int rc = put_one(cursor, record, 0)) return rc;
    }
    return MDB_SUCCESS;
  }

  static int put_one(MDB_cursor* cursor, const StoredRecord& record, unsigned flags) {
    MDB_val key = to_val(record.key);
    MDB_val value = to_val(record.value);
    return mdb_cursor_put(cursor, &key, &value, flags);
  }

  void give_back() noexcept {
    if (reader_ != nullptr) mdb_txn_abort(std::exchange(reader_, nullptr));
    if (env_ != nullptr) mdb_env_close(std::exchange(env_, nullptr));
  }

  MDB_env* env_ = nullptr;
  MDB_dbi records_ = 0;
  MDB_txn* reader_ = nullptr;
  std::vector<StoredRecord> sorted_;
};

}  // namespace

OpenedTarget open_bare_lmdb(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return fail(error.value(), "create {}", dir.native());
  auto target = std::make_unique<BareLmdb>();
  KV_TRY(target->open(dir));
  return target;
}

#else

OpenedTarget open_bare_lmdb(const std::filesystem::path&) {
  return fail(Code::unsupported, "this build is without liblmdb-dev");
}

#endif

}  // namespace kvingest::bench
