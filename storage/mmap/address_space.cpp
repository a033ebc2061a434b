#include "storage/mmap/address_space.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <iterator>
#include <utility>

namespace kvingest::mmap_store {
namespace {

#if defined(__SANITIZE_THREAD__)
#define KVINGEST_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KVINGEST_UNDER_TSAN 1
#endif
#endif

#if defined(KVINGEST_UNDER_TSAN)
constexpr std::uint64_t kBytesWished = std::uint64_t{256} << 30;  // ThreadSanitizer lets a program map about 1 TiB.
#else
// More than the disk of any machine we know; page tables and the table of owners grow with what is used.
constexpr std::uint64_t kBytesWished = std::uint64_t{16} << 40;
#endif
constexpr std::uint64_t kBytesMin = std::uint64_t{1} << 30;
constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static_assert(kBytesWished <= std::uint64_t{1} << AddressSpace::kPlaceBits);

std::uint64_t whole_granules(std::uint64_t bytes, unsigned granule_bits) {
  const std::uint64_t granule = std::uint64_t{1} << granule_bits;
  return (bytes + granule - 1) & ~(granule - 1);
}

}  // namespace

Result<AddressSpace> AddressSpace::reserve(const Posix& posix) {
  for (std::uint64_t bytes = kBytesWished; bytes >= kBytesMin; bytes /= 2) {
    void* base = posix.mmap(nullptr, bytes, PROT_NONE, kReserved, -1, 0);
    if (base == MAP_FAILED) continue;
    const std::size_t table_bytes = (bytes >> kGranuleBits) * sizeof(std::atomic<Segment*>);
    void* table = posix.mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, kReserved, -1, 0);
    if (table == MAP_FAILED) {
      const int error = errno;
      posix.munmap(base, bytes);
      return fail(error, "reserve the table of {} bytes of addresses", bytes);
    }
    // Fresh anonymous memory is zero, and a null atomic pointer is all zero.
    return AddressSpace(posix, static_cast<char*>(base), static_cast<std::atomic<Segment*>*>(table), bytes);
  }
  return fail(errno, "reserve {} bytes of addresses for the log (is `ulimit -v` set?)", kBytesMin);
}

AddressSpace::AddressSpace(const Posix& posix, char* base, std::atomic<Segment*>* owners, std::uint64_t bytes)
    : posix_(&posix), base_(base), owners_(owners), bytes_(bytes), free_{{0, bytes}} {}

AddressSpace::AddressSpace(AddressSpace&& other) noexcept
    : posix_(other.posix_),
      base_(std::exchange(other.base_, nullptr)),
      owners_(other.owners_),
      bytes_(other.bytes_),
      free_(std::move(other.free_)) {}

AddressSpace::~AddressSpace() {
  if (base_ == nullptr) return;
  posix_->munmap(base_, bytes_);
  posix_->munmap(owners_, (bytes_ >> kGranuleBits) * sizeof(std::atomic<Segment*>));
}

Result<Place> AddressSpace::map(const File& file, std::uint64_t bytes, bool writable, Segment& owner) {
  const std::uint64_t taken = whole_granules(bytes, kGranuleBits);
  const std::scoped_lock lock(mutex_);
  auto range = free_.begin();
  while (range != free_.end() && range->second < taken) ++range;
  if (range == free_.end()) {
    return fail(Code::no_space, "map {}: no {} free bytes of addresses left of {}", file.path().native(), bytes,
                bytes_);
  }
  const Place base = range->first;
  const std::uint64_t rest = range->second - taken;
  free_.erase(range);
  if (rest > 0) free_.emplace(base + taken, rest);
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  if (posix_->mmap(base_ + base, bytes, protection, MAP_SHARED | MAP_FIXED, file.fd(), 0) == MAP_FAILED) {
    const int error = errno;
    unmap_locked(base, bytes);
    return fail(error, "mmap {} bytes of {}", bytes, file.path().native());
  }
  own(base, bytes, &owner);
  return base;
}

void AddressSpace::unmap(Place base, std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  unmap_locked(base, bytes);
}

void AddressSpace::unmap_locked(Place base, std::uint64_t bytes) noexcept {
  own(base, bytes, nullptr);
  const std::uint64_t taken = whole_granules(bytes, kGranuleBits);
  // Where the reservation cannot be put back, others may map there: such a range is not used again.
  if (posix_->mmap(base_ + base, taken, PROT_NONE, kReserved | MAP_FIXED, -1, 0) == MAP_FAILED) return;
  holds_ > 0 ? static_cast<void>(held_.emplace(base, taken)) : give_back(base, taken);
}

AddressSpace::Hold::Hold(AddressSpace& space) : space_(space) {
  const std::scoped_lock lock(space_.mutex_);
  ++space_.holds_;
}

AddressSpace::Hold::~Hold() {
  const std::scoped_lock lock(space_.mutex_);
  if (--space_.holds_ > 0) return;
  for (const auto& [base, bytes] : std::exchange(space_.held_, {})) space_.give_back(base, bytes);
}

void AddressSpace::own(Place base, std::uint64_t bytes, Segment* owner) noexcept {
  for (Place at = base; at < base + bytes; at += std::uint64_t{1} << kGranuleBits) {
    owners_[at >> kGranuleBits].store(owner, std::memory_order_release);
  }
}

void AddressSpace::give_back(Place base, std::uint64_t bytes) {
  auto [at, added] = free_.emplace(base, bytes);
  if (const auto after = std::next(at); after != free_.end() && at->first + at->second == after->first) {
    at->second += after->second;
    free_.erase(after);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

}  // namespace kvingest::mmap_store
