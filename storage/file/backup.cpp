#include "storage/file/backup.hpp"

#include <string>
#include <system_error>

#include "storage/file/recovery.hpp"
#include "storage/file/slot_scanner.hpp"

namespace kvingest::slots {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

// Gathers records that lie side by side, so that most writes are large.
class SlotCopier {
 public:
  SlotCopier(const File& file, const Geometry& geometry) : file_(file), geometry_(geometry) {}

  Result<void> add(const ScannedRecord& record) {
    const std::uint64_t offset = geometry_.offset(record.place.slot);
    if (offset != offset_ + bytes_.size() || bytes_.size() >= kCopyBytes) {
      KV_TRY(flush());
      offset_ = offset;
    }
    bytes_.append(record.bytes);
    bytes_.resize(offset - offset_ + record.place.length * geometry_.slot_bytes);
    return {};
  }
  Result<void> flush() {
    KV_TRY(file_.write_at(bytes_, offset_));
    bytes_.clear();
    return {};
  }

 private:
  const File& file_;
  Geometry geometry_;
  std::string bytes_;
  std::uint64_t offset_ = 0;
};

}  // namespace

Result<void> create_slots(const Posix& posix, const std::filesystem::path& path, const CommitHeader& header) {
  const auto file = File::open(posix, path, O_WRONLY | O_CREAT | O_TRUNC);
  KV_TRY(file);
  char bytes[kCommitHeaderBytes];
  encode_commit_header(bytes, header);
  KV_TRY(file->write_at({bytes, sizeof bytes}, 0));
  KV_TRY(file->truncate(kSlotsBegin));
  KV_TRY(file->sync_all());
  return sync_directory(posix, path.parent_path());
}

Result<void> copy_slots(const Posix& posix, const SlotFile& file, const Geometry& geometry, std::uint64_t batch,
                        const LiveSum& live, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) return fail(error.value(), "create {}", to.native());
  const std::filesystem::path path = to / kFileName;
  KV_TRY(create_slots(posix, path,
                      {.geometry = geometry, .generation = 1, .committed = batch, .synced = batch, .live = live}));
  const auto size = file.size();
  KV_TRY(size);
  const auto copy = File::open(posix, path, O_RDWR);
  KV_TRY(copy);
  SlotCopier copier(*copy, geometry);
  SlotScanner scanner(file, geometry, batch);
  KV_TRY(scanner.scan({0, geometry.length(*size - kSlotsBegin)}, [&](const ScannedRecord& record) -> Result<void> {
    if (record.head.batch > batch) return {};
    return copier.add(record);
  }));
  KV_TRY(copier.flush());
  KV_TRY(copy->sync_all());
  auto written = SlotFile::open(posix, path, O_RDONLY);
  KV_TRY(written);
  if (auto found = recover(*written); !found) {
    return fail(std::move(found).error(), "backup of {}: a record is missing in the copy", file.path().native());
  }
  return {};
}

}  // namespace kvingest::slots
