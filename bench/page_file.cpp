#include "bench/page_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <random>
#include <vector>

#include "bench/clock.hpp"
#include "bench/stores_records.hpp"
#include "kvingest/codec/fixed.hpp"

namespace kvingest::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPagesAtOnce = 256;

/// As an owner of memory that O_DIRECT can read to.
struct FreeAligned {
  void operator()(char* bytes) const noexcept { ::operator delete[](bytes, std::align_val_t{kPageBytes}); }
};

std::uint64_t major_faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_majflt);
}

bool write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  return out.good();
}

/// One page at a time, through a mapping or by a call.
class PageReader {
 public:
  static Result<PageReader> open(const fs::path& path, std::string_view way) {
    auto file = File::open(Posix::real(), path, O_RDONLY | (way == "direct" ? O_DIRECT : 0));
    if (!file && way == "direct" && file.error().sys_errno == EINVAL)
      return fail(Code::unsupported, "the file system of {} has no O_DIRECT", path.native());
    KV_TRY(file);
    auto bytes = file->size();
    KV_TRY(bytes);
    PageReader reader;
    reader.pages_ = *bytes / kPageBytes;
    if (way == "mmap") {
      auto mapping = Mapping::map(*file, *bytes, false);
      KV_TRY(mapping);
      ::madvise(mapping->data(), *bytes, MADV_RANDOM);  // As for pread: one page is read, not those around it.
      reader.mapping_ = std::make_unique<Mapping>(*std::move(mapping));
    } else {
      ::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_RANDOM);
    }
    reader.file_ = *std::move(file);
    return reader;
  }

  [[nodiscard]] std::uint64_t pages() const noexcept { return pages_; }

  /// The number that the page begins with.
  Result<std::uint64_t> read(std::uint64_t page) const {
    if (mapping_ != nullptr) return codec::get_fixed<std::uint64_t>(mapping_->data() + page * kPageBytes);
    KV_TRY(file_.read_at(room_.get(), kPageBytes, page * kPageBytes));
    return codec::get_fixed<std::uint64_t>(room_.get());
  }

 private:
  File file_;
  std::unique_ptr<Mapping> mapping_;
  std::unique_ptr<char[], FreeAligned> room_{
      static_cast<char*>(::operator new[](kPageBytes, std::align_val_t{kPageBytes}))};
  std::uint64_t pages_ = 0;
};

Result<void> read_at_random(const PageReader& reader, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = from; i < to; ++i) {
    const std::uint64_t page = scattered(i) % reader.pages();
    auto number = reader.read(page);
    KV_TRY(number);
    if (*number != page) return fail(Code::corrupt, "page {} begins with {}", page, *number);
  }
  return {};
}

}  // namespace

Result<File> make_page_file(const fs::path& path, std::uint64_t pages) {
  auto file = File::open(Posix::real(), path, O_RDWR | O_CREAT | O_TRUNC);
  KV_TRY(file);
  std::vector<char> bytes(kPagesAtOnce * kPageBytes, 'x');
  for (std::uint64_t page = 0; page < pages;) {
    const std::uint64_t first = page;
    std::size_t taken = 0;
    for (; taken < kPagesAtOnce && page < pages; ++taken, ++page)
      codec::put_fixed(bytes.data() + taken * kPageBytes, page);
    KV_TRY(file->write_at({bytes.data(), taken * kPageBytes}, first * kPageBytes));
  }
  KV_TRY(file->sync_all());
  return file;
}

void drop_from_cache(const File& file) {
  ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
}

Result<Mapping> Mapping::map(const File& file, std::uint64_t bytes, bool writable, int flags) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | flags, file.fd(), 0);
  if (data == MAP_FAILED) return fail(errno, "map {}", file.path().native());
  return Mapping(static_cast<char*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

double Mapping::residency() const {
  std::vector<unsigned char> pages((bytes_ + kPageBytes - 1) / kPageBytes);
  if (::mincore(data_, bytes_, pages.data()) != 0) return 0;
  const auto resident = std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<double>(resident) / static_cast<double>(pages.size());
}

std::uint64_t Mapping::touch_all() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < bytes_; at += kPageBytes) sum += codec::get_fixed<std::uint64_t>(data_ + at);
  return sum;
}

Result<MemoryLimit> MemoryLimit::make(std::uint64_t bytes) {
  struct Version {
    const char* parent;
    const char* limit;
  };
  constexpr std::array kVersions = {Version{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                    Version{"/sys/fs/cgroup", "memory.max"}};
  for (const auto& [parent, limit] : kVersions) {
    const fs::path dir = fs::path(parent) / fmt::format("kvbench-{}", ::getpid());
    std::error_code error;
    if (!fs::create_directory(dir, error)) continue;
    MemoryLimit made(dir);
    if (write_text(dir / limit, std::to_string(bytes))) return made;
  }
  return fail(Code::unsupported, "no group with a bound on its memory may be made in /sys/fs/cgroup");
}

MemoryLimit::~MemoryLimit() {
  if (!dir_.empty()) ::rmdir(dir_.c_str());
}

Result<PageReads> read_pages(const fs::path& path, std::string_view way, std::uint64_t reads,
                             const std::optional<std::string>& group) {
  if (group && !write_text(fs::path(*group) / "cgroup.procs", std::to_string(::getpid())))
    return fail(Code::io_error, "join the group {}", *group);
  auto reader = PageReader::open(path, way);
  KV_TRY(reader);
  KV_TRY(read_at_random(*reader, 0, reads));
  const std::uint64_t faults_before = major_faults();
  const auto start = Clock::now();
  KV_TRY(read_at_random(*reader, reads, 2 * reads));
  return PageReads{ns_since(start) / static_cast<double>(reads), major_faults() - faults_before};
}

}  // namespace kvingest::bench
