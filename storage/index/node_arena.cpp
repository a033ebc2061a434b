#include "storage/index/node_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace kvingest {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kPrefaultStepBytes = 2 * kHugePageBytes;  // About 0.5 ms of zeroing: bounded work per call.
constexpr std::size_t kPrefaultAheadBytesMin = kHugePageBytes;
constexpr std::size_t kPrefaultAheadBytesMax = 8 * kHugePageBytes;  // 600,000 keys in order: 40 ms of a fast writer.

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Result<NodeArena> NodeArena::reserve(std::size_t slot_bytes, std::size_t bytes_max) {
  KV_ASSERT(slot_bytes >= sizeof(Id));
  std::size_t bytes = rounded_up(std::max(bytes_max, kHugePageBytes), kHugePageBytes);
  while (true) {
    // One huge page more than asked, so that the first slot can begin on a huge page.
    void* got = ::mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got != MAP_FAILED) {
      const auto address = reinterpret_cast<std::uintptr_t>(got);
      auto* base = static_cast<char*>(got) + (rounded_up(address, kHugePageBytes) - address);
      const std::size_t skipped = static_cast<std::size_t>(base - static_cast<char*>(got));
      if (skipped > 0) ::munmap(got, skipped);
      if (skipped < kHugePageBytes) ::munmap(base + bytes, kHugePageBytes - skipped);
      ::madvise(base, bytes, MADV_HUGEPAGE);  // A wish: without huge pages all is slower and still right.
      ::madvise(base, bytes, MADV_DONTFORK);  // A child that is about to exec need not copy page tables of gigabytes.
      const std::size_t slots =
          std::min<std::size_t>(std::min(bytes, std::max(bytes_max, 16 * slot_bytes)) / slot_bytes, kNone);
      return NodeArena(base, slot_bytes, bytes, slots);
    }
    if (bytes <= kHugePageBytes) return fail(errno, "reserve {} bytes of address space for an index", bytes_max);
    bytes = rounded_up(bytes / 2, kHugePageBytes);
  }
}

NodeArena::NodeArena(char* base, std::size_t slot_bytes, std::size_t mapped_bytes, std::size_t slots_max) noexcept
    : base_(base), slot_bytes_(slot_bytes), mapped_bytes_(mapped_bytes), slots_max_(slots_max) {}

NodeArena::NodeArena(NodeArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      slot_bytes_(other.slot_bytes_),
      mapped_bytes_(other.mapped_bytes_),
      slots_max_(other.slots_max_),
      free_(other.free_),
      used_(other.used_.load()),
      high_water_(other.high_water_.load()),
      prefaulted_(other.prefaulted_.load()) {}

NodeArena::~NodeArena() {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
}

NodeArena::Id NodeArena::allocate() noexcept {
  const std::size_t used = used_.load(std::memory_order_relaxed);
  KV_ASSERT(used < slots_max_);
  used_.store(used + 1, std::memory_order_relaxed);
  if (free_ != kNone) {
    const Id id = free_;
    std::memcpy(&free_, at(id), sizeof free_);
    return id;
  }
  const std::size_t next = high_water_.load(std::memory_order_relaxed);
  high_water_.store(next + 1, std::memory_order_relaxed);
  return static_cast<Id>(next);
}

void NodeArena::release(Id id) noexcept {
  std::memcpy(at(id), &free_, sizeof free_);
  free_ = id;
  used_.store(used_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void NodeArena::restart(std::size_t count) noexcept {
  KV_ASSERT(count <= slots_max_);
  free_ = kNone;
  used_.store(count, std::memory_order_relaxed);
  high_water_.store(count, std::memory_order_relaxed);
}

// How many bytes from the beginning should be backed now.
std::size_t NodeArena::prefault_goal() const noexcept {
  const std::size_t taken = high_water_.load(std::memory_order_relaxed) * slot_bytes_;
  if (taken == 0) return 0;  // A store that never uses this tree pays nothing for it.
  return std::min(mapped_bytes_, taken + std::clamp(taken, kPrefaultAheadBytesMin, kPrefaultAheadBytesMax));
}

bool NodeArena::prefault() noexcept {
  const std::size_t from = prefaulted_.load(std::memory_order_relaxed);
  if (from >= prefault_goal()) return false;
  const std::size_t bytes = std::min(kPrefaultStepBytes, mapped_bytes_ - from);
  // Older kernels (before 5.14) lack the call; then the writer takes the faults itself.
  if (::madvise(base_ + from, bytes, MADV_POPULATE_WRITE) != 0 && errno == EINVAL) {
    prefaulted_.store(mapped_bytes_, std::memory_order_relaxed);
    return false;
  }
  prefaulted_.store(from + bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace kvingest
