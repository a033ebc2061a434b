#include "kvingest/write_batch.hpp"

#include <charconv>

namespace kvingest {
namespace {

constexpr std::size_t kNumberDigits = 20;  // Of 2^64 - 1: text order is number order.

void write_digits(char* to, std::uint64_t number) noexcept {
  for (std::size_t i = kNumberDigits; i-- > 0; number /= 10) to[i] = static_cast<char>('0' + number % 10);
}

}  // namespace

void WriteBatch::check_key(std::size_t bytes) {
  if (bytes - 1 < kKeyBytesMax || problem_) return;  // 0 wraps.
  problem_ = bytes == 0 ? Error{Code::invalid_argument, 0, "an empty key; a key has at least 1 byte"}
                        : Error{Code::too_large, 0, fmt::format("a key of {} bytes; at most {}", bytes, kKeyBytesMax)};
}

void WriteBatch::check_value(std::size_t bytes) {
  if (bytes <= kValueBytesMax || problem_) return;
  problem_ = Error{Code::too_large, 0, fmt::format("a value of {} bytes; at most {}", bytes, kValueBytesMax)};
}

char* WriteBatch::open_put(Kind kind, std::size_t key_bytes, std::size_t value_bytes) {
  check_key(key_bytes);
  check_value(value_bytes);
  char* const at =
      bytes_.extend(1 + codec::varint_size(key_bytes) + codec::varint_size(value_bytes) + key_bytes + value_bytes);
  *at = static_cast<char>(kind);
  run_ = kNoRun;
  return codec::put_varint(codec::put_varint(at + 1, key_bytes), value_bytes);
}

void WriteBatch::append_put(Kind kind, std::string_view key, std::string_view value) {
  char* const at = open_put(kind, key.size(), value.size());
  codec::copy_short(codec::copy_short(at, key.data(), key.size()), value.data(), value.size());
}

void WriteBatch::append_erase(Kind kind, std::string_view key) {
  check_key(key.size());
  char* at = bytes_.extend(1 + codec::varint_size(key.size()) + key.size());
  *at++ = static_cast<char>(kind);
  codec::copy_short(codec::put_varint(at, key.size()), key.data(), key.size());
  run_ = kNoRun;
}

void WriteBatch::open_run() {
  run_ = bytes_.size();
  run_count_ = 0;
  holes_.push_back({run_ + 9, puts_, false});
  char* const header = bytes_.extend(kRunHeaderBytes);
  std::memset(header, 0, kRunHeaderBytes);
  *header = static_cast<char>(Kind::run);
}

void WriteBatch::put_with_number(std::string_view key, const std::vector<std::uint32_t>& holes,
                                 std::string_view value) {
  put(key, value);
  const std::size_t key_at = bytes_.size() - value.size() - key.size();
  for (const std::uint32_t hole : holes) holes_.push_back({key_at + hole, puts_ - 1, true});
}

std::uint64_t WriteBatch::number(std::uint64_t first) {
  for (const Hole& hole : holes_) {
    char* at = bytes_.data() + hole.offset;
    hole.digits ? write_digits(at, first + hole.index) : codec::put_fixed(at, first + hole.index);
  }
  return first + puts_;
}

void WriteBatch::append(const WriteBatch& other) {
  const std::size_t base = bytes_.size();
  bytes_.append(other.bytes());
  for (const Hole& hole : other.holes_) holes_.push_back({base + hole.offset, puts_ + hole.index, hole.digits});
  puts_ += other.puts_;
  run_ = kNoRun;
  if (!problem_) problem_ = other.problem_;
}

void WriteBatch::clear() noexcept {
  bytes_.clear();
  holes_.clear();
  puts_ = 0;
  run_ = kNoRun;
  problem_.reset();
}

Result<void> WriteBatch::check() const {
  if (problem_) return tl::unexpected<Error>(*problem_);
  if (bytes_.size() > kBatchBytesMax) {
    return fail(Code::too_large, "a batch of {} bytes; at most {}", bytes_.size(), kBatchBytesMax);
  }
  return {};
}

Result<bool> BatchReader::next(BatchEntry& entry) {
  if (at_ == bytes_.size()) return false;
  const char* const end = bytes_.data() + bytes_.size();
  const char* at = bytes_.data() + at_;
  const auto left = [&] { return static_cast<std::uint64_t>(end - at); };
  const auto damaged = [&](std::string_view what) {
    return fail(Code::corrupt, "batch: {} at offset {} of {}", what, at_, bytes_.size());
  };
  entry = BatchEntry{};
  entry.kind = static_cast<WriteBatch::Kind>(*at++);
  entry.count = 1;
  entry.offset = at_;
  std::uint64_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
  switch (entry.kind) {
    case WriteBatch::Kind::put:
    case WriteBatch::Kind::put_meta:
      at = codec::get_varint(at, end, key_bytes);
      if (at != nullptr) at = codec::get_varint(at, end, value_bytes);
      break;
    case WriteBatch::Kind::erase:
    case WriteBatch::Kind::erase_meta:
      at = codec::get_varint(at, end, key_bytes);
      break;
    case WriteBatch::Kind::run:
      if (left() < 16) return damaged("a cut run header");
      entry.count = codec::get_fixed<std::uint32_t>(at);
      value_bytes = codec::get_fixed<std::uint32_t>(at + 4);
      entry.first = codec::get_fixed<std::uint64_t>(at + 8);
      at += 16;
      break;
    default:
      return damaged("an unknown kind of entry");
  }
  if (at == nullptr) return damaged("a bad length");
  if (key_bytes > left() || value_bytes > left() - key_bytes) return damaged("a length beyond the end");
  entry.key = std::string_view(at, key_bytes);
  entry.value = std::string_view(at + key_bytes, value_bytes);
  at_ = static_cast<std::size_t>(at + key_bytes + value_bytes - bytes_.data());
  return true;
}

}  // namespace kvingest
