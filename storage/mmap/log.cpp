#include "storage/mmap/log.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "storage/mmap/bus_guard.hpp"

namespace kvingest::mmap_store {

Log::Log(const SegmentHome& home, SegmentSupply& supply, Background& syncer, LogContent content, bool read_only)
    : home_(home),
      supply_(supply),
      syncer_(syncer),
      segments_(std::move(content.segments)),
      last_frame_(content.last_frame),
      last_batch_(content.last_batch),
      synced_to_(content.synced_to),
      ends_in_mark_(content.ends_in_mark),
      bytes_behind_checkpoint_(content.replayed_bytes) {
  if (segments_.empty()) return;
  active_ = segments_.back().get();
  next_number_ = active_->number() + 1;
  if (read_only) return;
  for (const auto& segment : segments_) {
    if (segment.get() != active_ && segment->last_frame() > content.synced_to) unsynced_.push_back(segment.get());
  }
  if (!unsynced_.empty()) syncer_.post([this] { static_cast<void>(sync_sealed()); });  // A failure is latched.
}

// ---- appending ------------------------------------------------------------------------------------------------------

Result<Place> Log::append(FrameKind kind, std::string_view payload) {
  KV_TRY(check_usable());
  const std::uint64_t bytes = frame_bytes(payload.size());
  KV_TRY(make_room(bytes));
  const FrameHeader header{.kind = kind,
                           .number = last_frame() + 1,
                           .batch = last_batch() + (kind == FrameKind::batch ? 1 : 0),
                           .synced_to = synced_to(),
                           .payload_bytes = static_cast<std::uint32_t>(payload.size())};
  char head[kFrameHeaderBytes];
  encode(header, active_->seed(), head);
  char tail[kFrameAlignment + kCommitBytes] = {};
  const std::size_t padding = padding_bytes(payload.size());
  encode_commit(head, payload, active_->seed(), tail + padding);

  const std::uint64_t offset = active_->end();
  if (auto written = write_frame(offset, head, payload, tail, padding + kCommitBytes); !written) {
    if (written.error().code == Code::failed) return latch(std::move(written).error());
    if (auto undone = undo_write(offset, bytes); !undone) {
      written.error().code = Code::failed;
      written.error().text += " (and what was written of it could not be undone)";
      return latch(std::move(written).error());
    }
    return tl::unexpected<Error>(std::move(written).error());
  }
  active_->set_last_frame(header.number, header.batch, commit_checksum(tail + padding));
  bytes_behind_checkpoint_.fetch_add(bytes, std::memory_order_relaxed);
  active_->set_end(offset + bytes);
  last_frame_.store(header.number, std::memory_order_release);
  last_batch_.store(header.batch, std::memory_order_relaxed);
  ends_in_mark_ = kind == FrameKind::mark;
  return active_->base() + offset + kFrameHeaderBytes;
}

Result<void> Log::write_frame(std::uint64_t offset, const char* header, std::string_view payload, const char* tail,
                              std::size_t tail_bytes) {
  if (home_.write_through_map) {
    char* const to = home_.space.at(active_->base() + offset);
    const bool whole = guarded_from_bus_errors([&] {
      std::memcpy(to, header, kFrameHeaderBytes);
      payload.copy(to + kFrameHeaderBytes, payload.size());  // Not memcpy: an empty payload may have no address.
      std::memcpy(to + kFrameHeaderBytes + payload.size(), tail, tail_bytes);
    });
    if (whole) return {};
    return fail(Code::failed, "write to {} at offset {}: the file was cut, or cannot be read, while it was in use",
                active_->path().native(), offset);
  }
  std::array<iovec, 3> parts{{{const_cast<char*>(header), kFrameHeaderBytes},
                              {const_cast<char*>(payload.data()), payload.size()},
                              {const_cast<char*>(tail), tail_bytes}}};
  return active_->file().write_at(parts, offset);
}

// Zeros again where a write failed half way: behind the last frame there is nothing.
Result<void> Log::undo_write(std::uint64_t offset, std::uint64_t bytes) {
  static constexpr std::array<char, 64 << 10> kZeros{};
  while (bytes > 0) {
    const std::uint64_t step = std::min<std::uint64_t>(bytes, kZeros.size());
    KV_TRY(active_->file().write_at(std::string_view(kZeros.data(), step), offset));
    offset += step;
    bytes -= step;
  }
  return {};
}

Result<void> Log::make_room(std::uint64_t bytes) {
  if (active_ != nullptr && active_->free_bytes() >= bytes) return {};
  return take_segment(bytes);
}

Result<void> Log::take_segment(std::uint64_t bytes) {
  auto next = supply_.take(next_number_, bytes);
  KV_TRY(next);
  (*next)->set_before(last_frame(), last_batch());
  ++next_number_;
  {
    const std::scoped_lock lock(segments_mutex_);
    if (active_ != nullptr) unsynced_.push_back(active_);
    active_ = next->get();
    segments_.push_back(std::move(*next));
  }
  syncer_.post([this] { static_cast<void>(sync_sealed()); });  // A failure is latched.
  return {};
}

std::uint64_t Log::newest_dead_percent() const noexcept {
  if (!newest_has_frame()) return 0;
  const std::uint64_t live = std::min(active_->usage().live_bytes(), active_->end());
  return (active_->end() - live) * 100 / active_->end();
}

Result<void> Log::seal() {
  KV_TRY(check_usable());
  if (!newest_has_frame()) return {};
  return take_segment(frame_bytes(0));
}

std::unique_ptr<Segment> Log::detach(const Segment& full) {
  const std::scoped_lock lock(segments_mutex_);
  const auto at = std::find_if(segments_.begin(), segments_.end(), [&](const auto& one) { return one.get() == &full; });
  KV_ASSERT(at != segments_.end() && at->get() != active_);
  std::unique_ptr<Segment> detached = std::move(*at);
  segments_.erase(at);
  return detached;
}

// ---- syncing --------------------------------------------------------------------------------------------------------

Result<void> Log::sync() {
  KV_TRY(check_usable());
  if (synced_to() == last_frame()) return {};
  const std::scoped_lock one_at_a_time(sync_mutex_);  // Keeps the file below open.
  Segment* newest = nullptr;
  std::uint64_t last = 0;
  {
    const std::scoped_lock lock(segments_mutex_);
    newest = active_;
    last = last_frame();
  }
  KV_TRY(sync_sealed_locked());
  if (synced_to() < last) return sync_file(newest->file(), last);
  return {};
}

Result<void> Log::sync_sealed() {
  const std::scoped_lock one_at_a_time(sync_mutex_);
  return sync_sealed_locked();
}

Result<void> Log::sync_sealed_locked() {
  while (true) {
    KV_TRY(check_usable());
    Segment* oldest = nullptr;
    {
      const std::scoped_lock lock(segments_mutex_);
      if (unsynced_.empty()) return {};
      oldest = unsynced_.front();
    }
    if (auto synced = oldest->sync_and_close(); !synced) return latch(std::move(synced).error());
    is_on_disk(oldest->last_frame());
    const std::scoped_lock lock(segments_mutex_);
    unsynced_.pop_front();
  }
}

// Frames up to `last_frame` are on disk, or in `file`.
Result<void> Log::sync_file(const File& file, std::uint64_t last_frame) {
  if (auto synced = file.sync_data(); !synced) return latch(std::move(synced).error());
  is_on_disk(last_frame);
  return {};
}

void Log::is_on_disk(std::uint64_t last_frame) noexcept {
  std::uint64_t known = synced_to();
  while (known < last_frame && !synced_to_.compare_exchange_weak(known, last_frame, std::memory_order_release)) {
  }
}

Result<void> Log::close() {
  KV_TRY(check_usable());
  if (active_ == nullptr) return {};
  KV_TRY(sync());
  if (!ends_in_mark_ && active_->free_bytes() >= frame_bytes(0)) KV_TRY(append(FrameKind::mark, {}));
  if (active_->free_bytes() > 0) KV_TRY(active_->trim());
  return sync_file(active_->file(), last_frame());
}

// ---- state ----------------------------------------------------------------------------------------------------------

tl::unexpected<Error> Log::latch(Error error) {
  const std::scoped_lock lock(failure_mutex_);
  if (!failure_) failure_ = error;
  failed_.store(true, std::memory_order_release);
  return tl::unexpected<Error>(std::move(error));
}

std::optional<Error> Log::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  const std::scoped_lock lock(failure_mutex_);
  return failure_;
}

