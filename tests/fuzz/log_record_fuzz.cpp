// A segment of the log of store mmap: any bytes are scanned to an end, a hole or damage, never beyond the file; repair
// reads the same file to its end; and a frame written around any payload comes back as it was.
//
// The first byte says whether the checksums of the input are set right first, so that what is behind them is reached.
#include "storage/mmap/format.hpp"

#include <fcntl.h>

#include "kvingest/codec/fixed.hpp"
#include "storage/mmap/frame_scanner.hpp"
#include "storage/salvage.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace kvingest;
using namespace kvingest::mmap_store;

constexpr std::uint64_t kSeed = 0x5EED;

/// Makes a sound header of the first bytes, and sound frames of what has the form of one behind it.
void set_checksums(std::string& bytes) {
  if (bytes.size() < kSegmentHeaderBytes) return;
  encode(SegmentHeader{.number = 1, .seed = kSeed, .store_id = 7}, bytes.data());
  std::size_t at = kSegmentHeaderBytes;
  while (at + kFrameHeaderBytes + kCommitBytes <= bytes.size()) {
    char* const frame = bytes.data() + at;
    const std::size_t room = bytes.size() - at - kFrameHeaderBytes - kCommitBytes;
    FrameHeader header;
    header.kind = static_cast<FrameKind>(1 + static_cast<unsigned char>(frame[4]) % 3);
    header.number = codec::get_fixed<std::uint64_t>(frame + 8) % 16;
    header.batch = codec::get_fixed<std::uint64_t>(frame + 16) % 16;
    header.synced_to = codec::get_fixed<std::uint64_t>(frame + 24) % 16;
    header.payload_bytes = codec::get_fixed<std::uint32_t>(frame + 32) % 256;
    if (header.payload_bytes + padding_bytes(header.payload_bytes) > room) return;
    encode(header, kSeed, frame);
    const std::string_view payload(frame + kFrameHeaderBytes, header.payload_bytes);
    char* const commit = frame + frame_bytes(payload.size()) - kCommitBytes;
    encode_commit(frame, payload, kSeed, commit);
    at += frame_bytes(payload.size());
  }
}

void scan(const File& file, std::uint64_t bytes) {
  FrameScanner scanner(Posix::real(), file, kSeed, bytes);
  for (auto step = scanner.next(); step && *step == FrameScanner::Step::frame; step = scanner.next())
    KV_ASSERT(scanner.offset() + frame_bytes(scanner.payload().size()) <= bytes);
  const auto data_end = scanner.data_end();
  KV_ASSERT(data_end && *data_end >= scanner.offset() && *data_end <= bytes);
  KV_ASSERT(scanner.synced_to_behind().has_value());
}

class Counter final : public Salvager {
 public:
  Result<void> take(const BatchOperation& operation) override {
    bytes_ += operation.key.size() + operation.value.size();
    return {};
  }
  Result<void> lose(const Loss& loss) override {
    KV_ASSERT(!loss.what.empty());
    return {};
  }

 private:
  std::uint64_t bytes_ = 0;
};

void round_trip(std::string_view payload) {
  std::string frame(frame_bytes(payload.size()), '\0');
  encode(FrameHeader{.number = 3, .batch = 2, .payload_bytes = static_cast<std::uint32_t>(payload.size())}, kSeed,
         frame.data());
  payload.copy(frame.data() + kFrameHeaderBytes, payload.size());
  encode_commit(frame.data(), payload, kSeed, frame.data() + frame.size() - kCommitBytes);
  const auto header = decode_frame_header(frame.data(), kSeed);
  KV_ASSERT(header && header->payload_bytes == payload.size());
  KV_ASSERT(frame_is_sound(frame.data(), payload.size(), kSeed));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(fuzz::view_of(data + 1, size - 1));
  round_trip(bytes);
  if ((data[0] & 1) != 0) set_checksums(bytes);
  const auto path = fuzz::scratch_dir() / "000001.log";
  const auto file = File::open(Posix::real(), path, O_RDWR | O_CREAT | O_TRUNC);
  KV_ASSERT(file && file->write_at(bytes, 0));
  if (bytes.size() >= kSegmentHeaderBytes) scan(*file, bytes.size());
  Counter counter;
  static_cast<void>(mmap_store::salvage({Posix::real(), fuzz::scratch_dir(), fuzz::scratch_dir()}, counter));
  return 0;
}
