// file_fixture.hpp -- a directory with a slot file, and what its tests ask of a store.
#pragma once

#include <stdlib.h>  // mkdtemp
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/posix.hpp"
#include "kvingest/engine.hpp"
#include "kvingest/store.hpp"
#include "storage/engine_rows.hpp"
#include "storage/file/slot_format.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

using Contents = std::vector<std::pair<std::string, std::string>>;

/// A directory in memory where there is such a file system: what a sync costs is not what these tests are about.
/// Opens the engine itself, without the store directory around it: nobody else makes system calls.
class FileDir {
 public:
  explicit FileDir(const Posix& posix = Posix::real()) : posix_(posix) {}

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return dir_.path(); }
  [[nodiscard]] std::filesystem::path slots() const { return path() / slots::kFileName; }
  [[nodiscard]] std::string bytes() const { return file_text(slots()); }
  void set_bytes(std::string_view bytes) const { write_text(slots(), bytes); }
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return notices_; }

  Result<std::unique_ptr<Store>> try_open(bool create = true, EngineOptions options = {}, bool read_only = false) {
    notices_.clear();
    return kFileEngine.open({.dir = path(),
                             .options = std::move(options),
                             .read_only = read_only,
                             .fresh = create && !std::filesystem::exists(slots()),
                             .posix = &posix_,
                             .notice = [this](std::string_view text) { notices_.emplace_back(text); }});
  }
  std::unique_ptr<Store> open(bool create = true, EngineOptions options = {}, bool read_only = false) {
    auto opened = try_open(create, std::move(options), read_only);
    INFO((opened ? "" : opened.error().text));
    REQUIRE(opened);
    return *std::move(opened);
  }

 private:
  static std::filesystem::path parent() {
    const std::filesystem::path memory = "/dev/shm";
    return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }

  TempDir dir_{parent()};
  const Posix& posix_;
  std::vector<std::string> notices_;
};

inline Result<void> put(Store& store, std::string_view key, std::string_view value, Durability durability) {
  WriteBatch batch;
  batch.put(key, value);
  return store.write(batch, durability);
}

inline Result<void> put_meta(Store& store, std::string_view key, std::string_view value) {
  WriteBatch batch;
  batch.put_meta(key, value);
  return store.write(batch, Durability::kernel);
}

/// "(none)" where there is none, "(CODE)" where reading fails.
inline std::string value_of(const Store& store, std::string_view key, Space space = Space::records) {
  std::string value = "(none)";
  const auto found = store.get(space, key, [&](std::string_view bytes) { value = bytes; });
  if (!found) return "(" + std::string(to_string(found.error().code)) + ")";
  return value;
}

inline Contents contents(const Store& store, Space space = Space::records) {
  Contents found;
  const auto visited = store.scan(space, Range{}, [&](std::string_view key, std::string_view value) {
    found.emplace_back(key, value);
    return true;
  });
  INFO((visited ? "" : visited.error().text));
  REQUIRE(visited);
  return found;
}

inline std::uint64_t stat_of(const Store& store, std::string_view name) {
  std::optional<std::uint64_t> found;
  store.stats([&](std::string_view stat, std::uint64_t value) {
    if (stat == name) found = value;
  });
  REQUIRE(found);
  return *found;
}

}  // namespace kvingest::test
