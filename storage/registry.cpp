#include <array>

#include "storage/engine_rows.hpp"

namespace kvingest {
namespace {

// In the order they are listed, baselines first: null hash map file mmap lmdb rocksdb.
constexpr std::array kEngines = {
    &kNullEngine,  // One a line.
    &kHashEngine, &kMapEngine, &kFileEngine, &kMmapEngine, &kLmdbEngine, &kRocksdbEngine,
};

}  // namespace

std::span<const Engine* const> engines() noexcept {
  return kEngines;
}

}  // namespace kvingest
