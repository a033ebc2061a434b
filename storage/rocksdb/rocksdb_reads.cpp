// rocksdb_reads.cpp -- the reading half of RocksdbStore. Every loop over an iterator ends with a look at its status.
#include <algorithm>
#include <utility>
#include <vector>

#include "storage/rocksdb/rocks_error.hpp"
#include "storage/rocksdb/rocksdb_store.hpp"

namespace kvingest::rocks {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr std::size_t kMultiGetMax = 1024;  // Values pinned at a time.

}  // namespace

Result<bool> RocksdbStore::get(Space space, std::string_view key, ValueVisitor visit) const {
  const std::shared_lock lock(in_use_);
  KV_TRY(check_open());
  if (key.size() > kKeyBytesMax) return false;
  const SpaceKey at(space, key);
  rocksdb::PinnableSlice value;
  const Status got = db_->Get(read_options_, db_->DefaultColumnFamily(), at.slice(), &value);
  if (got.IsNotFound()) return false;
  if (!got.ok()) return failure(got, "get from {}", path_);
  visit(to_view(value));
  return true;
}

Result<std::size_t> RocksdbStore::multi_get(std::span<const std::string_view> keys, IndexedValueVisitor visit) const {
  const std::shared_lock lock(in_use_);
  KV_TRY(check_open());
  rocksdb::ReadOptions options = read_options_;
  const bool in_parts = keys.size() > kMultiGetMax;  // Then a snapshot makes them one view.
  if (in_parts) options.snapshot = db_->GetSnapshot();
  std::size_t found = 0;
  Result<void> got;
  for (std::size_t first = 0; first < keys.size() && got; first += kMultiGetMax) {
    const auto part = keys.subspan(first, std::min(kMultiGetMax, keys.size() - first));
    got = multi_get_part(options, part, first, visit, found);
  }
  if (in_parts) db_->ReleaseSnapshot(options.snapshot);
  KV_TRY(got);
  return found;
}

Result<void> RocksdbStore::multi_get_part(const rocksdb::ReadOptions& options, std::span<const std::string_view> keys,
                                          std::size_t first, IndexedValueVisitor visit, std::size_t& found) const {
  std::string bytes;  // All keys with their space in front, one behind the other.
  std::vector<Slice> slices(keys.size());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  std::size_t total = 0;
  for (const std::string_view key : keys) total += 1 + key.size();
  bytes.reserve(total);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    slices[i] = Slice(bytes.data() + bytes.size(), 1 + keys[i].size());
    bytes += kRecordsByte;
    bytes += keys[i];
  }
  db_->MultiGet(options, db_->DefaultColumnFamily(), keys.size(), slices.data(), values.data(), statuses.data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].IsNotFound()) continue;
    if (!statuses[i].ok()) return failure(statuses[i], "get from {}", path_);
    visit(first + i, to_view(values[i]));
    ++found;
  }
  return {};
}

Result<std::size_t> RocksdbStore::scan(Space space, const Range& range, EntryVisitor visit) const {
  const std::shared_lock lock(in_use_);
  KV_TRY(check_open());
  if (range.limit == 0) return 0;
  const char byte = byte_of(space);
  const char next_byte = static_cast<char>(byte + 1);
  const std::string lower = std::string(1, byte).append(range.first.value_or(""));
  const std::string upper = range.last ? std::string(1, byte).append(*range.last) : std::string(1, next_byte);
  if (lower >= upper) return 0;
  const Slice lower_bound = lower;
  const Slice upper_bound = upper;
  rocksdb::ReadOptions options = read_options_;
  options.total_order_seek = true;  // Whatever an OPTIONS file says about prefixes.
  options.iterate_lower_bound = &lower_bound;
  options.iterate_upper_bound = &upper_bound;  // Without it a scan walks the tombstones behind its end.
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));  // Sees the store as of now.
  std::size_t passed = 0;
  range.reverse ? at->SeekToLast() : at->SeekToFirst();
  for (; at->Valid(); range.reverse ? at->Prev() : at->Next()) {
    ++passed;
    if (!visit(to_view(at->key()).substr(1), to_view(at->value())) || passed == range.limit) return passed;
  }
  // An error ends the walk like the last entry does.
  if (const Status status = at->status(); !status.ok()) return failure(status, "scan {}", path_);
  return passed;
}

Result<std::uint64_t> RocksdbStore::count() const {
  auto counted = scan(Space::records, {}, [](std::string_view, std::string_view) { return true; });
  KV_TRY(counted);
  return *counted;
}

void RocksdbStore::stats(StatVisitor visit) const {
  using Properties = rocksdb::DB::Properties;
  const std::shared_lock lock(in_use_);
  if (db_ == nullptr) return;
  const std::pair<std::string_view, const std::string*> properties[] = {
      {"records_estimated", &Properties::kEstimateNumKeys},
      {"live_data_bytes", &Properties::kEstimateLiveDataSize},
      {"table_files_bytes", &Properties::kTotalSstFilesSize},
      {"blob_files_bytes", &Properties::kTotalBlobFileSize},
      {"memtables_bytes", &Properties::kCurSizeAllMemTables},
      {"table_readers_bytes", &Properties::kEstimateTableReadersMem},
      {"block_cache_bytes", &Properties::kBlockCacheUsage},
      {"compaction_pending_bytes", &Properties::kEstimatePendingCompactionBytes},
      {"flushes_running", &Properties::kNumRunningFlushes},
      {"compactions_running", &Properties::kNumRunningCompactions},
      {"writes_stopped", &Properties::kIsWriteStopped},
      {"delayed_write_rate_bytes", &Properties::kActualDelayedWriteRate},
  };
  for (const auto& [name, property] : properties) {
    std::uint64_t value = 0;
    if (db_->GetIntProperty(*property, &value)) visit(name, value);
  }
  const auto counters = write_state_->counters();
  visit("write_slowdowns", counters.slowdowns);
  visit("write_stops", counters.stops);
  visit("busy_writes", busy_writes_.load(std::memory_order_relaxed));
  visit("opened_anew", opened_anew_.load(std::memory_order_relaxed));
  visit("background_errors", counters.errors);
  visit("background_recoveries", counters.recoveries);
}

Result<VerifyReport> RocksdbStore::verify() const {
  const std::shared_lock lock(in_use_);
  KV_TRY(check_open());
  rocksdb::ReadOptions options = read_options_;
  options.fill_cache = false;
  if (const Status checked = db_->VerifyChecksum(options); !checked.ok()) return failure(checked, "verify {}", path_);
  VerifyReport report;
  std::string last;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string_view key = to_view(at->key());
    if (key <= last) return fail(Code::corrupt, "{}: entry {} is out of order", path_, report.records);
    last = key;
    if (key.front() == kRecordsByte) ++report.records;
    report.bytes_checked += key.size() + at->value().size();
  }
  if (!at->status().ok()) return failure(at->status(), "verify {}", path_);
  return report;
}

}  // namespace kvingest::rocks
