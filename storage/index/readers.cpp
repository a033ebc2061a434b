#include "storage/index/readers.hpp"

#include <algorithm>
#include <utility>

namespace kvingest {

Readers::Reader::Reader(Readers& readers, std::uint64_t sequence)
    : readers_(readers), sequence_(sequence), keys_{.empty = true} {
  readers_.add(*this);
}

Readers::Reader::Reader(Readers& readers, std::uint64_t sequence, Space space, KeyInterval keys)
    : readers_(readers), sequence_(sequence), space_(space), keys_(std::move(keys)) {
  readers_.add(*this);
}

Readers::Reader::~Reader() {
  const std::scoped_lock lock(readers_.mutex_);
  std::erase(readers_.active_, this);
}

void Readers::add(Reader& reader) {
  const std::scoped_lock lock(mutex_);
  reader.begun_before_ = begun_++;
  active_.push_back(&reader);
}

std::uint64_t Readers::count() const {
  const std::scoped_lock lock(mutex_);
  return begun_;
}

bool Readers::any_before(std::uint64_t count) const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(active_.begin(), active_.end(),
                     [&](const Reader* reader) { return reader->begun_before_ < count; });
}

std::uint64_t Readers::oldest() const {
  const std::scoped_lock lock(mutex_);
  return frozen_oldest();
}

std::uint64_t Readers::frozen_oldest() const noexcept {
  std::uint64_t oldest = kNone;
  for (const Reader* reader : active_) oldest = std::min(oldest, reader->sequence_);
  return oldest;
}

bool Readers::frozen_need(Space space, std::string_view key) const noexcept {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const Reader* reader) { return reader->space_ == space && reader->keys_.contains(key); });
}

bool Readers::frozen_need_from(Space space, std::string_view first) const noexcept {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const Reader* reader) { return reader->space_ == space && reader->keys_.reaches(first); });
}

}  // namespace kvingest
