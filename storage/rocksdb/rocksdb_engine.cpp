// rocksdb_engine.cpp -- the row of the rocksdb engine.
#include "storage/engine_rows.hpp"
#include "storage/rocksdb/rocks_options.hpp"
#include "storage/rocksdb/rocksdb_store.hpp"

namespace kvingest {
namespace {

constexpr std::uint32_t kFormatVersion = 1;

Result<void> check_rocksdb(const EngineOptions& options) {
  KV_TRY(rocks::make_options(options));
  return {};
}

Result<std::unique_ptr<Store>> open_rocksdb(const EngineContext& context) {
  auto store = std::make_unique<rocks::RocksdbStore>(context);
  KV_TRY(store->open(context.options, context.fresh));
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
    .check = check_rocksdb,
    .open = open_rocksdb,
};

}  // namespace kvingest
