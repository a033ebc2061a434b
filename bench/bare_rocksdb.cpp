// bare_rocksdb.cpp -- RocksDB by its own interface, with the options that our adapter opens it with.
#include "bench/stores_targets.hpp"

#if defined(KVINGEST_WITH_ROCKSDB)
#include <rocksdb/db.h>

#include "storage/rocksdb/rocks_options.hpp"
#endif

namespace kvingest::bench {

#if defined(KVINGEST_WITH_ROCKSDB)
namespace {

using rocksdb::Slice;

Slice to_slice(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

class BareRocksdb final : public Target {
 public:
  Result<void> open(const std::filesystem::path& dir) {
    auto options = rocks::make_options({});
    KV_TRY(options);
    options->create_if_missing = true;
    rocksdb::DB* db = nullptr;
    KV_TRY(result(rocksdb::DB::Open(*options, dir.native(), &db), "open"));
    db_.reset(db);
    return {};
  }

  Result<void> put(const RecordGroup& group) override {
    batch_.Clear();
    for (const StoredRecord& record : group.records()) {
      KV_TRY(result(batch_.Put(to_slice(record.key), to_slice(record.value)), "put"));
    }
    return result(db_->Write(rocksdb::WriteOptions(), &batch_), "write");
  }

  Result<void> get(const RecordGroup& group, Look& look) override {
    const auto keys = group.keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      rocksdb::PinnableSlice value;
      const auto got = db_->Get(read_, db_->DefaultColumnFamily(), to_slice(keys[i]), &value);
      if (got.ok()) look(i, {value.data(), value.size()});
      if (!got.ok() && !got.IsNotFound()) return result(got, "get");
    }
    return {};
  }

  Result<void> close() override {
    const auto closed = db_->Close();
    db_.reset();
    return result(closed, "close");
  }

 private:
  static Result<void> result(const rocksdb::Status& status, std::string_view doing) {
    if (status.ok()) return {};
    return fail(Code::io_error, "bare rocksdb: {}: {}", doing, status.ToString());
  }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteBatch batch_;
  rocksdb::ReadOptions read_;
};

}  // namespace

OpenedTarget open_bare_rocksdb(const std::filesystem::path& dir) {
  auto target = std::make_unique<BareRocksdb>();
  KV_TRY(target->open(dir));
  return target;
}

#else

OpenedTarget open_bare_rocksdb(const std::filesystem::path&) {
  return fail(Code::unsupported, "this build is without librocksdb-dev");
}

#endif

}  // namespace kvingest::bench
