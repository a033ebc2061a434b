#include "storage/file/slot_writer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace kvingest::slots {
namespace {

// Slots that may wait before the store syncs by itself, where fewer are live.
constexpr std::uint64_t kWaitingSlotsMin = 1024;
// What is kept between batches: room for a large group of ordinary records.
constexpr std::size_t kBufferBytesKept = std::size_t{1} << 20;
constexpr std::size_t kPlacesKept = std::size_t{1} << 20;
// Holes are made of whole pages.
constexpr std::uint64_t kPageBytes = 4096;

Result<std::uint64_t> count_operations(const WriteBatch& batch) {
  BatchReader reader(batch.bytes());
  BatchEntry entry;
  std::uint64_t count = 0;
  while (true) {
    const auto more = reader.next(entry);
    KV_TRY(more);
    if (!*more) return count;
    count += entry.count;
  }
}

}  // namespace

SlotWriter::SlotWriter(const SlotFile& file, Recovered& recovered)
    : file_(file),
      header_(recovered.header),
      header_copy_(recovered.header_copy),
      committed_(recovered.last_batch),
      space_(recovered.free, recovered.end),
      residue_(std::move(recovered.residue)),
      settled_(residue_.empty() && committed_ == header_.committed) {
  for (const Place& place : recovered.dead_synced) release(place, header_.synced);
  for (const Place& place : recovered.dead_unsynced) release(place, committed_);
}

Result<std::span<const Place>> SlotWriter::commit(const WriteBatch& batch) {
  KV_ASSERT(settled_);
  const std::uint64_t end_before = space_.end();
  if (auto written = write_records(batch); !written) {
    abandon(end_before);
    return tl::unexpected<Error>(std::move(written).error());
  }
  CommitHeader next = header_;
  next.committed = committed_ + 1;
  if (auto named = write_header(next); !named) {
    Error error = std::move(named).error();
    abandon(end_before);
    // A full disk took nothing, or less than the whole header, which does not count then. Of other errors nobody knows.
    if (error.code != Code::no_space) error.code = Code::failed;
    return tl::unexpected<Error>(std::move(error));
  }
  committed_ = next.committed;
  return std::span<const Place>(places_);
}

Result<void> SlotWriter::write_records(const WriteBatch& batch) {
  if (places_.capacity() > kPlacesKept) places_ = {};
  if (buffer_.capacity() > kBufferBytesKept) buffer_ = {};
  places_.clear();
  const auto count = count_operations(batch);
  KV_TRY(count);
  KV_ASSERT(*count <= std::numeric_limits<std::uint32_t>::max());  // Far above what kBatchBytesMax can hold.
  RecordHead head{.batch = committed_ + 1, .count = static_cast<std::uint32_t>(*count)};
  if (*count == 0) {
    head.count = 1;
    return write_record(head, {}, {});
  }
  return for_each_operation(batch.bytes(), [&](const BatchOperation& operation) {
    head.kind = record_kind(operation.space, operation.erase);
    auto written = write_record(head, operation.key, operation.value);
    ++head.index;
    return written;
  });
}

Result<void> SlotWriter::write_record(RecordHead& head, std::string_view key, std::string_view value) {
  head.key_bytes = static_cast<std::uint32_t>(key.size());
  head.value_bytes = static_cast<std::uint32_t>(value.size());
  const Geometry& geometry = header_.geometry;
  const std::uint64_t length = geometry.length(head.bytes());
  const std::size_t bytes = length * geometry.slot_bytes;
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  const std::uint64_t slot = space_.allocate(length);
  // Noted before it is written: a part of it may be in the file when that fails.
  places_.push_back(encode_record(buffer_.data(), geometry, slot, head, key, value));
  return file_.write_record({buffer_.data(), bytes}, geometry.offset(slot));
}

Result<void> SlotWriter::write_header(const CommitHeader& header) {
  CommitHeader next = header;
  next.generation = header_.generation + 1;
  const std::uint64_t copy = (header_copy_ + 1) % kCommitHeaderCopies;
  KV_TRY(file_.write_header(copy, next));
  header_ = next;
  header_copy_ = copy;
  return {};
}

// Gives the slots of the batch at hand back. They hold records of a number that is to be given again.
void SlotWriter::abandon(std::uint64_t end_before) {
  for (const Place& place : places_) {
    if (place.slot < end_before) space_.add_free({place.slot, place.length});
  }
  space_.cut(end_before);
  residue_.insert(residue_.end(), places_.begin(), places_.end());
  settled_ = false;
}

Result<void> SlotWriter::settle(const LiveSum& live) {
  if (settled_) return {};
  const Geometry& geometry = header_.geometry;
  for (const Place& place : residue_) {
    if (place.slot < space_.end()) {
      KV_TRY(file_.clear(geometry.offset(place.slot), geometry.slot_bytes));
    }
  }
  KV_TRY(file_.truncate(geometry.offset(space_.end())));
  KV_TRY(sync(live));
  residue_.clear();
  settled_ = true;
  return {};
}

Result<void> SlotWriter::sync(const LiveSum& live) {
  KV_TRY(file_.sync());
  CommitHeader next = header_;
  next.committed = committed_;
  next.synced = committed_;
  next.live = live;
  KV_TRY(write_header(next));
  // Only now is it certain that no crash goes back behind this batch, and what it replaced may be written over.
  KV_TRY(file_.sync());
  ++syncs_;
  released_since_sync_ = 0;
  return {};
}

void SlotWriter::release(const Place& place, std::uint64_t batch) {
  space_.wait(place, batch);
  if (batch > header_.synced) released_since_sync_ += place.length;
}

bool SlotWriter::wants_sync(const LiveSum& live) const noexcept {
  return released_since_sync_ > std::max(kWaitingSlotsMin, live.slots);
}

Result<void> SlotWriter::clear_waiting() {
  const Geometry& geometry = header_.geometry;
  for (const Extent& extent : space_.clearable(header_.synced, syncs_)) {
    KV_TRY(file_.clear(geometry.offset(extent.first), extent.length * geometry.slot_bytes));
  }
  space_.cleared();
  return {};
}

Result<void> SlotWriter::trim() {
  const Geometry& geometry = header_.geometry;
  for (const Extent& extent : space_.free_extents()) {
    if (extent.end() == space_.end()) {
      space_.cut(extent.first);
      break;
    }
    const std::uint64_t begin = (geometry.offset(extent.first) + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::uint64_t end = geometry.offset(extent.end()) / kPageBytes * kPageBytes;
    if (begin >= end) continue;
    auto punched = file_.punch(begin, end - begin);
    if (!punched && punched.error().code != Code::unsupported) return punched;
  }
  return file_.truncate(geometry.offset(space_.end()));
}

}  // namespace kvingest::slots
