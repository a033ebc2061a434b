#include "storage/rocksdb/rocks_options.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/options_util.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.hpp"
#include "storage/rocksdb/rocks_error.hpp"

namespace kvingest::rocks {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr double kBloomBitsPerKey = 10;  // One false positive in a hundred.
constexpr std::uint64_t kOpenFilesMin = 64;

std::string_view value_of(const EngineOptions& given, std::string_view name) {
  const auto found = given.find(name);
  if (found != given.end()) return found->second;
  return std::find_if(kEngineOptions.begin(), kEngineOptions.end(),
                      [&](const EngineOption& option) { return option.name == name; })
      ->fallback;
}

Result<std::uint64_t> size_of(const EngineOptions& given, std::string_view name, std::uint64_t least) {
  auto size = parse_size(value_of(given, name));
  if (!size) return fail(std::move(size).error(), "rocksdb: {}", name);
  if (*size != 0 && *size < least)
    return fail(Code::invalid_argument, "rocksdb: {}={}: at least {}", name, *size, format_size(least));
  return *size;
}

Result<int> count_of(const EngineOptions& given, std::string_view name, std::uint64_t least, std::uint64_t most) {
  auto count = parse_count(value_of(given, name), least, most);
  if (!count) return fail(std::move(count).error(), "rocksdb: {}", name);
  return static_cast<int>(*count);
}

Result<void> set_compression(const EngineOptions& given, rocksdb::Options& options) {
  struct Choice {
    std::string_view name;
    rocksdb::CompressionType upper;
    rocksdb::CompressionType bottommost;
  };
  static constexpr std::array kChoices = {
      Choice{"none", rocksdb::kNoCompression, rocksdb::kNoCompression},
      Choice{"snappy", rocksdb::kSnappyCompression, rocksdb::kSnappyCompression},
      Choice{"lz4", rocksdb::kLZ4Compression, rocksdb::kZSTD},
      Choice{"zstd", rocksdb::kZSTD, rocksdb::kZSTD},
  };
  const std::string_view name = value_of(given, "compression");
  const auto* const choice =
      std::find_if(kChoices.begin(), kChoices.end(), [&](const Choice& candidate) { return candidate.name == name; });
  if (choice == kChoices.end())
    return fail(Code::invalid_argument, "rocksdb: compression={}: one of none, snappy, lz4, zstd", name);
  const auto supported = rocksdb::GetSupportedCompressions();
  for (const auto type : {choice->upper, choice->bottommost}) {
    if (std::find(supported.begin(), supported.end(), type) == supported.end())
      return fail(Code::unsupported, "rocksdb: compression={}: this RocksDB was built without it", name);
  }
  options.compression = choice->upper;
  options.bottommost_compression = choice->bottommost;
  return {};
}

Result<void> set_memtable(const EngineOptions& given, rocksdb::Options& options) {
  auto buffer = size_of(given, "buffer", kMiB);
  KV_TRY(buffer);
  options.write_buffer_size = std::max(*buffer, kMiB);
  options.max_write_buffer_number = 4;  // One is filled, others are flushed: three deep before writes stop.
  options.min_write_buffer_number_to_merge = 1;
  const std::string_view kind = value_of(given, "memtable");
  if (kind != "skiplist" && kind != "vector")
    return fail(Code::invalid_argument, "rocksdb: memtable={}: skiplist or vector", kind);
  if (kind == "vector") options.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
  options.allow_concurrent_memtable_write = false;  // There is one writer; the vector could not do it either.
  options.enable_write_thread_adaptive_yield = false;
  return {};
}

std::shared_ptr<rocksdb::Cache> make_cache(std::uint64_t bytes) {
  return rocksdb::NewLRUCache(std::max(bytes, kMiB));
}

Result<void> set_tables(const EngineOptions& given, rocksdb::Options& options) {
  auto cache = size_of(given, "cache", kMiB);
  KV_TRY(cache);
  auto blob = size_of(given, "blob", 1);
  KV_TRY(blob);
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = make_cache(*cache);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
  table.cache_index_and_filter_blocks = true;  // Else their memory is bounded by nothing.
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.enable_blob_files = *blob > 0;
  options.min_blob_size = *blob;
  options.enable_blob_garbage_collection = true;
  return {};
}

void set_levels(rocksdb::Options& options) {
  options.level0_file_num_compaction_trigger = 4;
  options.level0_slowdown_writes_trigger = 20;
  options.level0_stop_writes_trigger = 36;
  options.target_file_size_base = 64 * kMiB;
  options.max_bytes_for_level_base = 256 * kMiB;
  options.level_compaction_dynamic_level_bytes = true;
  options.bytes_per_sync = kMiB;  // Spreads the write-back of table files.
}

// What a write() promises, and what a store directory is, rests on these.
void set_promises(rocksdb::Options& options) {
  options.manual_wal_flush = false;  // Each batch reaches the kernel before write() returns.
  options.wal_bytes_per_sync = 0;    // Would sync parts of the log out of order.
  options.recycle_log_file_num = 0;  // Old records behind the end of a recycled log can pass for new ones.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;  // An exact prefix of the batches.
  options.avoid_flush_during_recovery = true;  // What is in the log stays there: a full disk can be opened.
  options.paranoid_checks = true;              // A failed write stops later ones.
  options.unordered_write = false;             // A snapshot must not change.
  options.allow_mmap_writes = false;           // The log could not be synced.
  options.wal_dir.clear();                     // All of it is in the store's directory.
  options.db_log_dir.clear();
  options.db_paths.clear();
}

Result<int> open_files(const EngineOptions& given) {
  auto wanted = count_of(given, "open_files", kOpenFilesMin, 1'000'000);
  KV_TRY(wanted);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return *wanted;
  return static_cast<int>(std::clamp(limit.rlim_cur / 2, kOpenFilesMin, static_cast<rlim_t>(*wanted)));
}

Result<rocksdb::Options> load_options(const EngineOptions& given, const std::string& path) {
  for (const auto& [name, value] : given) {
    if (name != "options" && name != "cache")
      return fail(Code::invalid_argument, "rocksdb: {} cannot go with options={}: set it in the file", name, path);
  }
  auto cache_bytes = size_of(given, "cache", kMiB);
  KV_TRY(cache_bytes);
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  auto cache = make_cache(*cache_bytes);
  const auto loaded = rocksdb::LoadOptionsFromFile(rocksdb::ConfigOptions(), path, &database, &families, &cache);
  if (!loaded.ok()) {
    Error error = to_error(loaded, fmt::format("rocksdb: options={}", path));
    error.code = Code::invalid_argument;
    return tl::unexpected<Error>(std::move(error));
  }
  rocksdb::Options options(database, families.front().options);  // The default family is always the first.
  if (options.comparator != rocksdb::BytewiseComparator())
    return fail(Code::invalid_argument, "rocksdb: options={}: keys order by bytes; take its comparator out", path);
  return options;
}

Result<rocksdb::Options> tuned_options(const EngineOptions& given) {
  rocksdb::Options options;
  auto jobs = count_of(given, "jobs", 1, 64);
  KV_TRY(jobs);
  options.max_background_jobs = *jobs;
  auto files = open_files(given);
  KV_TRY(files);
  options.max_open_files = *files;
  set_levels(options);
  KV_TRY(set_memtable(given, options));
  KV_TRY(set_tables(given, options));
  KV_TRY(set_compression(given, options));
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

}  // namespace

Result<rocksdb::Options> make_options(const EngineOptions& given) {
  const std::string file(value_of(given, "options"));
  auto options = file.empty() ? tuned_options(given) : load_options(given, file);
  KV_TRY(options);
  set_promises(*options);
  return options;
}

}  // namespace kvingest::rocks
