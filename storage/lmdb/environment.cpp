#include "storage/lmdb/environment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <utility>

#include "base/quantity.hpp"
#include "storage/lmdb/lmdb_error.hpp"

namespace kvingest::lmdb {
namespace {

constexpr MDB_dbi kNamedDatabases = 2;
// Gives a table of about 1,000 readers: the file's size decides, at 64 bytes each.
constexpr std::uint64_t kLockFileBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kHeadRoomBytesMin = std::uint64_t{64} << 20;
constexpr mode_t kFileMode = 0644;
constexpr int kCheckTries = 100;  // A check starts anew when two commits come between its first two steps.

// The directories that are open in this process, by device and inode.
std::mutex open_mutex;
std::set<std::pair<std::uint64_t, std::uint64_t>>& open_directories() {
  static std::set<std::pair<std::uint64_t, std::uint64_t>> instance;  // Guarded by open_mutex.
  return instance;
}

// Whether the process has so much address space left: RLIMIT_AS and containers bound it.
bool can_map(std::uint64_t bytes) noexcept {
  void* const at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  munmap(at, bytes);
  return true;
}

std::uint64_t memory_bytes() noexcept {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Environment::Environment(Settings settings)
    : settings_(std::move(settings)), data_path_(settings_.dir / "data.mdb"), lock_path_(settings_.dir / "lock.mdb") {}

Environment::~Environment() {
  if (env_ != nullptr) {
    const ReaderPool::Pause pause(readers_);
    close_env();
  }
  if (!claimed_) return;
  const std::scoped_lock lock(open_mutex);
  open_directories().erase({claim_device_, claim_inode_});
}

Result<std::unique_ptr<Environment>> Environment::open(Settings settings) {
  std::unique_ptr<Environment> made(new Environment(std::move(settings)));
  KV_TRY(made->claim());
  KV_TRY(made->prepare_files());
  KV_TRY(made->open_env());
  made->readers_.clear_stale();
  return made;
}

Result<void> Environment::claim() {
  auto directory = File::open(*settings_.posix, settings_.dir, O_RDONLY | O_DIRECTORY);
  KV_TRY(directory);
  struct stat info {};
  if (settings_.posix->fstat(directory->fd(), &info) != 0) return fail(errno, "fstat {}", settings_.dir.native());
  claim_device_ = info.st_dev;
  claim_inode_ = info.st_ino;
  const std::scoped_lock lock(open_mutex);
  claimed_ = open_directories().insert({claim_device_, claim_inode_}).second;
  if (claimed_) return {};
  return fail(Code::locked, "lmdb: {} is open in this process already; use the store that is open",
              settings_.dir.native());
}

// Checks what LMDB would take for a new store, and gives the lock file real blocks: LMDB writes it through a mapping,
// where a full disk is a SIGBUS.
Result<void> Environment::prepare_files() {
  if (settings_.fresh && !settings_.read_only) {
    // What an interrupted creation left has never held anything.
    for (const auto& path : {data_path_, lock_path_}) settings_.posix->unlink(path.c_str());
  }
  auto data = File::open(*settings_.posix, data_path_, O_RDONLY);
  const bool missing = !data && data.error().sys_errno == ENOENT;
  if (!data && !missing) return tl::unexpected<Error>(std::move(data).error());
  if (data) {
    auto size = data->size();
    KV_TRY(size);
    file_bytes_ = *size;
    if (file_bytes_ > 0) KV_TRY(check_headers(*data));
  }
  if (file_bytes_ == 0 && (!settings_.fresh || settings_.read_only)) {
    return fail(Code::corrupt, "{}: {}", data_path_.native(), missing ? "missing" : "empty");
  }
  choose_map_size();
  if (settings_.read_only || access(lock_path_.c_str(), F_OK) == 0) return {};
  // Under its own name only when complete: another process may come to open it at any moment.
  std::filesystem::path next = lock_path_;
  next += ".new";
  auto lock = File::open(*settings_.posix, next, O_RDWR | O_CREAT | O_TRUNC, kFileMode);
  KV_TRY(lock);
  KV_TRY(lock->write_at(std::string(kLockFileBytes, '\0'), 0));
  if (settings_.posix->rename(next.c_str(), lock_path_.c_str()) != 0) return fail(errno, "rename {}", next.native());
  return {};
}

void Environment::choose_map_size() {
  if (settings_.read_only) return;  // Then the file's header says it.
  const std::uint64_t least = round_up(file_bytes_ + kMapBytesMin, kMapBytesMin);
  map_bytes_ = std::max(settings_.map_bytes, least);
  while (map_bytes_ / 2 >= least && !can_map(map_bytes_)) map_bytes_ = round_up(map_bytes_ / 2, kMapBytesMin);
  if (map_bytes_ >= settings_.map_bytes) return;
  settings_.notice(fmt::format("lmdb: a map of {} does not fit into the address space of this process; it begins at {}",
                               format_size(settings_.map_bytes), format_size(map_bytes_)));
}

Result<void> Environment::open_env() {
  if (const int rc = mdb_env_create(&env_)) return failure(rc, "lmdb: create an environment");
  int rc = mdb_env_set_maxdbs(env_, kNamedDatabases);
  if (rc == MDB_SUCCESS && map_bytes_ != 0) rc = mdb_env_set_mapsize(env_, map_bytes_);
  if (rc != MDB_SUCCESS) return failure(rc, "lmdb: set up an environment");
  unsigned flags = MDB_NOTLS;  // A read transaction belongs to its slot, not to the thread that began it.
  if (settings_.read_only) flags |= MDB_RDONLY;
  const bool larger_than_memory = file_bytes_ > memory_bytes();
  if (settings_.readahead == Readahead::off || (settings_.readahead == Readahead::automatic && larger_than_memory))
    flags |= MDB_NORDAHEAD;
  rc = mdb_env_open(env_, settings_.dir.c_str(), flags, kFileMode);
  if (rc == EACCES && settings_.read_only) {
    return fail(rc, "open {}: readers register in {}, which this user may not write", settings_.dir.native(),
                lock_path_.native());
  }
  if (rc != MDB_SUCCESS) return failure(rc, "open {}", data_path_.native());
  map_bytes_ = usage().map_bytes;
  auto witness = File::open(*settings_.posix, data_path_, settings_.read_only ? O_RDONLY : O_RDWR);
  KV_TRY(witness);
  witness_ = std::move(*witness);
  KV_TRY(check_before_use());
  return open_databases();
}

// LMDB asserts or reads wildly where a page is not what it takes it for; behind the end of the file it meets SIGBUS.
Result<void> Environment::check_before_use() {
  auto size = witness_.size();
  KV_TRY(size);
  // Free pages at the end may never have been written. Then only a look at all of them tells that from a cut.
  const CheckDepth depth = *size < usage().used_bytes ? CheckDepth::all : CheckDepth::roots;
  Result<PageReport> report;
  for (int i = 0; i < kCheckTries; ++i) {
    MDB_txn* txn = nullptr;  // Not of the pool, where readers may be kept out.
    if (const int rc = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn))
      return failure(rc, "open {}", data_path_.native());
    report = check_pages(witness_, usage().page_bytes, mdb_txn_id(txn), depth);
    mdb_txn_abort(txn);
    if (report || report.error().code != Code::busy) break;
  }
  KV_TRY(report);
  return {};
}

Result<PageReport> Environment::check() {
  Result<PageReport> report;
  for (int i = 0; i < kCheckTries; ++i) {
    auto reader = readers_.acquire();
    KV_TRY(reader);
    report = check_pages(witness_, usage().page_bytes, mdb_txn_id(reader->txn()), CheckDepth::all);
    if (report || report.error().code != Code::busy) break;
  }
  return report;
}

Result<void> Environment::open_databases() {
  MDB_txn* txn = nullptr;
  int rc = mdb_txn_begin(env_, nullptr, settings_.read_only ? MDB_RDONLY : 0, &txn);
  if (rc != MDB_SUCCESS) return failure(rc, "open {}", data_path_.native());
  const unsigned flags = settings_.fresh && !settings_.read_only ? MDB_CREATE : 0;
  rc = mdb_dbi_open(txn, nullptr, 0, &databases_.unnamed);
  if (rc == MDB_SUCCESS) rc = mdb_dbi_open(txn, "records", flags, &databases_.records);
  if (rc == MDB_SUCCESS) rc = mdb_dbi_open(txn, "meta", flags, &databases_.meta);
  if (rc != MDB_SUCCESS) {
    mdb_txn_abort(txn);
    return failure(rc, "open the databases of {}", data_path_.native());
  }
  rc = mdb_txn_commit(txn);  // Keeps the handles, also of a read transaction.
  if (rc != MDB_SUCCESS) return failure(rc, "create the databases of {}", data_path_.native());
  readers_.attach(env_, databases_);
  return {};
}

void Environment::close_env() noexcept {
  readers_.detach();
  mdb_env_close(std::exchange(env_, nullptr));
  witness_.reset();
  lock_file_.reset();
}

Usage Environment::usage() const noexcept {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(env_, &info);
  mdb_env_stat(env_, &stat);
  return {stat.ms_psize, info.me_mapsize, (info.me_last_pgno + 1) * stat.ms_psize, info.me_last_txnid};
}

Result<void> Environment::set_map_size(std::uint64_t bytes) {
  // LMDB unmaps before it maps and cannot go back: ask for the address space first.
  if (!can_map(bytes)) {
    return fail(Code::no_space, "lmdb: the map of {} is full at {} and cannot grow to {}: {}", data_path_.native(),
                format_size(map_bytes_), format_size(bytes), "no address space is left");
  }
  const ReaderPool::Pause pause(readers_);
  if (const int rc = mdb_env_set_mapsize(env_, bytes)) {
    readers_.detach();
    return fail(Code::failed, "lmdb: the map of {} is lost: {}; open the store again", data_path_.native(),
                mdb_strerror(rc));
  }
  map_bytes_ = usage().map_bytes;
  return {};
}

Result<void> Environment::grow(std::uint64_t batch_bytes, bool only_erases) {
  readers_.clear_stale();  // A dead reader keeps pages from being used again.
  const std::uint64_t head_room = std::max(kHeadRoomBytesMin, settings_.map_bytes_max / 20);
  const std::uint64_t limit = only_erases ? settings_.map_bytes_max + head_room : settings_.map_bytes_max;
  if (map_bytes_ >= limit) {
    return fail(Code::no_space, "lmdb: the map of {} is full at {}; erase records or open with a larger map_max",
                data_path_.native(), format_size(map_bytes_));
  }
  // A batch may copy many pages for few bytes; if this is too little, it comes back.
  const std::uint64_t wanted = std::max(2 * map_bytes_, map_bytes_ + 4 * batch_bytes);
  KV_TRY(set_map_size(std::min(round_up(wanted, kMapBytesMin), limit)));
  ++grown_;
  return {};
}

Result<void> Environment::shrink_to_limit() {
  if (map_bytes_ <= settings_.map_bytes_max) return {};
  const std::uint64_t least = std::max(settings_.map_bytes_max, round_up(usage().used_bytes, usage().page_bytes));
  return least < map_bytes_ ? set_map_size(least) : Result<void>{};
}

Result<void> Environment::sync() {
  const int rc = mdb_env_sync(env_, 1);
  if (rc == MDB_SUCCESS) return {};
  Error error = to_error(rc, fmt::format("sync {}", data_path_.native()));
  error.code = Code::io_error;
  return tl::unexpected<Error>(std::move(error));
}

bool Environment::writeback_failed() const {
  return !witness_.sync_data();
}

bool Environment::file_system_full(std::uint64_t bytes) const {
  auto size = witness_.size();
  if (!size) return false;
  // One page may still find room where a batch was cut short, so as much as that is asked for, and given back.
  auto taken = witness_.allocate(*size, bytes);
  const auto given_back = witness_.truncate(*size);
  const bool refused = !taken && taken.error().code == Code::no_space;
  if (taken || refused) return refused && given_back.has_value();
  taken = witness_.write_at(std::string(usage().page_bytes, '\0'), *size);  // It cannot allocate.
  return !taken && taken.error().code == Code::no_space;
}

// LMDB's own protocol: who has the environment open holds a read lock on the first byte of the lock file, and who
// gets a write lock on it is alone. Ours is held over the exchange until LMDB, in this process, has made it a read lock
// again: whoever comes in between waits, and finds the table of readers made for the new file.
Result<void> Environment::replace_data(const std::filesystem::path& compacted) {
  const ReaderPool::Pause pause(readers_);
  close_env();
  auto exchanged = exchange_alone(compacted);
  KV_TRY(open_env());
  KV_TRY(exchanged);
  return sync_directory(*settings_.posix, settings_.dir);
}

Result<void> Environment::exchange_alone(const std::filesystem::path& compacted) {
  const Posix& posix = *settings_.posix;
  auto lock = File::open(posix, lock_path_, O_RDWR);
  KV_TRY(lock);
  struct flock request {};
  request.l_type = F_WRLCK;
  request.l_whence = SEEK_SET;
  request.l_len = 1;
  if (fcntl(lock->fd(), F_SETLK, &request) != 0) {
    fcntl(lock->fd(), F_GETLK, &request);
    return fail(Code::busy, "compact {}: process {} has it open; end it and try again", data_path_.native(),
                request.l_pid);
  }
  if (posix.rename(compacted.c_str(), data_path_.c_str()) != 0)
    return fail(errno, "rename {} to {}", compacted.native(), data_path_.native());
  lock_file_ = std::move(*lock);
  return {};
}

}  // namespace kvingest::lmdb
