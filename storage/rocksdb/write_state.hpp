// write_state.hpp -- what RocksDB's background threads say about writing: slowed down, stopped, out of space.
//
// Threads:  the callbacks come on RocksDB's threads and on the writer's; the rest may be called on any thread.
// Lifetime: shared by the store and the database, which keeps its listeners until its last thread has ended.
#pragma once

#include <rocksdb/listener.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kvingest::rocks {

class WriteState final : public rocksdb::EventListener {
 public:
  struct Counters {
    std::uint64_t slowdowns = 0;   ///< Times that writes began to be slowed down.
    std::uint64_t stops = 0;       ///< Times that writes were stopped.
    std::uint64_t errors = 0;      ///< Of background work.
    std::uint64_t recoveries = 0;  ///< Errors that RocksDB recovered from by itself.
  };

  const char* Name() const override { return "kvingest"; }
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override;

  /// Forgets the state of a database that was closed; counters go on.
  void reset();
  /// Waits until writes are not stopped any more; false when they still are after `bound`.
  bool wait_while_stopped(std::chrono::milliseconds bound);
  /// Whether a background error for want of space stands.
  [[nodiscard]] bool out_of_space() const;
  [[nodiscard]] Counters counters() const;

 private:
  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  bool stopped_ = false;
  bool out_of_space_ = false;
  Counters counters_;
};

}  // namespace kvingest::rocks
