#include "storage/store_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <vector>

namespace kvingest {
namespace {

namespace fs = std::filesystem;

std::string now_rfc3339() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[sizeof "0000-00-00T00:00:00Z"];
  std::strftime(text, sizeof text, "%FT%TZ", &utc);
  return text;
}

// Files of ours that an interrupted creation may leave, and what a new file system has.
bool means_nothing(const fs::path& name) {
  return name == kLockName || name == std::string(kMarkerName) + ".tmp" || name == "lost+found";
}

// Whether a store may be made in `dir`: it is missing or empty. Fails with: invalid_argument, io_error.
Result<void> check_free(const fs::path& dir) {
  std::error_code error;
  fs::directory_iterator entries(dir, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error == std::errc::not_a_directory) {
    return fail(Code::invalid_argument, "{} is not a directory", dir.native());
  }
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path name = entries->path().filename();
    if (means_nothing(name)) continue;
    return fail(Code::invalid_argument,
                "{} holds no store but other files ('{}' for one); choose an empty or a new directory", dir.native(),
                name.native());
  }
  if (error) return fail(error.value(), "read directory {}", dir.native());
  return {};
}

Result<void> check_creatable(const fs::path& dir, const StoreOptions& options) {
  KV_TRY(check_free(dir));
  if (!options.read_only && options.create) return {};
  std::error_code ignored;
  return fail(Code::invalid_argument, "no store in {}{}", dir.native(),
              fs::exists(dir, ignored) ? "" : ": there is no such directory");
}

Result<void> check_format(const Engine& engine, const Marker& marker, const fs::path& dir) {
  if (marker.engine != engine.name) {
    if (!marker.ready) {
      return fail(
          Code::invalid_argument,
          "{} is a store of engine {} whose creation was interrupted: nothing was ever in it; remove the directory "
          "to use it for {}",
          dir.native(), marker.engine, engine.name);
    }
    return fail(Code::invalid_argument,
                "{} holds a store of engine {}, not {}; open it with --store {}, or choose "
                "another directory",
                dir.native(), marker.engine, engine.name, marker.engine);
  }
  if (marker.format_version == engine.format_version) return {};
  const bool newer = marker.format_version > engine.format_version;
  return fail(Code::unsupported, "{} has format {} of store {}, and this kvingest reads format {}: use {} kvingest",
              dir.native(), marker.format_version, engine.name, engine.format_version, newer ? "a newer" : "the older");
}

Result<void> check_labels(const Marker& marker, const StoreOptions& options) {
  if (options.force_labels || !marker.ready) return {};
  for (const auto& [name, wanted] : options.labels) {
    const auto there = marker.labels.find(name);
    if (there == marker.labels.end() || there->second == wanted) continue;
    return fail(Code::invalid_argument,
                "the store in {} has the {} '{}', not '{}'; give the one it has, or --force-template to change it",
                options.dir.native(), name, there->second, wanted);
  }
  return {};
}

Result<void> check(const Engine& engine, const Marker& marker, const StoreOptions& options) {
  KV_TRY(check_format(engine, marker, options.dir));
  return check_labels(marker, options);
}

// Makes `dir` with its parents, durably.
Result<void> make_directory(const Posix& posix, const fs::path& dir) {
  std::vector<fs::path> made;
  for (fs::path at = fs::absolute(dir).lexically_normal(); !at.empty() && at != at.root_path(); at = at.parent_path()) {
    std::error_code ignored;
    if (fs::exists(at, ignored)) break;
    made.push_back(at);
  }
  for (; !made.empty(); made.pop_back()) {
    const fs::path& next = made.back();
    if (!next.has_filename()) continue;  // "a/b/" has an empty last part.
    if (::mkdir(next.c_str(), 0755) != 0 && errno != EEXIST) return fail(errno, "create directory {}", next.native());
    auto synced = sync_directory(posix, next.parent_path());
    if (!synced) ::rmdir(next.c_str());  // Or the next try would take it for durable.
    KV_TRY(synced);
  }
  return {};
}

