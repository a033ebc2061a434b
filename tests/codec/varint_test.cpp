// One varint at a time: the forms of the specifications, and everything that is malformed.
#include "kvingest/codec/varint.hpp"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest::codec {
namespace {

using namespace std::string_literals;

template <class T>
std::vector<T> edges() {
  std::vector<T> values = {0, 1, std::numeric_limits<T>::max()};
  for (unsigned bit = 1; bit < 8 * sizeof(T); ++bit) {
    const T power = T{1} << bit;
    values.insert(values.end(), {power - 1, power, power + 1});
  }
  return values;
}

std::string leb128(std::uint64_t value) {
  char room[kVarint64BytesMax];
  return {room, put_varint(room, value)};
}

std::string stop_bit(std::uint64_t value) {
  char room[kVarint64BytesMax];
  return {room, put_stop_bit(room, value)};
}

template <class T>
Fault leb128_fault(const std::string& bytes) {
  T value = 77;
  const VarintEnd read = read_varint(bytes.data(), bytes.data() + bytes.size(), value);
  CHECK((read.next == nullptr) == (read.fault != Fault::none));
  if (read.fault != Fault::none) CHECK(value == 77);
  return read.fault;
}

template <class T>
Fault stop_bit_fault(const std::string& bytes) {
  T value = 77;
  const VarintEnd read = read_stop_bit(bytes.data(), bytes.data() + bytes.size(), value);
  CHECK((read.next == nullptr) == (read.fault != Fault::none));
  if (read.fault != Fault::none) CHECK(value == 77);
  return read.fault;
}

TEST_CASE("varints have the bytes of their specifications") {
  CHECK(leb128(1) == "\x01");
  CHECK(leb128(300) == "\xAC\x02");
  CHECK(leb128(~std::uint64_t{0}) == "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
  CHECK(stop_bit(0) == "\x80");
  CHECK(stop_bit(300) == "\x02\xAC");
  CHECK(stop_bit(942755) == "\x39\x45\xA3");  // The example of FAST 1.1, appendix 3.1.5.
  CHECK(stop_bit(~std::uint64_t{0}) == "\x01\x7F\x7F\x7F\x7F\x7F\x7F\x7F\x7F\xFF");
}

TEMPLATE_TEST_CASE("each varint comes back from exactly its bytes, in both forms", "", std::uint32_t, std::uint64_t) {
  for (const TestType value : edges<TestType>()) {
    for (const bool is_leb128 : {true, false}) {
      const std::string bytes = is_leb128 ? leb128(value) : stop_bit(value);
      INFO(value);
      CHECK(bytes.size() == varint_size(value));
      const std::string more = bytes + "\x81";
      TestType got = ~value;
      const VarintEnd read = is_leb128 ? read_varint(more.data(), more.data() + more.size(), got)
                                       : read_stop_bit(more.data(), more.data() + more.size(), got);
      CHECK(read.next == more.data() + bytes.size());
      CHECK(got == value);
    }
  }
}

TEMPLATE_TEST_CASE("a varint that is cut anywhere is not finished", "", std::uint32_t, std::uint64_t) {
  for (const TestType value : edges<TestType>()) {
    for (std::size_t cut = 0; cut < varint_size(value); ++cut) {
      CHECK(leb128_fault<TestType>(leb128(value).substr(0, cut)) == Fault::unfinished);
      CHECK(stop_bit_fault<TestType>(stop_bit(value).substr(0, cut)) == Fault::unfinished);
    }
  }
}

TEST_CASE("a varint that is too long or does not fit is a fault of its own") {
  CHECK(leb128_fault<std::uint32_t>(std::string(4, '\x80') + "\x0F") == Fault::none);
  CHECK(leb128_fault<std::uint32_t>(std::string(4, '\x80') + "\x10") == Fault::overflow);
  CHECK(leb128_fault<std::uint32_t>(std::string(5, '\x80')) == Fault::too_long);
  CHECK(leb128_fault<std::uint64_t>(std::string(9, '\x80') + "\x01") == Fault::none);
  CHECK(leb128_fault<std::uint64_t>(std::string(9, '\x80') + "\x02") == Fault::overflow);
  CHECK(leb128_fault<std::uint64_t>(std::string(10, '\x80')) == Fault::too_long);
  CHECK(stop_bit_fault<std::uint32_t>("\x0F" + std::string(3, '\x7F') + "\xFF") == Fault::none);
  CHECK(stop_bit_fault<std::uint32_t>("\x10" + std::string(3, '\x00') + "\x80") == Fault::overflow);
  CHECK(stop_bit_fault<std::uint32_t>("\x01" + std::string(4, '\x00')) == Fault::too_long);
  CHECK(stop_bit_fault<std::uint64_t>("\x01" + std::string(8, '\x7F') + "\xFF") == Fault::none);
  CHECK(stop_bit_fault<std::uint64_t>("\x02" + std::string(8, '\x00') + "\x80") == Fault::overflow);
  CHECK(stop_bit_fault<std::uint64_t>("\x01" + std::string(9, '\x00')) == Fault::too_long);
}

TEST_CASE("padding is taken in LEB128, as protobuf does, and refused in the stop-bit form, as FAST does") {
  CHECK(leb128_fault<std::uint32_t>("\x81\x80\x00"s) == Fault::none);
  CHECK(stop_bit_fault<std::uint32_t>("\x00\x81"s) == Fault::padded);
  CHECK(stop_bit_fault<std::uint64_t>("\x00"s) == Fault::padded);
}

TEST_CASE("zigzag keeps small numbers small and every number itself") {
  CHECK(zigzag(std::int32_t{0}) == 0);
  CHECK(zigzag(std::int32_t{-1}) == 1);
  CHECK(zigzag(std::int32_t{1}) == 2);
  CHECK(zigzag(std::int64_t{-2}) == 3);
  CHECK(zigzag(std::numeric_limits<std::int32_t>::min()) == 0xFFFFFFFF);
  CHECK(zigzag(std::numeric_limits<std::int64_t>::max()) == 0xFFFFFFFFFFFFFFFE);
  for (const std::uint64_t value : edges<std::uint64_t>()) CHECK(zigzag(unzigzag(value)) == value);
  for (const std::uint32_t value : edges<std::uint32_t>()) CHECK(zigzag(unzigzag(value)) == value);
}

}  // namespace
}  // namespace kvingest::codec
