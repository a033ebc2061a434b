#include "tests/support/disk_model.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <tuple>

namespace kvingest::test {
namespace {

off_t size_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw std::runtime_error("DiskModel: fstat failed");
  return info.st_size;
}

std::string read_at(int fd, off_t offset, std::size_t bytes) {
  std::string content(bytes, '\0');
  const ssize_t got = ::pread(fd, content.data(), bytes, offset);
  content.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return content;
}

void write_at(int fd, off_t offset, std::string_view bytes) {
  if (::pwrite(fd, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("DiskModel: pwrite failed");
}

void resize(int fd, off_t bytes) {
  if (::ftruncate(fd, bytes) != 0) throw std::runtime_error("DiskModel: ftruncate failed");
}

}  // namespace

DiskModel::~DiskModel() {
  for (const auto& [key, fd] : files_) ::close(fd);
}

bool DiskModel::watch(int fd, FileKey& key) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  key = {info.st_dev, info.st_ino};
  if (files_.contains(key)) return true;
  const int own = ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return false;
  files_[key] = own;
  return true;
}

void DiskModel::before_open(const char* path, int flags) {
  pending_ok_ = false;
  created_ = (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  if ((flags & O_TRUNC) == 0 || created_) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  before_change(fd, 0, static_cast<std::size_t>(size_of(fd)));
  ::close(fd);
}

void DiskModel::after_open(const char* path, int fd) {
  if (pending_ok_) after_change(0);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISDIR(info.st_mode)) {
    directories_[fd] = std::filesystem::canonical(path);
    return;
  }
  if ((::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) return;
  FileKey key;
  if (watch(fd, key)) open_[fd] = key;
  if (!created_) return;
  const auto made = std::filesystem::canonical(path);
  names_.push_back({made.parent_path(), made, {}, {}, {}});
}

void DiskModel::after_close(int fd) {
  open_.erase(fd);
  directories_.erase(fd);
}

void DiskModel::before_change(int fd, off_t offset, std::size_t bytes) {
  FileKey key;
  pending_ok_ = watch(fd, key);
  if (!pending_ok_) return;
  const int own = files_.at(key);
  pending_ = {key, offset, read_at(own, offset, bytes), {}, size_of(own), 0};
}

void DiskModel::after_change(std::size_t bytes) {
  if (!std::exchange(pending_ok_, false)) return;
  const int own = files_.at(pending_.file);
  pending_.size_after = size_of(own);
  pending_.after = read_at(own, pending_.offset, bytes);
  // What a cut took away is zero should the file grow again.
  if (pending_.after.size() < pending_.before.size()) pending_.after.resize(pending_.before.size(), '\0');
  changes_.push_back(std::move(pending_));
}

void DiskModel::after_sync(int fd) {
  if (const auto dir = directories_.find(fd); dir != directories_.end()) {
    std::erase_if(names_, [&](const NameChange& each) { return each.dir == dir->second; });
    return;
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0) return;
  const FileKey key{info.st_dev, info.st_ino};
  std::erase_if(changes_, [&](const Change& each) { return each.file == key; });
}

std::filesystem::path DiskModel::set_aside(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  auto link = aside_ / std::to_string(++links_);
  std::filesystem::create_hard_link(path, link);
  return link;
}

void DiskModel::before_rename(const char* from, const char* to) {
  const auto source = std::filesystem::absolute(from);
  const auto target = std::filesystem::absolute(to);
  pending_name_ = {std::filesystem::canonical(target.parent_path()), target, source, set_aside(target), {}};
}

void DiskModel::after_rename() {
  names_.push_back(std::move(pending_name_));
}

void DiskModel::before_unlink(const char* path) {
  const auto name = std::filesystem::absolute(path);
  pending_name_ = {std::filesystem::canonical(name.parent_path()), {}, {}, set_aside(name), name};
}

void DiskModel::after_unlink() {
  names_.push_back(std::move(pending_name_));
}

void DiskModel::undo_names(std::size_t kept) {
  while (names_.size() > kept) {
    const NameChange& last = names_.back();
    if (last.made.empty()) {
      std::filesystem::rename(last.replaced, last.name);
    } else if (!last.from.empty()) {
      std::filesystem::rename(last.made, last.from);
      if (!last.replaced.empty()) std::filesystem::rename(last.replaced, last.made);
    } else {
      std::filesystem::remove(last.made);
    }
    names_.pop_back();
  }
}

void DiskModel::undo_changes() {
  for (auto each = changes_.rbegin(); each != changes_.rend(); ++each) {
    const int fd = files_.at(each->file);
    resize(fd, each->size_before);
    write_at(fd, each->offset, each->before);
  }
}

void DiskModel::forget() {
  changes_.clear();
  names_.clear();
}

void DiskModel::lose(std::uint64_t seed, std::size_t sector_bytes) {
  std::mt19937_64 random(seed);
  undo_names(random() % (names_.size() + 1));
  undo_changes();

  // For each sector, how many of the changes that touch it reached the disk; for each file, up to which its size did.
  using Sector = std::tuple<FileKey, std::uint64_t>;
  std::map<Sector, std::uint64_t> touched;
  std::map<FileKey, std::uint64_t> resized;
  const auto sectors_of = [&](const Change& change) {
    const auto first = static_cast<std::uint64_t>(change.offset) / sector_bytes;
    const auto end = static_cast<std::uint64_t>(change.offset) + change.after.size();
    return std::pair(first, change.after.empty() ? first : (end - 1) / sector_bytes + 1);
  };
  for (const Change& change : changes_) {
    const auto [first, end] = sectors_of(change);
    for (auto sector = first; sector < end; ++sector) ++touched[{change.file, sector}];
    ++resized[change.file];
  }
  for (auto& [sector, count] : touched) count = random() % (count + 1);
  for (auto& [file, count] : resized) count = random() % (count + 1);

  std::map<FileKey, off_t> sizes;
  for (const Change& change : changes_) {
    const int fd = files_.at(change.file);
    sizes.try_emplace(change.file, size_of(fd));
    const auto [first, end] = sectors_of(change);
    for (auto sector = first; sector < end; ++sector) {
      auto& left = touched[{change.file, sector}];
      if (left == 0) continue;
      --left;
      const auto from = std::max(static_cast<std::uint64_t>(change.offset), sector * sector_bytes);
      const auto skip = from - static_cast<std::uint64_t>(change.offset);
      const auto bytes = std::min(change.after.size() - skip, (sector + 1) * sector_bytes - from);
      write_at(fd, static_cast<off_t>(from), std::string_view(change.after).substr(skip, bytes));
    }
    auto& left = resized[change.file];
    if (left == 0) continue;
    --left;
    sizes[change.file] = change.size_after;
  }
  for (const auto& [file, bytes] : sizes) resize(files_.at(file), bytes);
  forget();
}

void DiskModel::lose(const std::function<bool(std::string_view)>& kept) {
  undo_changes();
  for (const Change& change : changes_) {
    if (!kept(change.after)) continue;
    const int fd = files_.at(change.file);
    write_at(fd, change.offset, change.after);
    resize(fd, std::max(size_of(fd), change.size_after));
  }
  forget();
}

}  // namespace kvingest::test
