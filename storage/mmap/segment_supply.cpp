#include "storage/mmap/segment_supply.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace kvingest::mmap_store {
namespace {

constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{64} << 10;  // On a full disk: still worth a file.

}  // namespace

void SegmentSupply::prepare(std::uint64_t number) {
  {
    const std::scoped_lock lock(mutex_);
    if (pending_ || prepared_) return;
    pending_ = true;
  }
  helper_.post([this, number] {
    auto made = Segment::create(home_, number, segment_bytes_);
    const std::scoped_lock lock(mutex_);
    pending_ = false;
    if (made) prepared_ = std::move(*made);
    made_.notify_one();
  });
}

std::unique_ptr<Segment> SegmentSupply::wait_for_prepared() {
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return !pending_; });
  return std::move(prepared_);
}

Result<std::unique_ptr<Segment>> SegmentSupply::take(std::uint64_t number, std::uint64_t frame_bytes) {
  const std::uint64_t bytes_min = kSegmentHeaderBytes + frame_bytes;
  std::unique_ptr<Segment> segment = wait_for_prepared();
  if (segment == nullptr) return create(number, bytes_min);
  KV_ASSERT(segment->number() == number);
  if (segment->capacity_bytes() >= bytes_min) return segment;
  if (auto grown = segment->grow(bytes_min); !grown) {
    remove(std::move(segment));
    return tl::unexpected<Error>(std::move(grown).error());
  }
  return segment;
}

Result<std::unique_ptr<Segment>> SegmentSupply::create(std::uint64_t number, std::uint64_t bytes_min) {
  std::uint64_t bytes = std::max(segment_bytes_, bytes_min);
  while (true) {
    auto made = Segment::create(home_, number, bytes);
    const std::uint64_t smaller = std::max({bytes / 2, bytes_min, kSegmentBytesMin});
    if (made || made.error().code != Code::no_space || smaller >= bytes) return made;
    bytes = smaller;
  }
}

void SegmentSupply::put_back(std::unique_ptr<Segment> segment) {
  const std::scoped_lock lock(mutex_);
  prepared_ = std::move(segment);
}

void SegmentSupply::discard() {
  if (auto segment = wait_for_prepared()) remove(std::move(segment));
}

void SegmentSupply::remove(std::unique_ptr<Segment> segment) const {
  // Should the file stay, the next opening finds an empty segment and uses it.
  home_.posix.unlink(segment->path().c_str());
}

}  // namespace kvingest::mmap_store
