// missing.cpp -- the row of the rocksdb engine in a build that lacks it.
#include "storage/engine_rows.hpp"
#include "storage/salvage.hpp"

namespace kvingest {

constinit const Engine kRocksdbEngine{
    .name = "rocksdb",
    .summary = "RocksDB: write-heavy, compressed, data much larger than memory",
    .persistent = true,
    .shared_readers = false,
    .format_version = 1,
    .options = {},
    .missing =
        "it was built without RocksDB; install librocksdb-dev and configure again with -DKVINGEST_WITH_ROCKSDB=ON",
    .open = nullptr,
};

Result<std::optional<std::uint64_t>> rocks::salvage(const SalvageSource&, Salvager&) {
  return fail(Code::unsupported, "store {} is not in this build: {}", kRocksdbEngine.name, kRocksdbEngine.missing);
}

}  // namespace kvingest
