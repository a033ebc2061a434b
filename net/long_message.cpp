#include "net/long_message.hpp"

#include <xxhash.h>

namespace kvingest::net {

struct LongMessageBuilder::Checksum {
  XXH3_state_t* state = XXH3_createState();
  Checksum() { XXH3_64bits_reset(state); }
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  ~Checksum() { XXH3_freeState(state); }
};

LongMessageBuilder::LongMessageBuilder() = default;
LongMessageBuilder::~LongMessageBuilder() = default;

LongMessage whole_long_message(std::string_view message) noexcept {
  return {message.substr(0, kLongMessageKeptBytes), message.size(), XXH3_64bits(message.data(), message.size())};
}

void LongMessageBuilder::begin(std::string first) {
  checksum_ = std::make_unique<Checksum>();
  length_ = first.size();
  XXH3_64bits_update(checksum_->state, first.data(), first.size());
  kept_ = std::move(first);
  if (kept_.size() > kLongMessageKeptBytes) {
    kept_.resize(kLongMessageKeptBytes);
    kept_.shrink_to_fit();
  }
}

void LongMessageBuilder::extend(std::string_view bytes) {
  if (kept_.size() < kLongMessageKeptBytes) kept_.append(bytes.substr(0, kLongMessageKeptBytes - kept_.size()));
  length_ += bytes.size();
  XXH3_64bits_update(checksum_->state, bytes.data(), bytes.size());
}

LongMessage LongMessageBuilder::finish() const noexcept {
  return {kept_, length_, XXH3_64bits_digest(checksum_->state)};
}

void LongMessageBuilder::forget() {
  if (!active()) return;
  net::forget(kept_);
  length_ = 0;
  checksum_.reset();
}

void forget(std::string& buffer) {
  constexpr std::size_t kKeptCapacity = 4 << 10;
  buffer.clear();
  if (buffer.capacity() > kKeptCapacity) buffer.shrink_to_fit();
}

}  // namespace kvingest::net
