#include "storage/mmap/record_index.hpp"

#include <algorithm>
#include <array>

#include "kvingest/codec/fixed.hpp"

namespace kvingest::mmap_store {
namespace {

using NumberKey = std::array<char, kSeqKeyBytes>;

std::optional<std::uint64_t> number_of(std::string_view key) {
  if (key.size() != kSeqKeyBytes) return std::nullopt;
  return codec::get_ordered<std::uint64_t>(key.data());
}

NumberKey key_of(std::uint64_t number) {
  NumberKey key;
  codec::put_ordered(key.data(), number);
  return key;
}

std::string_view view(const NumberKey& key) {
  return {key.data(), key.size()};
}

// The least number whose key is not less than `key`; nothing when every number's key is less.
std::optional<std::uint64_t> number_from(std::string_view key) {
  NumberKey padded{};
  key.substr(0, padded.size()).copy(padded.data(), padded.size());
  const auto number = codec::get_ordered<std::uint64_t>(padded.data());
  if (key.size() <= kSeqKeyBytes) return number;
  if (number == ~std::uint64_t{0}) return std::nullopt;
  return number + 1;
}

}  // namespace

std::optional<RecordPlace> RecordIndex::find(std::string_view key) const {
  if (const auto number = number_of(key); number && !runs_.empty()) {
    if (const auto place = runs_.find(*number)) return place;
  }
  const auto word = tree_.find(key);
  return word ? std::optional(RecordPlace::from_word(*word)) : std::nullopt;
}

void RecordIndex::find_many(std::span<const std::string_view> keys,
                            std::span<std::optional<RecordPlace>> places) const {
  constexpr std::size_t kAtOnce = 64;
  std::array<std::optional<std::uint64_t>, kAtOnce> words;
  for (std::size_t at = 0; at < keys.size(); at += kAtOnce) {
    const auto some = keys.subspan(at, std::min(kAtOnce, keys.size() - at));
    tree_.find_many(some, std::span(words).first(some.size()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      auto& place = places[at + i];
      place = words[i] ? std::optional(RecordPlace::from_word(*words[i])) : std::nullopt;
      if (place || runs_.empty()) continue;
      if (const auto number = number_of(some[i])) place = runs_.find(*number);
    }
  }
}

std::optional<RecordPlace> RecordIndex::put(std::string_view key, RecordPlace place) {
  std::optional<RecordPlace> before;
  if (const auto number = number_of(key); number && !runs_.empty()) before = runs_.strike_out(*number);
  const auto word = tree_.put(key, place.word());
  return word ? std::optional(RecordPlace::from_word(*word)) : before;
}

std::optional<RecordPlace> RecordIndex::strike_out(std::string_view key) {
  const auto number = number_of(key);
  return number && !runs_.empty() ? runs_.strike_out(*number) : std::nullopt;
}

std::optional<RecordPlace> RecordIndex::erase(std::string_view key) {
  if (const auto number = number_of(key); number && !runs_.empty()) {
    if (const auto before = runs_.strike_out(*number)) return before;
  }
  const auto word = tree_.erase(key);
  return word ? std::optional(RecordPlace::from_word(*word)) : std::nullopt;
}

bool RecordIndex::touches(std::uint64_t first, std::uint32_t count) const {
  if (runs_.touches(first, count)) return true;
  const auto at = tree_.lower_bound(view(key_of(first)));
  if (!at.valid()) return false;
  BplusTree::KeyBuffer buffer;
  return tree_.key(at, buffer) <= view(key_of(first + count - 1));
}

// ---- walking --------------------------------------------------------------------------------------------------------

RecordPlace RecordIndex::Cursor::place() const {
  return at_run_ ? index_->runs_.place(run_) : RecordPlace::from_word(index_->tree_.value(tree_));
}

void RecordIndex::Cursor::show(std::string_view key) noexcept {
  buffered_ = key.size() <= buffer_.size();
  if (buffered_ && key.data() != buffer_.data()) key.copy(buffer_.data(), key.size());
  key_ = key;
}

// Finds which of the two sides comes next in the direction of the walk, and its key.
void RecordIndex::Cursor::choose() {
  at_run_ = false;
  if (!run_.valid) {
    if (tree_.valid()) show(index_->tree_.key(tree_, buffer_));
    return;
  }
  const NumberKey number = key_of(index_->runs_.number(run_));
  at_run_ = true;
  if (tree_.valid()) {
    const std::string_view key = index_->tree_.key(tree_, buffer_);
    at_run_ = (key > view(number)) == forward_;
    if (!at_run_) return show(key);
  }
  show(view(number));
}

void RecordIndex::Cursor::next() {
  if (!forward_) {
    if (at_run_) {
      tree_ = index_->tree_.lower_bound(key());
    } else {
      const auto number = number_from(key());
      run_ = number ? index_->runs_.lower_bound(*number) : RunTable::Position{};
    }
    forward_ = true;
  }
  at_run_ ? index_->runs_.next(run_) : index_->tree_.next(tree_);
  choose();
}

void RecordIndex::Cursor::previous() {
  if (forward_) {
    if (at_run_) {
      tree_ = index_->tree_.before(key());
    } else {
      const auto number = number_from(key());
      run_ = number ? index_->runs_.before(*number) : index_->runs_.last();
    }
    forward_ = false;
  }
  at_run_ ? index_->runs_.previous(run_) : index_->tree_.previous(tree_);
  choose();
}

RecordIndex::Cursor RecordIndex::seek(std::string_view key) const {
  Cursor cursor(*this);
  cursor.tree_ = tree_.lower_bound(key);
  if (!runs_.empty()) {
    if (const auto number = number_from(key)) cursor.run_ = runs_.lower_bound(*number);
  }
  cursor.choose();
  return cursor;
}

RecordIndex::Cursor RecordIndex::first() const {
  Cursor cursor(*this);
  cursor.tree_ = tree_.first();
  cursor.run_ = runs_.first();
  cursor.choose();
  return cursor;
}

RecordIndex::Cursor RecordIndex::last() const {
  Cursor cursor(*this);
  cursor.tree_ = tree_.last();
  cursor.run_ = runs_.last();
  cursor.forward_ = false;
  cursor.choose();
  return cursor;
}

}  // namespace kvingest::mmap_store
