#include "storage/mmap/log_view.hpp"

#include <fmt/format.h>

#include "kvingest/codec/varint.hpp"
#include "kvingest/write_batch.hpp"
#include "storage/mmap/segment.hpp"

namespace kvingest::mmap_store {

std::optional<RecordView> LogView::record(RecordPlace place) const noexcept {
  Segment* const segment = space_.owner(place.place());
  if (segment == nullptr) return std::nullopt;
  if (!segment->is_sound()) [[unlikely]] {
    damaged_.store(segment, std::memory_order_release);
    return std::nullopt;
  }
  const char* const end = space_.at(segment->base() + segment->end());
  const char* at = space_.at(place.place());
  const auto left = [&] { return static_cast<std::uint64_t>(end - at); };
  if (at >= end) return std::nullopt;
  std::uint64_t value_bytes = 0;
  if (place.in_run()) {
    at = codec::get_varint(at, end, value_bytes);
    if (at == nullptr || value_bytes > left()) return std::nullopt;
    return RecordView{{}, {at, value_bytes}};
  }
  const auto kind = static_cast<WriteBatch::Kind>(*at++);
  if (kind != WriteBatch::Kind::put && kind != WriteBatch::Kind::put_meta) return std::nullopt;
  std::uint64_t key_bytes = 0;
  at = codec::get_varint(at, end, key_bytes);
  if (at != nullptr) at = codec::get_varint(at, end, value_bytes);
  if (at == nullptr || key_bytes > left() || value_bytes > left() - key_bytes) return std::nullopt;
  return RecordView{{at, key_bytes}, {at + key_bytes, value_bytes}};
}

std::string_view LogView::key_at(std::uint64_t word) const {
  const auto found = record(RecordPlace::from_word(word));
  return found ? found->key : std::string_view();
}

Error LogView::describe_damage() const {
  const Segment& segment = *damaged_.load(std::memory_order_acquire);
  return {Code::corrupt, 0,
          fmt::format("{}: damaged at offset {}: the frame there is not sound", segment.path().native(),
                      segment.damaged_at())};
}

std::string LogView::describe(Place place) const {
  const Segment* const segment = space_.owner(place);
  if (segment == nullptr) return fmt::format("no segment at place {}", place);
  return fmt::format("{} at offset {}", segment->path().native(), place - segment->base());
}

}  // namespace kvingest::mmap_store
