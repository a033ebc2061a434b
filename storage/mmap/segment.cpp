#include "storage/mmap/segment.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "storage/mmap/bus_guard.hpp"

namespace kvingest::mmap_store {
namespace {

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// Removes a file that could not be finished; whether that succeeds changes nothing for the caller.
class Unfinished {
 public:
  Unfinished(const Posix& posix, std::filesystem::path path) : posix_(posix), path_(std::move(path)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!path_.empty()) posix_.unlink(path_.c_str());
  }
  void now_called(std::filesystem::path path) { path_ = std::move(path); }
  void finished() { path_.clear(); }

 private:
  const Posix& posix_;
  std::filesystem::path path_;
};

}  // namespace

Segment::Segment(const SegmentHome& home, const SegmentHeader& header, std::filesystem::path path, File file,
                 std::uint64_t capacity_bytes)
    : home_(home), header_(header), path_(std::move(path)), file_(std::move(file)), capacity_bytes_(capacity_bytes) {}

Segment::~Segment() {
  if (mapped_bytes_ > 0) home_.space.unmap(base_, mapped_bytes_);
}

Result<void> Segment::map(std::uint64_t bytes) {
  auto base = home_.space.map(file_, bytes, home_.write_through_map, *this);
  KV_TRY(base);
  base_ = *base;
  mapped_bytes_ = bytes;
  return {};
}

Result<std::unique_ptr<Segment>> Segment::create(const SegmentHome& home, std::uint64_t number,
                                                 std::uint64_t capacity_bytes) {
  const std::filesystem::path path = home.dir / segment_name(number);
  std::filesystem::path unfinished_path = path;
  unfinished_path += ".tmp";
  auto file = File::open(home.posix, unfinished_path, O_RDWR | O_CREAT | O_TRUNC);
  KV_TRY(file);
  Unfinished unfinished(home.posix, unfinished_path);
  // Real blocks before anything is mapped: a full disk is an error here and never a SIGBUS later.
  KV_TRY(file->allocate(0, capacity_bytes));
  const SegmentHeader header{.number = number, .seed = random_number(), .store_id = home.store_id};
  char bytes[kSegmentHeaderBytes];
  encode(header, bytes);
  KV_TRY(file->write_at(std::string_view(bytes, sizeof bytes), 0));
  KV_TRY(file->sync_data());
  if (home.posix.rename(unfinished_path.c_str(), path.c_str()) != 0) return fail(errno, "rename to {}", path.native());
  unfinished.now_called(path);
  KV_TRY(sync_directory(home.posix, home.dir));
  std::unique_ptr<Segment> segment(new Segment(home, header, path, std::move(*file), capacity_bytes));
  KV_TRY(segment->map(capacity_bytes));
  unfinished.finished();
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::open(const SegmentHome& home, File file, const SegmentHeader& header,
                                               std::uint64_t room_bytes) {
  auto size = file.size();
  KV_TRY(size);
  const std::filesystem::path path = file.path();
  std::unique_ptr<Segment> segment(new Segment(home, header, path, std::move(file), *size));
  KV_TRY(segment->map(std::max(*size, room_bytes)));
  return segment;
}

std::uint64_t Segment::sound_until() const noexcept {
  const char* const base = home_.space.at(base_);
  const std::uint64_t end = this->end();
  std::uint64_t number = frames_before_;
  std::uint64_t offset = kSegmentHeaderBytes;
  static_cast<void>(guarded_from_bus_errors([&] {  // Cut short, it stays where it is: that is not sound.
    while (offset < end) {
      if (end - offset < kFrameHeaderBytes) return;
      const auto header = decode_frame_header(base + offset, header_.seed);
      const bool sound = header && header->number == ++number && frame_bytes(header->payload_bytes) <= end - offset &&
                         frame_is_sound(base + offset, header->payload_bytes, header_.seed);
      if (!sound) return;
      offset += frame_bytes(header->payload_bytes);
    }
  }));
  return offset;
}

bool Segment::check() noexcept {
  const std::scoped_lock lock(check_mutex_);
  if (check_.load(std::memory_order_relaxed) == Check::unknown) {
    const std::uint64_t end = this->end();
    const std::uint64_t until = sound_until();
    damaged_at_.store(until, std::memory_order_relaxed);
    check_.store(until >= end ? Check::sound : Check::damaged, std::memory_order_release);
  }
  return check_.load(std::memory_order_relaxed) == Check::sound;
}

Result<void> Segment::sync_and_close() {
  if (!file_.is_open()) {
    auto file = File::open(home_.posix, path_, O_RDWR);
    KV_TRY(file);
    file_ = std::move(*file);
  }
  if (free_bytes() > 0) static_cast<void>(trim());  // Where that fails, it takes more space than it needs.
  KV_TRY(file_.sync_data());
  file_.reset();
  return {};
}

Result<void> Segment::grow(std::uint64_t capacity_bytes) {
  if (auto done = file_.allocate(0, capacity_bytes); !done) {
    // A failed allocation may leave the file longer than it was; what cannot be cut is zeros, and harmless.
    static_cast<void>(file_.truncate(capacity_bytes_));
    return done;
  }
  home_.space.unmap(base_, std::exchange(mapped_bytes_, 0));
  capacity_bytes_ = capacity_bytes;
  return map(capacity_bytes);
}

Result<void> Segment::trim() {
  KV_TRY(file_.truncate(end()));
  capacity_bytes_ = end();
  return {};
}

Result<void> Segment::refill() {
  if (capacity_bytes_ >= mapped_bytes_) return {};
  if (auto done = file_.allocate(0, mapped_bytes_); !done) {
    static_cast<void>(file_.truncate(capacity_bytes_));
    return done;
  }
  capacity_bytes_ = mapped_bytes_;
  return {};
}

Result<SegmentHeader> read_segment_header(const File& file) {
  auto size = file.size();
  KV_TRY(size);
  if (*size < kSegmentHeaderBytes) {
    return fail(Code::corrupt, "{}: {} bytes, too short for a segment", file.path().native(), *size);
  }
  char bytes[kSegmentHeaderBytes];
  KV_TRY(file.read_at(bytes, sizeof bytes, 0));
  const auto header = decode_segment_header(bytes);
  if (!header) return fail(Code::corrupt, "{}: no sound segment header at offset 0", file.path().native());
  if (file.path().filename() != segment_name(header->number)) {
    return fail(Code::corrupt, "{}: its header says segment {}", file.path().native(), header->number);
  }
  return *header;
}

}  // namespace kvingest::mmap_store
