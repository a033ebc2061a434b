// reader_pool.hpp -- read transactions that are kept and used again, so that a read allocates nothing.
//
// Each slot owns one read transaction, and with it one place in the environment's table of readers. A slot's mutex is
// held for the length of one read. All of them together are the lock that keeps readers out while the map moves or the
// environment is exchanged: a reader pays for its own slot only.
//
// Threads:  acquire() on any thread; Pause, attach() and detach() on the writer's.
// Lifetime: a Lease ends before the pool and is ended by the thread that got it.
#pragma once

#include <lmdb.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "kvingest/result.hpp"

namespace kvingest::lmdb {

/// The databases of a store. `unnamed` is LMDB's own root database: besides the names of the others it holds what the
/// store keeps about itself, where no key of a user can collide with it.
struct Databases {
  MDB_dbi unnamed = 0;
  MDB_dbi records = 0;
  MDB_dbi meta = 0;
};

class ReaderPool {
 private:
  struct alignas(64) Slot {
    std::mutex in_use;
    MDB_txn* txn = nullptr;         // Guarded by in_use, like the rest.
    MDB_cursor* records = nullptr;  // Bound to txn; renewed with it.
    MDB_cursor* meta = nullptr;
  };

 public:
  /// A running read transaction. Ends with its destructor; views into the map die then.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : pool_(other.pool_), slot_(std::exchange(other.slot_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    [[nodiscard]] MDB_txn* txn() const noexcept { return slot_->txn; }
    /// A cursor on `database`, one of records and meta, that is nowhere yet. Returns an LMDB code.
    int cursor(MDB_dbi database, MDB_cursor*& to) const;

   private:
    friend class ReaderPool;
    Lease(ReaderPool& pool, Slot& slot) noexcept : pool_(&pool), slot_(&slot) {}
    ReaderPool* pool_;
    Slot* slot_;
  };

  /// Keeps readers out, after waiting for those that are in.
  class Pause {
   public:
    explicit Pause(ReaderPool& pool);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    ReaderPool& pool_;
  };

  ReaderPool() = default;
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  /// Begins a read. Waits for a slot where all are taken.
  /// Fails with: invalid_argument (closed), busy (no place in the table of readers), failed, io_error.
  Result<Lease> acquire();

  /// Lets readers use `env`. Under a Pause, or before the first reader.
  void attach(MDB_env* env, const Databases& databases) noexcept;
  /// Gives back every transaction. Under a Pause; acquire() fails until the next attach().
  void detach() noexcept;

  /// Frees the places of processes that died while reading, whose snapshots keep pages from being used again.
  void clear_stale() noexcept;

  [[nodiscard]] std::uint64_t stale_cleared() const noexcept { return stale_cleared_.load(std::memory_order_relaxed); }

 private:
  // More threads than this wait for each other. At most 63: ThreadSanitizer follows 64 locks of one thread.
  static constexpr std::size_t kSlots = 32;

  Slot& lock_slot();
  int begin(Slot& slot);
  void follow_map();

  std::array<Slot, kSlots> slots_;
  std::mutex gate_;  // Held by a Pause: else readers in a hurry could keep it from the slots for long.
  std::atomic<bool> paused_ = false;
  MDB_env* env_ = nullptr;  // Changes under a Pause only.
  Databases databases_;
  std::atomic<std::uint64_t> stale_cleared_ = 0;
};

}  // namespace kvingest::lmdb
