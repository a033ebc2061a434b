#include "bench/stores_targets.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/posix.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

class StoreTarget final : public Target {
 public:
  StoreTarget(std::unique_ptr<Store> store, Durability level, bool arrival)
      : store_(std::move(store)), level_(level), arrival_(arrival) {}

  Result<void> put(const RecordGroup& group) override {
    batch_.clear();
    for (const StoredRecord& record : group.records()) {
      if (arrival_)
        batch_.put_next(record.value);
      else
        batch_.put(record.key, record.value);
    }
    next_ = batch_.number(next_);
    return store_->write(batch_, level_);
  }

  Result<void> get(const RecordGroup& group, Look& look) override {
    const auto keys = group.keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = store_->get(keys[i], [&](std::string_view value) { look(i, value); });
      KV_TRY(found);
    }
    return {};
  }

  Result<void> close() override { return store_->close(); }
  [[nodiscard]] Store* store() noexcept override { return store_.get(); }

 private:
  std::unique_ptr<Store> store_;
  Durability level_;
  bool arrival_;
  WriteBatch batch_;
  std::uint64_t next_ = 1;
};

/// A file that only takes: there is nothing to get from it.
class FileTarget : public Target {
 public:
  explicit FileTarget(File file) : file_(std::move(file)) {}
  Result<void> get(const RecordGroup&, Look&) override {
    return fail(Code::unsupported, "{}: nothing is read from it", file_.path().native());
  }
  Result<void> close() override {
    file_.reset();
    return {};
  }

 protected:
  [[nodiscard]] const File& file() const noexcept { return file_; }

 private:
  File file_;
};

class SyncedFile final : public FileTarget {
 public:
  using FileTarget::FileTarget;

  Result<void> put(const RecordGroup& group) override {
    bytes_.resize(group.records().size() * kBytesEach, 'x');
    KV_TRY(file().write_at(bytes_, offset_));
    offset_ += bytes_.size();
    return file().sync_data();
  }

  /// Kind, both lengths, key and value, as in a batch.
  static constexpr std::uint64_t kBytesEach = 3 + kStoresKeyBytes + kStoresValueBytes;

 private:
  std::string bytes_;
  std::uint64_t offset_ = 0;
};

class SeekFile final : public FileTarget {
 public:
  using FileTarget::FileTarget;

  Result<void> put(const RecordGroup& group) override {
    for (std::size_t i = 0; i < group.records().size(); ++i, offset_ += kBytesEach) {
      const auto offset = static_cast<off_t>(offset_);
      if (::lseek(file().fd(), offset, SEEK_SET) != offset) return fail(errno, "lseek {}", file().path().native());
      const ssize_t written = ::write(file().fd(), slots_.data(), slots_.size());
      if (written != static_cast<ssize_t>(slots_.size()))
        return fail(written < 0 ? errno : EIO, "write {}", file().path().native());
    }
    return {};
  }

 private:
  static constexpr std::size_t kSlotBytes = 64;
  static constexpr std::size_t kHeadBytes = 30;
  static constexpr std::size_t kBytesEach =
      (kHeadBytes + kStoresKeyBytes + kStoresValueBytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes;

  std::string slots_ = std::string(kBytesEach, 'x');
  std::uint64_t offset_ = 0;
};

Result<File> make_file(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return fail(error.value(), "create {}", dir.native());
  return File::open(Posix::real(), dir / "plain", O_RDWR | O_CREAT | O_TRUNC);
}

}  // namespace

OpenedTarget open_store_target(const std::string& spec, const fs::path& dir, Durability level, bool arrival) {
  auto parsed = parse_store_spec(spec);
  KV_TRY(parsed);
  auto store = open_store(*parsed, {.dir = dir});
  KV_TRY(store);
  return std::make_unique<StoreTarget>(std::move(*store), level, arrival);
}

OpenedTarget open_synced_file(const fs::path& dir, std::uint64_t records) {
  auto file = make_file(dir);
  KV_TRY(file);
  KV_TRY(file->allocate(0, records * SyncedFile::kBytesEach));
  KV_TRY(file->sync_all());
  return std::make_unique<SyncedFile>(std::move(*file));
}

OpenedTarget open_seek_file(const fs::path& dir) {
  auto file = make_file(dir);
  KV_TRY(file);
  return std::make_unique<SeekFile>(std::move(*file));
}

}  // namespace kvingest::bench
