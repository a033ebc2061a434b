// checkpointer.hpp -- decides when a checkpoint of the index is written (checkpoint_writer.hpp): in the background when
// the log has grown by `checkpoint=` bytes since the last one, or by twice that file's size if that is more, so that
// checkpoints of a large index do not take the disk from the log; and when the store is closed, if much is behind it.
//
// Threads:  `kv-mmap-index` writes in the background. look() is the writer's, stop() and write_at_close() are of
// whoever
//           closes; the counts on any thread.
// Lifetime: what the constructor gets outlives stop().
// Errors:   counted. A checkpoint makes opening faster and nothing else; the next is tried when the log has grown
// again.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/mmap/background.hpp"
#include "storage/mmap/checkpoint_writer.hpp"
#include "storage/mmap/log.hpp"

namespace kvingest::mmap_store {

class Checkpointer {
 public:
  Checkpointer(CheckpointWriter writer, const Log& log, std::uint64_t bytes_between)
      : writer_(std::move(writer)), log_(log), bytes_between_(bytes_between), next_at_(bytes_between) {}

  /// Has a checkpoint written in the background if it is time.
  void look() {
    if (log_.bytes_behind_checkpoint() < next_at_.load(std::memory_order_relaxed)) return;
    if (!busy_.exchange(true)) worker_.post([this] { write_in_background(); });
  }
  /// Gives up the one that is being written.
  void stop();
  /// When the log is closed, and nobody changes the index any more.
  void write_at_close();

  [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }
  /// Bytes of the log that the last one does not have.
  [[nodiscard]] std::uint64_t behind_bytes() const noexcept { return log_.bytes_behind_checkpoint() - covered_; }
  /// Of the last one.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kFileSizesBetween = 2;
  // At close it is worth it when so much less than between two others has to be read again.
  static constexpr std::uint64_t kCloseShare = 16;

  void write_in_background();
  void write();

  CheckpointWriter writer_;
  const Log& log_;
  const std::uint64_t bytes_between_;
  std::atomic<std::uint64_t> covered_{0};  // Of Log::bytes_behind_checkpoint(), what the last checkpoint has.
  std::atomic<std::uint64_t> next_at_;     // At which count of that the next one is due.
  std::atomic<bool> busy_{false};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<std::uint64_t> file_bytes_{0};
  Background worker_{"kv-mmap-index"};
};

}  // namespace kvingest::mmap_store
