// missing.cpp -- the row of the lmdb engine in a build that lacks it.
#include "storage/engine_rows.hpp"

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

}  // namespace kvingest
