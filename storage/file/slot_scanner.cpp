#include "storage/file/slot_scanner.hpp"

#include <algorithm>

namespace kvingest::slots {
namespace {

constexpr std::uint64_t kReadAheadBytes = std::uint64_t{1} << 20;

}  // namespace

Result<void> SlotScanner::scan(Extent extent, FunctionRef<Result<void>(const ScannedRecord&)> visit) {
  buffer_bytes_ = 0;  // The file may have changed since.
  const std::uint64_t end = geometry_.offset(extent.end());
  for (std::uint64_t slot = extent.first; slot < extent.end();) {
    auto bytes = bytes_at(slot, kRecordHeadBytes, end);
    KV_TRY(bytes);
    if (bytes->size() < kRecordHeadBytes) return {};  // The end of the file.
    const auto head = decode_head(*bytes, geometry_, slot);
    if (head) {
      bytes = bytes_at(slot, head->bytes(), end);
      KV_TRY(bytes);
    }
    if (!head || !body_matches(*head, *bytes, geometry_, slot)) {
      note_damage(*bytes, slot);
      ++slot;  // Not by the record's length: a head that outlived its record may have others behind it.
      continue;
    }
    ScannedRecord record{.head = *head, .place = {}, .bytes = bytes->substr(0, head->bytes())};
    record.place = place_of(*head, geometry_, slot);
    KV_TRY(visit(record));
    slot += record.place.length;
  }
  return {};
}

Result<RecordHead> SlotScanner::head_at(const Place& place) const {
  char bytes[kRecordHeadBytes];
  const auto read = file_.read_up_to(bytes, sizeof bytes, geometry_.offset(place.slot));
  KV_TRY(read);
  const auto head = decode_head({bytes, *read}, geometry_, place.slot);
  if (head && head->checks == place.checks) return *head;
  return fail(Code::corrupt, "{}: the slot at offset {} changed while it was read", file_.path().native(),
              geometry_.offset(place.slot));
}

Result<std::string_view> SlotScanner::bytes_at(std::uint64_t slot, std::uint64_t bytes, std::uint64_t read_ahead_end) {
  const std::uint64_t offset = geometry_.offset(slot);
  const bool buffered = offset >= buffer_offset_ && offset + bytes <= buffer_offset_ + buffer_bytes_;
  if (!buffered) {
    const std::uint64_t ahead = std::min(kReadAheadBytes, read_ahead_end - offset);
    const std::uint64_t wanted = std::max(bytes, ahead);
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const auto read = file_.read_up_to(buffer_.data(), wanted, offset);
    KV_TRY(read);
    buffer_offset_ = offset;
    buffer_bytes_ = *read;
  }
  const std::uint64_t begin = offset - buffer_offset_;
  return std::string_view(buffer_).substr(begin, buffer_bytes_ - begin);
}

void SlotScanner::note_damage(std::string_view bytes, std::uint64_t slot) {
  if (damaged_) return;
  if (looks_like_head(bytes) && raw_batch(bytes) <= synced_) damaged_ = slot;
  const std::string_view whole = bytes.substr(0, geometry_.slot_bytes);
  if (!remains_ && whole.find_first_not_of('\0') != std::string_view::npos) remains_ = slot;
}

}  // namespace kvingest::slots
