// segment.hpp -- one file of the log, mapped into the address space.
//
// Threads:  written by the store's writer; the atomics are read on any thread.
// Lifetime: owns its mapping; the address space outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

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
  void set_last_frame(std::uint64_t number) noexcept { last_frame_.store(number, std::memory_order_relaxed); }

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
  Usage usage_;
};

/// Reads and checks the header of `file`. Fails with: corrupt (naming the file), io_error.
Result<SegmentHeader> read_segment_header(const File& file);

}  // namespace kvingest::mmap_store
