// latch.hpp -- a shared latch that a waiting writer closes to new readers, so that readers cannot starve it; on unlock
// the readers that wait go first, so that a busy writer cannot starve them either. (std::shared_mutex lets readers
// pass a waiting writer for ever.)
//
// Threads: any. Not recursive: a thread that holds it, shared or not, must not take it again.
#pragma once

#include <pthread.h>

#include "base/check.hpp"

namespace kvingest {

/// Works with std::unique_lock and std::shared_lock.
class Latch {
 public:
  Latch() noexcept {
    pthread_rwlockattr_t attributes;
    KV_ASSERT(pthread_rwlockattr_init(&attributes) == 0);
    KV_ASSERT(pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0);
    KV_ASSERT(pthread_rwlock_init(&lock_, &attributes) == 0);
    pthread_rwlockattr_destroy(&attributes);
  }
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  ~Latch() { pthread_rwlock_destroy(&lock_); }

  void lock() noexcept { KV_ASSERT(pthread_rwlock_wrlock(&lock_) == 0); }
  void unlock() noexcept { KV_ASSERT(pthread_rwlock_unlock(&lock_) == 0); }
  void lock_shared() noexcept { KV_ASSERT(pthread_rwlock_rdlock(&lock_) == 0); }
  void unlock_shared() noexcept { KV_ASSERT(pthread_rwlock_unlock(&lock_) == 0); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace kvingest
