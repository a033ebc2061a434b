// kvingest/engine.hpp -- opening a store by name.
//
//   auto spec = parse_store_spec("mmap,segment=64M");               // names are checked here: a usage error
//   auto store = open_store(*spec, {.dir = "kvdata"});              // the world is checked here
//
// A persistent store lives in a directory with a marker (engine, format version, creation time, labels) and a lock.
// storage/FORMAT.md describes both. Engines that keep nothing on disk create no directory.
//
// Threads: the functions may be called on any thread. Two openers of one directory, in one process or two, exclude each
//          other, except readers of an engine with `shared_readers`.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kvingest/result.hpp"
#include "kvingest/store.hpp"

namespace kvingest {

struct Posix;  // src/base/posix.hpp: the system-call table of our own stores.

/// An option that an engine knows: `--store NAME,option=value`.
struct EngineOption {
  std::string_view name;
  std::string_view fallback;  ///< Its value when not given, as text.
  std::string_view meaning;   ///< One line.
};

/// Options of one engine, by name; every name is one that the engine knows.
using EngineOptions = std::map<std::string, std::string, std::less<>>;

/// What an engine's open function gets. The directory exists and is locked.
struct EngineContext {
  std::filesystem::path dir;  ///< Empty for memory engines.
  EngineOptions options;
  bool read_only = false;                        ///< Change nothing on disk; replay an unclean end in memory.
  bool fresh = false;                            ///< Being created: missing or half-made files are no damage.
  const Posix* posix = nullptr;                  ///< Never null.
  std::function<void(std::string_view)> notice;  ///< Never empty; takes one sentence, for example on a torn tail.
};

/// One row of the registry (storage/registry.cpp).
struct Engine {
  std::string_view name;
  std::string_view summary;  ///< One line for --list-stores.
  bool persistent;
  bool shared_readers;           ///< Other processes may read while one writes.
  std::uint32_t format_version;  ///< Of its files; a newer one on disk is refused, an older one too until 1.0.
  std::span<const EngineOption> options;
  std::string_view missing;  ///< Empty, or why this build lacks the engine and what to install.
  /// Whether the values of options are what they can be. Null where there are none to check.
  /// Fails with: invalid_argument, unsupported.
  Result<void> (*check)(const EngineOptions& options);
  Result<std::unique_ptr<Store>> (*open)(const EngineContext& context);  ///< Null where missing.
};

/// All engines in the order they are listed, the missing ones included.
[[nodiscard]] std::span<const Engine* const> engines() noexcept;

/// A choice of engine with its options: "NAME[,key=value...]".
struct StoreSpec {
  const Engine* engine = nullptr;
  EngineOptions options;
};

/// Fails with: invalid_argument (no such store, naming the nearest; an unknown option, listing the known; a value that
/// cannot be), unsupported (not in this build, with what to install).
[[nodiscard]] Result<StoreSpec> parse_store_spec(std::string_view text);

/// What the marker of a store directory says.
struct Marker {
  std::string engine;
  std::uint32_t format_version = 0;
  std::string created;                                     ///< RFC 3339, UTC.
  bool ready = false;                                      ///< false: creation was interrupted before the first write.
  std::map<std::string, std::string, std::less<>> labels;  ///< The service's: key template, format, columns.
};

/// Fails with: invalid_argument (no store in `dir`), corrupt, unsupported (a newer marker), io_error.
[[nodiscard]] Result<Marker> read_marker(const std::filesystem::path& dir);

struct StoreOptions {
  std::filesystem::path dir;
  bool read_only = false;
  bool create = true;  ///< Make the directory and store where there is none.
  /// Kept in the marker. Where the marker has another value for one of these names, opening is refused
  /// (invalid_argument, naming both values) unless `force_labels`, which replaces it.
  std::map<std::string, std::string, std::less<>> labels;
  bool force_labels = false;
  const Posix* posix = nullptr;                  ///< Null: the real system calls.
  std::function<void(std::string_view)> notice;  ///< Empty: notices are dropped.
};

/// Opens the store, creating it where allowed.
/// Fails with: invalid_argument, locked (with the pid), corrupt, unsupported (a newer format), io_error, no_space;
/// always before a byte of an existing store has changed.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const StoreSpec& spec, const StoreOptions& options);

/// Opens the store in `options.dir` with the engine its marker names.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(const StoreOptions& options);

}  // namespace kvingest
