#include "storage/lmdb/reader_pool.hpp"

#include <utility>

#include "storage/lmdb/lmdb_error.hpp"

namespace kvingest::lmdb {
namespace {

// Where this thread looks first, so that threads keep to slots of their own.
std::size_t home_of_this_thread() noexcept {
  static std::atomic<std::size_t> threads = 0;
  thread_local const std::size_t home = threads.fetch_add(1, std::memory_order_relaxed);
  return home;
}

}  // namespace

ReaderPool::Lease::~Lease() {
  if (slot_ == nullptr) return;
  mdb_txn_reset(slot_->txn);
  slot_->in_use.unlock();
}

int ReaderPool::Lease::cursor(MDB_dbi database, MDB_cursor*& to) const {
  MDB_cursor*& kept = database == pool_->databases_.meta ? slot_->meta : slot_->records;
  const int rc = kept != nullptr ? mdb_cursor_renew(slot_->txn, kept) : mdb_cursor_open(slot_->txn, database, &kept);
  to = kept;
  return rc;
}

ReaderPool::Pause::Pause(ReaderPool& pool) : pool_(pool) {
  pool_.gate_.lock();
  pool_.paused_.store(true, std::memory_order_relaxed);
  for (Slot& slot : pool_.slots_) slot.in_use.lock();
}

ReaderPool::Pause::~Pause() {
  for (Slot& slot : pool_.slots_) slot.in_use.unlock();
  pool_.paused_.store(false, std::memory_order_relaxed);
  pool_.gate_.unlock();
}

ReaderPool::Slot& ReaderPool::lock_slot() {
  if (paused_.load(std::memory_order_relaxed)) {
    const std::scoped_lock wait_for_its_end(gate_);
  }
  const std::size_t home = home_of_this_thread();
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(home + i) % kSlots];
    if (slot.in_use.try_lock()) return slot;
  }
  Slot& slot = slots_[home % kSlots];
  slot.in_use.lock();
  return slot;
}

int ReaderPool::begin(Slot& slot) {
  if (slot.txn != nullptr) return mdb_txn_renew(slot.txn);
  const int rc = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &slot.txn);
  if (rc != MDB_READERS_FULL) return rc;
  clear_stale();
  return mdb_txn_begin(env_, nullptr, MDB_RDONLY, &slot.txn);
}

Result<ReaderPool::Lease> ReaderPool::acquire() {
  constexpr int kTries = 8;  // Each is one growth of the map by a writer in another process, seen in mid-step.
  int rc = MDB_SUCCESS;
  for (int i = 0; i < kTries; ++i) {
    Slot& slot = lock_slot();
    if (env_ == nullptr) {
      slot.in_use.unlock();
      return fail(Code::invalid_argument, "lmdb: the store is closed");
    }
    rc = begin(slot);
    if (rc == MDB_SUCCESS) return Lease(*this, slot);
    slot.in_use.unlock();
    if (rc != MDB_MAP_RESIZED) break;
    follow_map();
  }
  return failure(rc, "lmdb: begin a read");
}

void ReaderPool::follow_map() {
  const Pause pause(*this);
  if (env_ != nullptr) mdb_env_set_mapsize(env_, 0);  // The size that the file's header names now.
}

void ReaderPool::attach(MDB_env* env, const Databases& databases) noexcept {
  env_ = env;
  databases_ = databases;
}

void ReaderPool::detach() noexcept {
  for (Slot& slot : slots_) {
    if (slot.records != nullptr) mdb_cursor_close(std::exchange(slot.records, nullptr));
    if (slot.meta != nullptr) mdb_cursor_close(std::exchange(slot.meta, nullptr));
    if (slot.txn != nullptr) mdb_txn_abort(std::exchange(slot.txn, nullptr));
  }
  env_ = nullptr;
}

void ReaderPool::clear_stale() noexcept {
  int cleared = 0;
  if (mdb_reader_check(env_, &cleared) == MDB_SUCCESS && cleared > 0)
    stale_cleared_.fetch_add(static_cast<std::uint64_t>(cleared), std::memory_order_relaxed);
}

}  // namespace kvingest::lmdb
