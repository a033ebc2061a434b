// store_index.hpp -- the index of the store: RecordIndex for records, an ordinary tree for the few meta entries.
#pragma once

#include <absl/container/btree_map.h>

#include <functional>
#include <string>

#include "storage/index/sorted_map.hpp"
#include "storage/index/versioned_index.hpp"
#include "storage/mmap/record_index.hpp"

namespace kvingest::mmap_store {

using MetaIndex = SortedMap<absl::btree_map<std::string, RecordPlace, std::less<>>>;
using Index = VersionedIndex<RecordIndex, MetaIndex>;

}  // namespace kvingest::mmap_store
