#include "storage/mmap/frame_scanner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kvingest::mmap_store {
namespace {

constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;  // Stays in the second-level cache while it is checked.

bool all_zero(const char* from, std::uint64_t bytes) {
  return std::all_of(from, from + bytes, [](char c) { return c == 0; });
}

}  // namespace

FrameScanner::FrameScanner(const Posix& posix, const File& file, std::uint64_t seed, std::uint64_t end)
    : posix_(posix), file_(file), seed_(seed), end_(end) {}

// Makes `bytes` at `offset` readable in the buffer.
Result<const char*> FrameScanner::read(std::uint64_t offset, std::uint64_t bytes) {
  if (offset < buffer_offset_ || offset + bytes > buffer_offset_ + buffer_bytes_) {
    const std::uint64_t wanted = std::min(std::max(bytes, kReadBytes), end_ - offset);
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    buffer_bytes_ = 0;
    KV_TRY(file_.read_at(buffer_.data(), wanted, offset));
    buffer_offset_ = offset;
    buffer_bytes_ = wanted;
  }
  return buffer_.data() + (offset - buffer_offset_);
}

Result<FrameScanner::Step> FrameScanner::next() {
  offset_ += std::exchange(frame_bytes_, 0);
  if (end_ - offset_ < kFrameHeaderBytes) {
    auto rest = read(offset_, end_ - offset_);
    KV_TRY(rest);
    return all_zero(*rest, end_ - offset_) ? Step::end : Step::bad;
  }
  auto bytes = read(offset_, kFrameHeaderBytes);
  KV_TRY(bytes);
  const auto header = decode_frame_header(*bytes, seed_);
  if (!header) return all_zero(*bytes, kFrameHeaderBytes) ? Step::end : Step::bad;
  const std::uint64_t frame = frame_bytes(header->payload_bytes);
  if (frame > end_ - offset_) return Step::bad;
  bytes = read(offset_, frame);
  KV_TRY(bytes);
  if (!frame_is_sound(*bytes, header->payload_bytes, seed_)) return Step::bad;
  header_ = *header;
  payload_ = std::string_view(*bytes + kFrameHeaderBytes, header->payload_bytes);
  frame_bytes_ = frame;
  return Step::frame;
}

std::uint64_t FrameScanner::commit() const noexcept {
  return commit_checksum(payload_.data() + payload_.size() + padding_bytes(payload_.size()));
}

Result<std::uint64_t> FrameScanner::data_end() {
  std::uint64_t data_end = offset_;
  for (std::uint64_t at = offset_; at < end_;) {
    // What was allocated and never written reads as zeros, but reading it fills the page cache: pass over it.
    const off_t data = posix_.lseek(file_.fd(), static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data > 0) at = std::min(std::max(at, static_cast<std::uint64_t>(data)), end_);
    const std::uint64_t step = std::min(kReadBytes, end_ - at);
    auto bytes = read(at, step);
    KV_TRY(bytes);
    for (std::uint64_t i = step; i > 0; --i) {
      if ((*bytes)[i - 1] == 0) continue;
      data_end = at + i;
      break;
    }
    at += step;
  }
  return data_end;
}

Result<std::uint64_t> FrameScanner::synced_to_behind() {
  std::uint64_t highest = 0;
  for (std::uint64_t at = offset_; end_ - at >= kFrameHeaderBytes; at += kFrameAlignment) {
    auto bytes = read(at, kFrameHeaderBytes);
    KV_TRY(bytes);
    if (const auto header = decode_frame_header(*bytes, seed_)) highest = std::max(highest, header->synced_to);
  }
  return highest;
}

}  // namespace kvingest::mmap_store
