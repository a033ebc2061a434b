// missing.cpp -- the row of the lmdb engine in a build that lacks it.
#include "storage/engine_rows.hpp"
#include "storage/salvage.hpp"

namespace kvingest {

constinit const Engine kLmdbEngine{
    .name = "lmdb",
    .summary = "LMDB: the default; many reading processes, data larger than memory",
    .persistent = true,
    .shared_readers = true,
    .format_version = 1,
    .options = {},
    .missing = "it was built without LMDB; install liblmdb-dev and configure again with -DKVINGEST_WITH_LMDB=ON",
    .open = nullptr,
};

Result<std::optional<std::uint64_t>> lmdb::salvage(const SalvageSource&, Salvager&) {
  return fail(Code::unsupported, "store {} is not in this build: {}", kLmdbEngine.name, kLmdbEngine.missing);
}

}  // namespace kvingest