Result<void> Log::check_usable() const {
  if (const auto first = failure()) {
    return fail(Code::failed, "the log failed before ({}); what is on disk is unknown, reopen the store", first->text);
  }
  return {};
}

std::vector<Log::Extent> Log::extents() const {
  const std::scoped_lock lock(segments_mutex_);
  std::vector<Extent> extents;
  extents.reserve(segments_.size());
  for (const auto& segment : segments_) {
    extents.push_back({segment->path(), segment->number(), segment->seed(), segment->end(), segment->frames_before()});
  }
  return extents;
}

std::vector<Segment*> Log::full_segments() const {
  const std::scoped_lock lock(segments_mutex_);
  std::vector<Segment*> full;
  for (const auto& segment : segments_) {
    if (segment.get() != active_) full.push_back(segment.get());
  }
  return full;
}

SegmentList Log::list_without(const Segment* dropped) const {
  const std::scoped_lock lock(segments_mutex_);
  SegmentList list{.store_id = home_.store_id, .synced_to = synced_to(), .segments = {}};
  for (const auto& segment : segments_) {
    if (segment.get() == dropped || segment->frames_before() >= list.synced_to) continue;
    const bool whole = segment.get() != active_ && segment->last_frame() <= list.synced_to;
    list.segments.push_back({.number = segment->number(),
                             .frames_before = segment->frames_before(),
                             .batches_before = segment->batches_before(),
                             .last_frame = whole ? segment->last_frame() : 0});
  }
  return list;
}

Log::Totals Log::totals() const {
  const std::scoped_lock lock(segments_mutex_);
  Totals totals;
  for (const auto& segment : segments_) {
    ++totals.segments;
    totals.log_bytes += segment->end();
    totals.allocated_bytes += segment->capacity_bytes();
    if (segment.get() != active_) totals.full_bytes += segment->capacity_bytes();
    totals.live_bytes += segment->usage().live_bytes();
  }
  return totals;
}

}  // namespace kvingest::mmap_store
