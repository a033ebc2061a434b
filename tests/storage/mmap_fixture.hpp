// mmap_fixture.hpp -- a directory with a store of the mmap engine, opened below open_store()'s checks. A crash is a
// copy of the directory taken while the store is open: what kill -9 would leave.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/engine_rows.hpp"
#include "tests/storage/engine_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

class MmapDir {
 public:
  explicit MmapDir(EngineOptions options = {}, const Posix& posix = Posix::real())
      : options_(std::move(options)), posix_(&posix) {
    if (!options_.contains("segment")) options_["segment"] = "1M";
    options_.try_emplace("index", "16M");
  }

  [[nodiscard]] const std::filesystem::path& path() const { return dir_.path(); }
  [[nodiscard]] std::filesystem::path segment(int number) const {
    char name[32];
    std::snprintf(name, sizeof name, "%06d.log", number);
    return path() / name;
  }

  [[nodiscard]] Result<std::unique_ptr<Store>> try_open(bool read_only = false) {
    const Opening how = read_only                           ? Opening::read_only
                        : std::filesystem::is_empty(path()) ? Opening::fresh
                                                            : Opening::again;
    EngineContext context = context_for(path(), how, options_, &notices);
    context.posix = posix_;
    return kMmapEngine.open(context);
  }
  [[nodiscard]] std::unique_ptr<Store> open(bool read_only = false) {
    auto store = try_open(read_only);
    if (!store) FAIL("open: " << store.error().text);
    return std::move(*store);
  }
  /// Makes this directory a copy of another one as it stands.
  void copy_from(const MmapDir& other) const {
    for (const auto& old : std::filesystem::directory_iterator(path())) std::filesystem::remove(old.path());
    std::filesystem::copy(other.path(), path(), std::filesystem::copy_options::recursive);
  }
  /// The files that were set aside.
  [[nodiscard]] std::vector<std::string> torn_files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      if (file.path().filename().string().starts_with("torn-")) names.push_back(file.path().filename().string());
    }
    return names;
  }

  std::vector<std::string> notices;

 private:
  TempDir dir_;
  EngineOptions options_;
  const Posix* posix_;
};

/// Overwrites bytes of a file in place.
inline void poke(const std::filesystem::path& path, std::uint64_t offset, std::string_view bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) FAIL("cannot write to " << path);
}

inline Result<void> put(Store& store, std::string_view key, std::string_view value,
                        Durability durability = Durability::kernel) {
  WriteBatch batch;
  batch.put(key, value);
  return store.write(batch, durability);
}

/// A run of lines "line N", N from `first` on.
inline WriteBatch lines(std::uint64_t first, std::uint64_t count) {
  WriteBatch batch;
  for (std::uint64_t i = 0; i < count; ++i) batch.put_next("line " + std::to_string(first + i));
  batch.number(first);
  return batch;
}

/// Scans the store, which gives exactly `want` whatever `before_entry` does to it: it is called with the number of
/// entries seen so far in front of each.
inline void check_scan_gives(const Store& store, const std::map<std::string, std::string>& want, bool reverse,
                             FunctionRef<void(std::size_t seen)> before_entry) {
  Entries seen;
  const auto visit = [&](std::string_view key, std::string_view value) {
    before_entry(seen.size());
    seen.emplace_back(key, value);
    return true;
  };
  REQUIRE(store.scan({.reverse = reverse}, visit).value() == want.size());
  Entries expected(want.begin(), want.end());
  if (reverse) std::reverse(expected.begin(), expected.end());
  CHECK(seen == expected);
}

inline std::string number_key(std::uint64_t number) {
  std::string key(kSeqKeyBytes, '\0');
  codec::put_ordered(key.data(), number);
  return key;
}

}  // namespace kvingest::test
