// segment.hpp -- one file of the log, mapped into the address space.
//
// Threads:  written by the store's writer; the atomics are read on any thread.
// Lifetime: owns its mapping; the address space outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/posix.hpp"
#include "kvingest/result.hpp"
#include "storage/mmap/address_space.hpp"
#include "storage/mmap/format.hpp"

namespace kvingest::mmap_store {

/// What all segments of a store have in common. Outlives them.
struct SegmentHome {
  const Posix& posix;
  std::filesystem::path dir;
  std::uint64_t store_id;
  AddressSpace& space;
  bool write_through_map;  ///< Frames are copied into the mapping instead of written to the file.
};

class Segment {
 public:
  /// Makes file `number` of `capacity_bytes`: allocated, its header on disk, renamed into place and the directory
  /// synced before it may be used. Leaves nothing behind when it fails. Fails with: no_space, io_error.
  static Result<std::unique_ptr<Segment>> create(const SegmentHome& home, std::uint64_t number,
                                                 std::uint64_t capacity_bytes);
  /// Maps the existing file whose sound header has been read, with addresses for `room_bytes` at least, so that
  /// refill() may follow. Fails with: io_error, no_space.
  static Result<std::unique_ptr<Segment>> open(const SegmentHome& home, File file, const SegmentHeader& header,
                                               std::uint64_t room_bytes);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return header_.number; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return header_.seed; }
  /// Where its first byte is.
  [[nodiscard]] Place base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept {
    return capacity_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t free_bytes() const noexcept { return capacity_bytes() - end(); }

  /// Offset behind its last frame. What lies before it does not change any more.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_.load(std::memory_order_acquire); }
  void set_end(std::uint64_t offset) noexcept { end_.store(offset, std::memory_order_release); }
  /// What it holds, for compaction and stats. accounts.hpp counts; bytes are those of RecordPlace::about_bytes().
  struct Usage {
    std::atomic<std::uint64_t> records{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> dead_records{0};  ///< Overwritten or erased, and nobody reads them any more.
    std::atomic<std::uint64_t> dead_bytes{0};
    std::atomic<std::uint64_t> erasure_bytes{0};  ///< Of operations that erase.

    /// For opening: it holds so much, and nothing of it lives but what alive() is then told of.
    void all_dead(std::uint64_t all_records, std::uint64_t all_bytes, std::uint64_t all_erasure_bytes) noexcept {
      records = dead_records = all_records;
      bytes = dead_bytes = all_bytes;
      erasure_bytes = all_erasure_bytes;
    }
    void alive(std::uint64_t alive_records, std::uint64_t alive_bytes) noexcept {
      dead_records.fetch_sub(alive_records, std::memory_order_relaxed);
      dead_bytes.fetch_sub(alive_bytes, std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t live_bytes() const noexcept {
      const std::uint64_t all = bytes.load(std::memory_order_relaxed);
      const std::uint64_t dead = dead_bytes.load(std::memory_order_relaxed);
      const bool none = dead_records.load(std::memory_order_relaxed) >= records.load(std::memory_order_relaxed);
      return none || dead >= all ? 0 : all - dead;
    }
  };
  [[nodiscard]] Usage& usage() noexcept { return usage_; }

  /// Numbers of the last frame and the last batch in front of its first frame.
  [[nodiscard]] std::uint64_t frames_before() const noexcept { return frames_before_; }
  [[nodiscard]] std::uint64_t batches_before() const noexcept { return batches_before_; }
  /// Only before others see the segment.
  void set_before(std::uint64_t frames, std::uint64_t batches) noexcept {
    frames_before_ = frames;
    batches_before_ = batches;
  }
  /// Number of its last frame; 0 while it has none.
  [[nodiscard]] std::uint64_t last_frame() const noexcept { return last_frame_.load(std::memory_order_relaxed); }
  /// The batch that frame says and its checksum. For who has the store's turn, as setting them.
  [[nodiscard]] std::uint64_t last_batch() const noexcept { return last_batch_; }
  [[nodiscard]] std::uint64_t last_commit() const noexcept { return last_commit_; }
  void set_last_frame(std::uint64_t number, std::uint64_t batch, std::uint64_t commit) noexcept {
    last_frame_.store(number, std::memory_order_relaxed);
    last_batch_ = batch;
    last_commit_ = commit;
  }

  /// The offset of the first frame before end() that is not sound, or end(). Reads all of them, through the mapping.
  [[nodiscard]] std::uint64_t sound_until() const noexcept;
  /// Frames that opening has not read, because a checkpoint says what is in them, are checked before one of their
  /// records is first read, all at once. False: one is not sound, at damaged_at(). On any thread.
  [[nodiscard]] bool is_sound() noexcept { return check_.load(std::memory_order_acquire) == Check::sound || check(); }
  [[nodiscard]] std::uint64_t damaged_at() const noexcept { return damaged_at_.load(std::memory_order_relaxed); }
  /// Only before others see the segment.
  void set_unchecked() noexcept { check_ = Check::unknown; }
  void set_checked() noexcept { check_ = Check::sound; }

  /// Open while the segment takes frames; a full one keeps no descriptor.
  [[nodiscard]] File& file() noexcept { return file_; }
  /// Puts a full segment's frames on disk, and gives back what it has allocated and not used. Fails with: io_error.
  Result<void> sync_and_close();

  /// Allocates and maps more, for one frame that is larger than an ordinary segment; only while it holds no frame.
  /// Fails with: no_space, io_error; the segment is then as it was.
  Result<void> grow(std::uint64_t capacity_bytes);
  /// Cuts the file behind the last frame. Fails with: io_error.
  Result<void> trim();
  /// Allocates what trim() cut, for more frames. Fails with: no_space, io_error; the segment is then as it was.
  Result<void> refill();

 private:
  Segment(const SegmentHome& home, const SegmentHeader& header, std::filesystem::path path, File file,
          std::uint64_t capacity_bytes);
  Result<void> map(std::uint64_t bytes);
  bool check() noexcept;

  enum class Check : std::uint8_t { sound, unknown, damaged };

  const SegmentHome& home_;
  SegmentHeader header_;
  std::filesystem::path path_;
  File file_;
  Place base_ = 0;
  std::atomic<std::uint64_t> capacity_bytes_;
  std::uint64_t mapped_bytes_ = 0;
  std::uint64_t frames_before_ = 0;
  std::uint64_t batches_before_ = 0;
  std::atomic<std::uint64_t> end_{kSegmentHeaderBytes};
  std::atomic<std::uint64_t> last_frame_{0};
  std::uint64_t last_batch_ = 0;  // Guarded by the store's turn, as the next.
  std::uint64_t last_commit_ = 0;
  std::atomic<Check> check_{Check::sound};
  std::atomic<std::uint64_t> damaged_at_{0};
  std::mutex check_mutex_;  // Of who checks, so that it is done once.
  Usage usage_;
};

/// Reads and checks the header of `file`. Fails with: corrupt (naming the file), io_error.
Result<SegmentHeader> read_segment_header(const File& file);

}  // namespace kvingest::mmap_store
