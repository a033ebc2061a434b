// The file of store file: any bytes are recovered or refused, and repair reads them to their end.
//
// The first byte says whether the checksums of the input are set right first, so that what is behind them is reached.
#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "kvingest/codec/fixed.hpp"
#include "storage/file/recovery.hpp"
#include "storage/salvage.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace kvingest;
using namespace kvingest::slots;

constexpr Geometry kGeometry{.slot_bytes = kSlotBytesMin, .seed = 0x5EED};
constexpr std::size_t kPackedHeaderBytes = 32;  // Of each header in an input: what matters, without the gap behind it.

/// The input says what the headers are to hold, and the slots as they are; their checks are made.
std::string sealed(std::string_view input) {
  std::string file(kSlotsBegin, '\0');
  for (std::uint64_t copy = 0; copy < kCommitHeaderCopies && input.size() >= kPackedHeaderBytes; ++copy) {
    const auto number = [&](std::size_t at) { return codec::get_fixed<std::uint64_t>(input.data() + at) % 8; };
    const CommitHeader header{.geometry = kGeometry,
                              .generation = number(0),
                              .committed = std::max(number(8), number(16)),
                              .synced = number(16),
                              .live = {.slots = number(24), .checks = number(24)}};
    encode_commit_header(file.data() + copy * kCommitHeaderStrideBytes, header);
    input.remove_prefix(kPackedHeaderBytes);
  }
  for (std::uint64_t slot = 0; input.size() >= kRecordHeadBytes;) {
    RecordHead head;
    constexpr RecordKind kKinds[] = {RecordKind::put, RecordKind::erase, RecordKind::put_meta, RecordKind::erase_meta,
                                     RecordKind::nothing};
    head.kind = kKinds[static_cast<unsigned char>(input[9]) % std::size(kKinds)];
    head.batch = static_cast<unsigned char>(input[10]) % 8;
    head.count = 1 + static_cast<unsigned char>(input[20]) % 4;
    head.index = static_cast<unsigned char>(input[16]) % head.count;
    head.value_bytes = head.is_put() ? static_cast<unsigned char>(input[24]) : 0;
    head.key_bytes = head.kind == RecordKind::nothing ? 0 : 1 + static_cast<unsigned char>(input[28]) % 16;
    input.remove_prefix(kRecordHeadBytes);
    std::string body(head.key_bytes + head.value_bytes, '\0');
    body.replace(0, std::min(body.size(), input.size()), input.substr(0, body.size()));
    input.remove_prefix(std::min(body.size(), input.size()));
    const std::uint64_t length = kGeometry.length(head.bytes());
    const std::size_t at = file.size();
    file.resize(at + length * kGeometry.slot_bytes);
    encode_record(file.data() + at, kGeometry, slot, head, std::string_view(body).substr(0, head.key_bytes),
                  std::string_view(body).substr(head.key_bytes));
    slot += length;
  }
  return file;
}

class Counter final : public Salvager {
 public:
  Result<void> take(const BatchOperation& operation) override {
    KV_ASSERT(!operation.erase && !operation.key.empty());
    return {};
  }
  Result<void> lose(const Loss& loss) override {
    KV_ASSERT(!loss.what.empty());
    return {};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input = fuzz::view_of(data + 1, size - 1);
  const std::string bytes = (data[0] & 1) != 0 ? sealed(input) : std::string(input);
  const auto path = fuzz::scratch_dir() / kFileName;
  {
    const auto written = File::open(Posix::real(), path, O_RDWR | O_CREAT | O_TRUNC);
    KV_ASSERT(written && written->write_at(bytes, 0));
  }
  const auto file = SlotFile::open(Posix::real(), path, O_RDONLY);
  KV_ASSERT(file.has_value());
  if (const auto recovered = recover(*file)) KV_ASSERT(recovered->last_batch <= recovered->header.committed);
  Counter counter;
  static_cast<void>(slots::salvage({Posix::real(), fuzz::scratch_dir(), fuzz::scratch_dir()}, counter));
  return 0;
}
