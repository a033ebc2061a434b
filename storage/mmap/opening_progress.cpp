#include "storage/mmap/opening_progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvingest::mmap_store {

OpeningProgress::OpeningProgress(const Notice& notice, std::string what, std::uint64_t total_bytes,
                                 std::chrono::milliseconds every)
    : notice_(notice), what_(std::move(what)), total_(total_bytes), every_(every) {}

void OpeningProgress::look(std::uint64_t done) {
  if (std::this_thread::get_id() != owner_) return;
  looked_at_.store(done, std::memory_order_relaxed);
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + every_;
  const double share = total_ == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  notice_(fmt::format("{}: {} of {} MiB of log read ({:.0f} %), {:.0f} s left", what_, done >> 20, total_ >> 20,
                      share * 100, share > 0 ? seconds / share - seconds : 0.0));
}

}  // namespace kvingest::mmap_store
