#include "bench/stores_records.hpp"

#include <array>
#include <cstring>
#include <random>

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kSeries = 1'000;
constexpr std::size_t kRecordBytes = kStoresKeyBytes + kStoresValueBytes;
constexpr std::size_t kNoiseBytes = std::size_t{64} << 10;

/// Values are cut from here, behind their number: bytes that no engine can compress away.
const std::array<char, kNoiseBytes>& noise() {
  static const auto instance = [] {
    std::array<char, kNoiseBytes> bytes;
    std::mt19937_64 random(1);
    for (std::size_t at = 0; at < bytes.size(); at += 8) codec::put_fixed(bytes.data() + at, random());
    return bytes;
  }();
  return instance;
}

/// `digits` decimal digits.
void put_decimal(char* to, std::size_t digits, std::uint64_t number) noexcept {
  for (std::size_t i = digits; i > 0; --i, number /= 10) to[i - 1] = static_cast<char>('0' + number % 10);
}

void put_key(char* to, KeyOrder order, std::uint64_t number) noexcept {
  switch (order) {
    case KeyOrder::sequential:
      return put_decimal(to, kStoresKeyBytes, number);
    case KeyOrder::series:
      put_decimal(to, 4, number % kSeries);
      return put_decimal(to + 4, kStoresKeyBytes - 4, number / kSeries);
    case KeyOrder::random:
      break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::uint64_t bits = scattered(number);
  for (std::size_t i = 0; i < kStoresKeyBytes; ++i, bits >>= 4) to[i] = kHex[bits & 15];
}

void put_value(char* to, std::uint64_t number) noexcept {
  constexpr std::size_t kRest = kStoresValueBytes - 8;
  codec::put_fixed(to, number);
  std::memcpy(to + 8, noise_for(number, kRest), kRest);
}

}  // namespace

const char* noise_for(std::uint64_t number, std::size_t bytes) noexcept {
  return noise().data() + number * 8 % (kNoiseBytes - bytes);
}

std::string_view to_string(KeyOrder order) noexcept {
  switch (order) {
    case KeyOrder::sequential:
      return "sequential";
    case KeyOrder::series:
      return "series";
    case KeyOrder::random:
      break;
  }
  return "random";
}

// The finalizer of splitmix64: each step can be undone, so it is one to one.
std::uint64_t scattered(std::uint64_t number) noexcept {
  number += 0x9E3779B97F4A7C15U;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EBU;
  return number ^ (number >> 31);
}

void RecordGroup::begin(std::size_t count) {
  bytes_.resize(count * kRecordBytes);
  at_ = 0;
  records_.clear();
  keys_.clear();
  sum_ = 0;
}

void RecordGroup::add(KeyOrder order, std::uint64_t number) {
  char* const key = bytes_.data() + at_;
  char* const value = key + kStoresKeyBytes;
  put_key(key, order, number);
  put_value(value, number);
  records_.push_back({{key, kStoresKeyBytes}, {value, kStoresValueBytes}});
  keys_.push_back(records_.back().key);
  sum_ += number;
  at_ += kRecordBytes;
}

void RecordGroup::fill(KeyOrder order, std::uint64_t first, std::size_t count) {
  begin(count);
  for (std::size_t i = 0; i < count; ++i) add(order, first + i);
}

void RecordGroup::pick(KeyOrder order, std::uint64_t records, std::uint64_t turn, std::size_t count) {
  begin(count);
  for (std::size_t i = 0; i < count; ++i) add(order, scattered(turn * count + i + records) % records);
}

}  // namespace kvingest::bench
