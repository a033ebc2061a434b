#include "storage/file/record_reader.hpp"

#include <algorithm>

namespace kvingest::slots {
namespace {

constexpr std::uint64_t kReadAheadBytesMax = std::uint64_t{256} << 10;

}  // namespace

Result<std::string_view> RecordReader::read(Space space, std::string_view key, const Place& place) {
  const std::uint64_t offset = geometry_.offset(place.slot);
  const std::uint64_t bytes = place.length * geometry_.slot_bytes;
  KV_TRY(fill(offset, bytes));
  const std::string_view record = window_.substr(std::min<std::uint64_t>(offset - window_offset_, window_.size()));
  const auto head = decode_head(record, geometry_, place.slot);
  if (!head || head->checks != place.checks || !body_matches(*head, record, geometry_, place.slot)) {
    return fail(Code::corrupt, "{}: the slot at offset {} fails its checksum", file_.path().native(), offset);
  }
  if (!head->is_put() || head->space() != space || key_of(*head, record) != key) {
    return fail(Code::corrupt, "{}: the slot at offset {} holds another record than the index says",
                file_.path().native(), offset);
  }
  return value_of(*head, record);
}

// Makes the window hold the record, where the file does.
Result<void> RecordReader::fill(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t window_end = window_offset_ + window_.size();
  if (offset >= window_offset_ && offset + bytes <= window_end) return {};
  const bool follows = offset >= window_offset_ && offset <= window_end && !window_.empty();
  ahead_bytes_ = follows ? std::min(kReadAheadBytesMax, std::max<std::uint64_t>(2 * ahead_bytes_, small_.size())) : 0;
  const std::uint64_t wanted = std::max(bytes, ahead_bytes_);
  char* to = small_.data();
  if (wanted > small_.size()) {
    if (large_.size() < wanted) large_.resize(wanted);
    to = large_.data();
  }
  const auto read = file_.read_up_to(to, wanted, offset);
  KV_TRY(read);
  window_ = {to, *read};
  window_offset_ = offset;
  return {};
}

}  // namespace kvingest::slots
