#include "net/line_cutter.hpp"

#include <xxhash.h>

#include <algorithm>

namespace kvingest::net {

struct LineCutter::Checksum {
  XXH3_state_t* state = XXH3_createState();
  Checksum() { XXH3_64bits_reset(state); }
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum() { XXH3_freeState(state); }
};

LineCutter::LineCutter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}
LineCutter::~LineCutter() = default;

void LineCutter::extend(std::string_view bytes) {
  if (!long_ && carried_.size() + bytes.size() <= line_bytes_max_) {
    carried_.append(bytes);
    return;
  }
  if (!long_) give_up_line();
  if (carried_.size() < kLongLineKeptBytes) carried_.append(bytes.substr(0, kLongLineKeptBytes - carried_.size()));
  long_length_ += bytes.size();
  XXH3_64bits_update(checksum_->state, bytes.data(), bytes.size());
}

void LineCutter::give_up_line() {
  if (long_) return;
  long_ = true;
  long_length_ = carried_.size();
  checksum_ = std::make_unique<Checksum>();
  XXH3_64bits_update(checksum_->state, carried_.data(), carried_.size());
  if (carried_.size() > kLongLineKeptBytes) {
    carried_.resize(kLongLineKeptBytes);
    carried_.shrink_to_fit();
  }
}

LongLine LineCutter::whole_long_line(std::string_view line) const {
  return {line.substr(0, kLongLineKeptBytes), line.size(), XXH3_64bits(line.data(), line.size())};
}

LongLine LineCutter::finish_long_line() const {
  return {carried_, long_length_, XXH3_64bits_digest(checksum_->state)};
}

void LineCutter::forget_unfinished() {
  constexpr std::size_t kKeptCapacity = 4 << 10;  // An idle connection keeps no more than a page.
  carried_.clear();
  if (carried_.capacity() > kKeptCapacity) carried_.shrink_to_fit();
  long_ = false;
  long_length_ = 0;
  checksum_.reset();
}

}  // namespace kvingest::net
