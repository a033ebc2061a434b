// environment.hpp -- one LMDB environment: its file, its map, its lock file, its databases and its readers.
//
// The map is address space, reserved large at once, because moving it is the one thing that must wait for readers. When
// it is full it is moved and doubled, with readers kept out, up to `map_bytes_max`; batches that only erase may go a
// little beyond, since LMDB needs fresh pages to erase, too.
//
// Threads:  readers() and check() on any thread; everything else on the writer's.
// Lifetime: a directory is open at most once in a process: a second opener would drop the first one's file locks.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "base/posix.hpp"
#include "storage/lmdb/page_checker.hpp"
#include "storage/lmdb/reader_pool.hpp"

namespace kvingest::lmdb {

/// The most that a map may grow to: what 47 bits of user address space hold beside everything else.
inline constexpr std::uint64_t kMapBytesMax = std::uint64_t{1} << 46;
inline constexpr std::uint64_t kMapBytesMin = std::uint64_t{1} << 20;

enum class Readahead { automatic, on, off };

struct Settings {
  std::filesystem::path dir;
  std::uint64_t map_bytes = 0;
  std::uint64_t map_bytes_max = kMapBytesMax;
  Readahead readahead = Readahead::automatic;
  bool read_only = false;
  bool fresh = false;
  const Posix* posix = nullptr;
  std::function<void(std::string_view)> notice;
};

/// Sizes of the environment as of its last commit.
struct Usage {
  std::uint64_t page_bytes = 0;
  std::uint64_t map_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< Up to the last page ever used; what is free in between is counted in it.
  std::uint64_t batch_id = 0;    ///< LMDB's number of the last transaction.
};

class Environment {
 public:
  /// Fails with: locked (open in this process already), corrupt, unsupported (another version of LMDB wrote it),
  /// no_space, io_error.
  static Result<std::unique_ptr<Environment>> open(Settings settings);
  /// Closes without a sync.
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  [[nodiscard]] MDB_env* handle() const noexcept { return env_; }
  [[nodiscard]] const Databases& databases() const noexcept { return databases_; }
  [[nodiscard]] ReaderPool& readers() noexcept { return readers_; }
  [[nodiscard]] const std::filesystem::path& data_path() const noexcept { return data_path_; }
  [[nodiscard]] Usage usage() const noexcept;
  [[nodiscard]] std::uint64_t grown() const noexcept { return grown_; }

  /// Makes room for a batch of `batch_bytes` that met a full map; `only_erases` may use the head-room.
  /// Fails with: no_space, failed (the environment is unusable).
  Result<void> grow(std::uint64_t batch_bytes, bool only_erases);
  /// Takes back head-room that an erasing batch was given, as far as it is unused. Cheap where there is none.
  Result<void> shrink_to_limit();

  /// Checks every page of the data file as of the last commit. Safe beside a writer, also in another process.
  /// Fails with: corrupt, io_error, busy.
  Result<PageReport> check();

  /// Puts all commits on disk. Fails with: io_error.
  Result<void> sync();
  /// Whether a sync of the data file, by a descriptor of its own, reports an error since the last time it was asked.
  [[nodiscard]] bool writeback_failed() const;
  /// Whether the file system has no room for `bytes` more at the end of the data file.
  [[nodiscard]] bool file_system_full(std::uint64_t bytes) const;

  /// Exchanges the data file for `compacted` and opens it. Nobody else may have the environment open.
  /// Fails with: busy (somebody has; nothing was done), failed (the environment is unusable), io_error.
  Result<void> replace_data(const std::filesystem::path& compacted);

 private:
  explicit Environment(Settings settings);

  Result<void> claim();
  Result<void> prepare_files();
  Result<void> open_env();
  Result<void> check_before_use();
  Result<void> open_databases();
  void choose_map_size();
  Result<void> set_map_size(std::uint64_t bytes);
  void close_env() noexcept;
  Result<void> exchange_alone(const std::filesystem::path& compacted);

  Settings settings_;
  std::filesystem::path data_path_;
  std::filesystem::path lock_path_;
  MDB_env* env_ = nullptr;
  Databases databases_;
  ReaderPool readers_;
  std::uint64_t file_bytes_ = 0;  // When it was opened.
  std::uint64_t map_bytes_ = 0;
  std::uint64_t grown_ = 0;
  std::uint64_t claim_device_ = 0;
  std::uint64_t claim_inode_ = 0;
  bool claimed_ = false;
  File witness_;    // The data file again: each descriptor is told of a failed writeback once, LMDB's own only once.
  File lock_file_;  // After replace_data(): closing it would drop LMDB's lock on the same file (POSIX locks).
};

}  // namespace kvingest::lmdb