Result<StoreLock> lock_directory(const Engine& engine, const StoreOptions& options, const Posix& posix) {
  if (!options.read_only) return StoreLock::for_writing(posix, options.dir);
  if (engine.shared_readers) return StoreLock();
  return StoreLock::for_reading(posix, options.dir);
}

}  // namespace

Result<StoreDirectory> StoreDirectory::open(const Engine& engine, const StoreOptions& options, const Posix& posix) {
  if (options.dir.empty()) return fail(Code::invalid_argument, "store {} needs a directory", engine.name);
  auto seen = find_marker(posix, options.dir);
  KV_TRY(seen);
  KV_TRY(*seen ? check(engine, **seen, options) : check_creatable(options.dir, options));
  if (!*seen) KV_TRY(make_directory(posix, options.dir));
  auto lock = lock_directory(engine, options, posix);
  KV_TRY(lock);

  // Once more under the lock: another process may have made or changed the store meanwhile.
  auto marker = find_marker(posix, options.dir);
  KV_TRY(marker);
  KV_TRY(*marker ? check(engine, **marker, options) : check_creatable(options.dir, options));
  if (!*marker) {
    *marker = Marker{std::string(engine.name), engine.format_version, now_rfc3339(), false, options.labels};
    KV_TRY(write_marker(posix, options.dir, **marker));
  }
  if (options.read_only && !(*marker)->ready) {
    return fail(Code::invalid_argument, "no store in {} yet: its creation was interrupted", options.dir.native());
  }
  StoreDirectory directory(posix, options.dir, std::move(*lock), std::move(**marker));
  directory.read_only_ = options.read_only;
  directory.wanted_ = directory.marker_;
  directory.wanted_.ready = true;
  for (const auto& [name, value] : options.labels) directory.replace_label(name, value);
  KV_TRY(encode_marker(directory.wanted_));  // Bad labels are found before anything is done.
  if (!options.read_only) KV_TRY(directory.lock_.write_pid());
  return directory;
}

void StoreDirectory::replace_label(const std::string& name, const std::string& value) {
  auto& labels = wanted_.labels;
  const auto there = labels.find(name);
  if (marker_.ready && there != labels.end() && there->second != value) {
    labels[name + std::string(kReplacedLabelSuffix)] = there->second;
  }
  labels[name] = value;
}

Result<void> StoreDirectory::mark_ready() {
  if (read_only_ || (marker_.ready && marker_.labels == wanted_.labels)) return {};
  KV_TRY(write_marker(*posix_, path_, wanted_));
  marker_ = wanted_;
  return {};
}

Result<void> StoreDirectory::prepare_copy(const fs::path& copy) const {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(copy, error).lexically_relative(fs::canonical(path_, error));
  if (error) return fail(error.value(), "resolve {}", copy.native());
  if (!inside.empty() && *inside.begin() != "..") {
    return fail(Code::invalid_argument, "{} is inside the store's own directory; choose another place for the copy",
                copy.native());
  }
  if (::rmdir(copy.c_str()) == 0 || errno == ENOENT) return {};
  if (errno == ENOTEMPTY || errno == ENOTDIR || errno == EEXIST) {
    return fail(Code::invalid_argument, "{} exists already; a copy goes into a new directory", copy.native());
  }
  return fail(errno, "remove the empty directory {}", copy.native());
}

Result<void> StoreDirectory::complete_copy(const fs::path& copy, const BatchMark& held) const {
  auto lock = StoreLock::for_writing(*posix_, copy);  // So that a reader of the copy finds a file to lock.
  KV_TRY(lock);
  KV_TRY(create_acked(*posix_, copy, Acked{held, held}));
  return write_marker(*posix_, copy, marker_);
}

}  // namespace kvingest
