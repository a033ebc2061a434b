// store_directory.hpp -- what every persistent store's directory has beside the engine's own files: the marker STORE
// and the lock LOCK.
//
// Nothing of an existing store changes before every check has passed. A directory that we make goes through the state
// `creating`: until the marker says `ready`, nothing has been stored in it.
//
// Threads:  one at a time.
// Lifetime: the lock is held until the object is destroyed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/posix.hpp"
#include "kvingest/engine.hpp"
#include "storage/acked.hpp"
#include "storage/marker.hpp"
#include "storage/store_lock.hpp"

namespace kvingest {

/// A label that was replaced by force stays under its name with this behind it: "key.was". What is in the store came to
/// be under more than one value.
inline constexpr std::string_view kReplacedLabelSuffix = ".was";

/// A socket in the directory, where the service that has the store in use answers kvq.
inline constexpr std::string_view kControlSocketName = "control.sock";

class StoreDirectory {
 public:
  /// Finds or makes the directory for `engine`, checks it against `options` and locks it.
  /// Fails with: invalid_argument (no store and none may be made, another engine, other labels, foreign files),
  /// locked, unsupported (another format), corrupt, io_error, no_space.
  [[nodiscard]] static Result<StoreDirectory> open(const Engine& engine, const StoreOptions& options,
                                                   const Posix& posix);

  /// What the engine made is complete, and the labels hold: writes the marker where it has to change.
  /// Fails with: io_error, no_space.
  Result<void> mark_ready();

  /// Checks that `copy` is new, outside this directory, and can be made; an empty directory is removed, for engines
  /// that want to make it. Fails with: invalid_argument (something is there, or it is inside), io_error.
  [[nodiscard]] Result<void> prepare_copy(const std::filesystem::path& copy) const;
  /// Completes `copy`, a new directory that the engine has filled, durably, with a copy of this store up to `held` or
  /// beyond. Fails with: io_error, no_space.
  Result<void> complete_copy(const std::filesystem::path& copy, const BatchMark& held) const;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Nothing was ever stored here.
  [[nodiscard]] bool fresh() const noexcept { return !marker_.ready; }

 private:
  StoreDirectory(const Posix& posix, std::filesystem::path path, StoreLock lock, Marker marker)
      : posix_(&posix), path_(std::move(path)), lock_(std::move(lock)), marker_(std::move(marker)) {}

  void replace_label(const std::string& name, const std::string& value);

  const Posix* posix_;
  std::filesystem::path path_;
  StoreLock lock_;
  Marker marker_;
  Marker wanted_;  // What mark_ready() makes of the marker.
  bool read_only_ = false;
};

}  // namespace kvingest
