// map_store.cpp -- the store in a red-black tree in memory: the model that every other engine is tested against.
#include <map>
#include <string>

#include "storage/engine_rows.hpp"
#include "storage/index/memory_store.hpp"
#include "storage/index/sorted_map.hpp"

namespace kvingest {
namespace {

using Tree = SortedMap<std::map<std::string, const StoredValue*, std::less<>>>;

Result<std::unique_ptr<Store>> open_map(const EngineContext&) {
  return std::make_unique<MemoryStore<Tree, Tree>>();
}

}  // namespace

constinit const Engine kMapEngine{
    .name = "map",
    .summary = "an ordered tree in memory; nothing outlives the process",
    .persistent = false,
    .shared_readers = false,
    .format_version = 0,
    .options = {},
    .missing = {},
    .open = open_map,
};

}  // namespace kvingest
