// rocks_options.hpp -- how RocksDB is set up for ingest. README.md gives the reason of each setting.
//
// Threads: pure functions.
#pragma once

#include <rocksdb/options.h>

#include <array>

#include "kvingest/engine.hpp"

namespace kvingest::rocks {

/// The options that a user may set: `--store rocksdb,cache=1G`.
inline constexpr std::array kEngineOptions = {
    EngineOption{"cache", "256M", "memory for blocks, indexes and filters of the table files"},
    EngineOption{"buffer", "64M", "size of one memtable; up to four are in memory"},
    EngineOption{"memtable", "skiplist", "skiplist, or vector: faster loading, and very slow reads meanwhile"},
    EngineOption{"compression", "lz4", "of the table files: none, snappy, lz4 (zstd in the last level) or zstd"},
    EngineOption{"jobs", "2", "background threads for flushes and compactions"},
    EngineOption{"open_files", "512", "table files kept open"},
    EngineOption{"blob", "0", "values of at least this size go to blob files; 0: none do"},
    EngineOption{"options", "", "an OPTIONS file of RocksDB in place of all of these but cache"},
};

/// Our settings with the given ones put in, or those of an OPTIONS file; what our promises rest on is ours in any case.
/// Fails with: invalid_argument, unsupported (a compression that this RocksDB was built without), io_error.
[[nodiscard]] Result<rocksdb::Options> make_options(const EngineOptions& given);

}  // namespace kvingest::rocks
