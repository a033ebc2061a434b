// salvage.cpp -- what RocksDB's own means can still read of a damaged database, for `kvq repair`: RepairDB() on a copy,
// which makes a database of every table file and log that it can read, whatever the manifest says.
#include "storage/salvage.hpp"

#include <rocksdb/db.h>

#include <cstring>
#include <memory>

#include "kvingest/codec/fixed.hpp"
#include "storage/rocksdb/rocks_error.hpp"
#include "storage/rocksdb/rocks_options.hpp"
#include "storage/rocksdb/rocksdb_store.hpp"

namespace kvingest::rocks {
namespace {

namespace fs = std::filesystem;

std::string_view view_of(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

/// Files that RepairDB() could make nothing of: it moves them here.
Result<void> lose_files(const fs::path& database, Salvager& salvager) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(database / "lost", none)) {
    std::error_code ignored;
    const std::uint64_t bytes = fs::file_size(entry.path(), ignored);
    KV_TRY(salvager.lose({entry.path(), 0, bytes, "RocksDB's repair could make nothing of this file"}));
  }
  return {};
}

Result<std::optional<std::uint64_t>> give_all(rocksdb::DB& db, Salvager& salvager) {
  std::optional<std::uint64_t> last_batch;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    const std::string_view key = view_of(at->key());
    const std::string_view value = view_of(at->value());
    const char space = key.empty() ? '\0' : key.front();
    if (space == byte_of(Space::meta) || space == byte_of(Space::records)) {
      KV_TRY(
          salvager.take({space == byte_of(Space::meta) ? Space::meta : Space::records, false, key.substr(1), value}));
    } else if (value.size() == sizeof(std::uint64_t)) {
      last_batch = codec::get_fixed<std::uint64_t>(value.data());
    }
  }
  // An error ends the walk like the last entry does.
  if (const rocksdb::Status status = at->status(); !status.ok())
    KV_TRY(salvager.lose({{}, 0, 0, fmt::format("the walk over all entries ended early: {}", status.ToString())}));
  return last_batch;
}

}  // namespace

Result<std::optional<std::uint64_t>> salvage(const SalvageSource& source, Salvager& salvager) {
  const fs::path database = source.scratch / "db";
  std::error_code error;
  fs::copy(source.dir / "db", database, fs::copy_options::recursive, error);
  if (error) return fail(error.value(), "copy {} to {}", (source.dir / "db").native(), database.native());
  auto options = make_options({});
  KV_TRY(options);
  options->create_if_missing = false;
  // One that it cannot read stays in its place, and no entry of it is given.
  if (const auto repaired = rocksdb::RepairDB(database.native(), *options); !repaired.ok())
    return failure(repaired, "RocksDB's repair of {}", database.native());
  KV_TRY(lose_files(database, salvager));
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(*options, database.native(), &opened);
  const std::unique_ptr<rocksdb::DB> db(opened);
  if (!status.ok()) return failure(status, "open {} after RocksDB's repair", database.native());
  return give_all(*db, salvager);
}

}  // namespace kvingest::rocks
