#include "storage/mmap/log.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace kvingest::mmap_store {

Log::Log(const SegmentHome& home, SegmentSupply& supply, Background& syncer, LogContent content, bool read_only)
    : home_(home),
      supply_(supply),
      syncer_(syncer),
      segments_(std::move(content.segments)),
      last_frame_(content.last_frame),
      last_batch_(content.last_batch),
      synced_to_(content.synced_to),
      ends_in_mark_(content.ends_in_mark) {
  if (segments_.empty() || read_only) return;
  active_ = segments_.back().get();
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
    if (auto undone = undo_write(offset, bytes); !undone) {
      written.error().code = Code::failed;
      written.error().text += " (and what was written of it could not be undone)";
      return latch(std::move(written).error());
    }
    return tl::unexpected<Error>(std::move(written).error());
  }
  active_->set_last_frame(header.number);
  active_->set_end(offset + bytes);
  last_frame_.store(header.number, std::memory_order_relaxed);
  last_batch_.store(header.batch, std::memory_order_relaxed);
  ends_in_mark_ = kind == FrameKind::mark;
  return active_->base() + offset + kFrameHeaderBytes;
}

Result<void> Log::write_frame(std::uint64_t offset, const char* header, std::string_view payload, const char* tail,
                              std::size_t tail_bytes) {
  if (home_.write_through_map) {
    char* to = home_.space.at(active_->base() + offset);
    std::memcpy(to, header, kFrameHeaderBytes);
    payload.copy(to + kFrameHeaderBytes, payload.size());  // Not memcpy: an empty payload may have no address.
    std::memcpy(to + kFrameHeaderBytes + payload.size(), tail, tail_bytes);
    return {};
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
  const std::uint64_t number = active_ == nullptr ? 1 : active_->number() + 1;
  auto next = supply_.take(number, bytes);
  KV_TRY(next);
  {
    const std::scoped_lock lock(segments_mutex_);
    if (active_ != nullptr) unsynced_.push_back(active_);
    active_ = next->get();
    segments_.push_back(std::move(*next));
  }
  syncer_.post([this] { static_cast<void>(sync_sealed()); });  // A failure is latched.
  supply_.prepare(number + 1);
  return {};
}

// ---- syncing --------------------------------------------------------------------------------------------------------

Result<void> Log::sync() {
  KV_TRY(check_usable());
  if (synced_to() == last_frame()) return {};
  KV_TRY(sync_sealed());
  return sync_active();
}

Result<void> Log::sync_sealed() {
  const std::scoped_lock one_at_a_time(sync_mutex_);
  while (true) {
    KV_TRY(check_usable());
    Segment* oldest = nullptr;
    {
      const std::scoped_lock lock(segments_mutex_);
      if (unsynced_.empty()) return {};
      oldest = unsynced_.front();
    }
    if (auto synced = oldest->sync_and_close(); !synced) return latch(std::move(synced).error());
    synced_to_.store(oldest->last_frame(), std::memory_order_release);
    const std::scoped_lock lock(segments_mutex_);
    unsynced_.pop_front();
  }
}

Result<void> Log::sync_active() {
  if (auto synced = active_->file().sync_data(); !synced) return latch(std::move(synced).error());
  synced_to_.store(last_frame(), std::memory_order_release);
  return {};
}

Result<void> Log::close() {
  KV_TRY(check_usable());
  if (active_ == nullptr) return {};
  KV_TRY(sync());
  if (!ends_in_mark_ && active_->free_bytes() >= frame_bytes(0)) KV_TRY(append(FrameKind::mark, {}));
  if (active_->free_bytes() > 0) KV_TRY(active_->trim());
  return sync_active();
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
    extents.push_back({segment->path(), segment->number(), segment->seed(), segment->end()});
  }
  return extents;
}

Log::Totals Log::totals() const {
  const std::scoped_lock lock(segments_mutex_);
  Totals totals;
  for (const auto& segment : segments_) {
    const Segment::Usage& usage = segment->usage();
    ++totals.segments;
    totals.log_bytes += segment->end();
    totals.allocated_bytes += segment->capacity_bytes();
    totals.record_bytes += usage.bytes.load(std::memory_order_relaxed);
    totals.dead_bytes += usage.dead_bytes.load(std::memory_order_relaxed);
  }
  totals.dead_bytes = std::min(totals.dead_bytes, totals.record_bytes);  // Both are estimates.
  return totals;
}

}  // namespace kvingest::mmap_store
