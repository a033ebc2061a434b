#include "storage/mmap/checkpointer.hpp"

#include <algorithm>

namespace kvingest::mmap_store {

void Checkpointer::write_in_background() {
  write();
  busy_ = false;
}

void Checkpointer::write() {
  const std::uint64_t at = log_.bytes_behind_checkpoint();  // Of what comes while it is written, part may be in it.
  const auto done = writer_.write(stop_);
  if (!done) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    next_at_ = at + bytes_between_;
  } else if (*done) {
    written_.fetch_add(1, std::memory_order_relaxed);
    file_bytes_ = (*done)->file_bytes;
    covered_ = at;
    next_at_ = at + std::max(bytes_between_, kFileSizesBetween * (*done)->file_bytes);
  }
}

void Checkpointer::stop() {
  stop_ = true;
  worker_.stop();
}

void Checkpointer::write_at_close() {
  if (behind_bytes() < bytes_between_ / kCloseShare) return;
  stop_ = false;
  write();
}

}  // namespace kvingest::mmap_store
