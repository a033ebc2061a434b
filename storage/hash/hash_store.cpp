// hash_store.cpp -- the store in a hash table in memory: the fastest way to find a single key, and no order. The meta
// space is small and must be scanned, so it is kept in a tree.
#include <map>
#include <string>

#include "storage/engine_rows.hpp"
#include "storage/index/hash_map.hpp"
#include "storage/index/memory_store.hpp"
#include "storage/index/sorted_map.hpp"

namespace kvingest {
namespace {

using Table = HashMap<const StoredValue*>;
using Tree = SortedMap<std::map<std::string, const StoredValue*, std::less<>>>;

Result<std::unique_ptr<Store>> open_hash(const EngineContext&) {
  return std::make_unique<MemoryStore<Table, Tree>>();
}

}  // namespace

constinit const Engine kHashEngine{
    .name = "hash",
    .summary = "a hash table in memory: no order, so no scans; nothing outlives the process",
    .persistent = false,
    .shared_readers = false,
    .format_version = 0,
    .options = {},
    .missing = {},
    .open = open_hash,
};

}  // namespace kvingest
