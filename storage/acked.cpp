#include "storage/acked.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "kvingest/codec/fixed.hpp"

namespace kvingest {
namespace {

constexpr std::string_view kAckedMagic = "kvacked1";
constexpr std::size_t kCopyBytes = sizeof(AckedCopy);
constexpr std::size_t kCopyStride = 4096;            // Another page and another sector for each copy.
constexpr std::size_t kFileBytes = 2 * kCopyStride;  // Written whole at creation: later writes allocate nothing.
constexpr std::chrono::seconds kSyncEvery{1};

static_assert(kCopyBytes <= 512, "a copy must fit into one sector");

std::uint64_t offset_of(std::uint64_t counter) noexcept {
  return counter % 2 * kCopyStride;
}

std::optional<Acked> newer(const std::optional<Acked>& one, const std::optional<Acked>& other) noexcept {
  if (!one || !other) return one ? one : other;
  return one->counter > other->counter ? one : other;
}

}  // namespace

AckedCopy encode_acked(const Acked& acked) noexcept {
  AckedCopy copy;
  char* at = std::copy(kAckedMagic.begin(), kAckedMagic.end(), copy.data());
  for (const std::uint64_t field :
       {acked.counter, acked.acknowledged.batch, acked.acknowledged.seq, acked.on_disk.batch, acked.on_disk.seq}) {
    codec::put_fixed(at, field);
    at += sizeof field;
  }
  codec::put_fixed(at, std::uint64_t{XXH3_64bits(copy.data(), kCopyBytes - 8)});
  return copy;
}

std::optional<Acked> decode_acked(std::string_view bytes) noexcept {
  if (bytes.size() < kCopyBytes || !bytes.starts_with(kAckedMagic)) return std::nullopt;
  if (codec::get_fixed<std::uint64_t>(bytes.data() + kCopyBytes - 8) != XXH3_64bits(bytes.data(), kCopyBytes - 8)) {
    return std::nullopt;
  }
  const auto field = [&](std::size_t i) { return codec::get_fixed<std::uint64_t>(bytes.data() + 8 + 8 * i); };
  return Acked{{field(1), field(2)}, {field(3), field(4)}, field(0)};
}

Result<std::optional<Acked>> read_acked(const Posix& posix, const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / kAckedName;
  auto text = read_file(posix, path, kFileBytes);
  if (!text && text.error().sys_errno == ENOENT) return std::optional<Acked>();
  KV_TRY(text);
  const std::string_view bytes = *text;
  auto acked = newer(decode_acked(bytes), decode_acked(bytes.substr(std::min(bytes.size(), kCopyStride))));
  if (acked) return acked;
  return fail(Code::corrupt, "{}: neither of its two copies is sound; if the store is known to be whole, delete it",
              path.native());
}

Result<void> create_acked(const Posix& posix, const std::filesystem::path& dir, const Acked& acked) {
  std::string bytes(kFileBytes, '\0');
  bytes.replace(offset_of(acked.counter), kCopyBytes, encode_acked(acked).data(), kCopyBytes);
  return replace_file(posix, dir / kAckedName, bytes);
}

Result<AckedFile> AckedFile::open(const Posix& posix, const std::filesystem::path& dir) {
  auto last = read_acked(posix, dir);
  KV_TRY(last);
  auto file = File::open(posix, dir / kAckedName, O_WRONLY);
  KV_TRY(file);
  return AckedFile(std::move(*file), last->value_or(Acked{}));
}

Result<void> AckedFile::record(const BatchMark& acknowledged, const BatchMark& on_disk) {
  last_ = Acked{acknowledged, on_disk, last_.counter + 1};
  const AckedCopy copy = encode_acked(last_);
  KV_TRY(file_.write_at(std::string_view(copy.data(), copy.size()), offset_of(last_.counter)));
  if (on_disk.batch == synced_on_disk_ || Clock::now() - synced_at_ < kSyncEvery) return {};
  return sync();
}

Result<void> AckedFile::settle() {
  if (last_.on_disk.batch != last_.acknowledged.batch) KV_TRY(record(last_.acknowledged, last_.acknowledged));
  return last_.on_disk.batch == synced_on_disk_ ? Result<void>() : sync();
}

Result<void> AckedFile::sync() {
  KV_TRY(file_.sync_data());
  synced_on_disk_ = last_.on_disk.batch;
  synced_at_ = Clock::now();
  return {};
}

}  // namespace kvingest
