#include "storage/salvage.hpp"

#include <array>

namespace kvingest {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string_view engine;
  std::string_view file;  ///< That a store of this engine always has.
  Result<std::optional<std::uint64_t>> (*salvage)(const SalvageSource&, Salvager&);
};

constexpr std::array kRows{
    Row{"file", "records.slots", slots::salvage},
    Row{"mmap", ".log", mmap_store::salvage},  // Of any number.
    Row{"lmdb", "data.mdb", lmdb::salvage},
    Row{"rocksdb", "db", rocks::salvage},
};

}  // namespace

std::optional<std::string_view> engine_of_files(const fs::path& dir) {
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    const fs::path name = at->path().filename();
    for (const Row& row : kRows) {
      if (name == row.file || name.extension() == row.file) return row.engine;
    }
  }
  return std::nullopt;
}

Result<std::optional<std::uint64_t>> salvage(std::string_view engine, const SalvageSource& source, Salvager& salvager) {
  for (const Row& row : kRows) {
    if (row.engine == engine) return row.salvage(source, salvager);
  }
  return fail(Code::unsupported, "store {} keeps nothing that could be repaired", engine);
}

}  // namespace kvingest
