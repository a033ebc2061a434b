// Arrays of integers: every way of writing and reading them against the plain loop, on inputs of every kind and damage.
#include "kvingest/codec/integer_array.hpp"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/expect.hpp"

namespace kvingest::codec {
namespace {

constexpr Form kForms[] = {Form::fixed, Form::leb128, Form::stop_bit};

template <class T>
std::string encode(Form form, const std::vector<T>& values, Path path) {
  // Exactly the room that is promised, so that a sanitizer sees the first byte written beyond it.
  const std::unique_ptr<char[]> room(new char[encoded_bytes_max<T>(values.size())]);
  const char* const end = encode_array<T>(form, values, room.get(), path);
  return {room.get(), static_cast<std::size_t>(end - room.get())};
}

/// What decoding gives: the text of its error, or the bytes used; and the values before the fault.
template <class T>
struct Outcome {
  std::string said;
  std::vector<T> values;
  bool operator==(const Outcome&) const = default;
};

template <class T>
Outcome<T> decode(Form form, const std::string& bytes, std::size_t count, Path path, std::size_t good_values) {
  // Memory of their own sizes for the input and the values, for the same reason.
  const std::unique_ptr<char[]> input(new char[bytes.size()]);
  bytes.copy(input.get(), bytes.size());
  std::vector<T> values(count);
  const auto used = decode_array<T>(form, {input.get(), bytes.size()}, values, path);
  if (!used) values.resize(std::min(good_values, count));
  return {used ? std::to_string(*used) : used.error().text, std::move(values)};
}

/// Values of mixed lengths: `kind` says how.
template <class T>
std::vector<T> make_values(std::mt19937_64& random, unsigned kind, std::size_t count) {
  constexpr unsigned kBits = 8 * sizeof(T);
  std::vector<T> values(count);
  for (T& value : values) {
    const auto any = static_cast<T>(random());
    switch (kind) {
      case 0:
        value = any & 0x7F;
        break;
      case 1:
        value = any & 0x3FFF;
        break;
      case 2:
        value = (random() % 8 == 0 ? any & 0x3FFF : any & 0x7F);
        break;
      case 3:
        value = (any & 0x1FFFFF) | 0x4000;
        break;
      case 4:
        value = (any & 0xFFFFFFF) | 0x200000;
        break;
      case 5:
        value = T{1} << 29;
        break;
      case 6:
        value = any;
        break;
      case 7:
        value = any >> (random() % kBits);
        break;
      default:
        value = (random() % 30 == 0 ? any : any & 0x7F);
        break;
    }
  }
  return values;
}
constexpr unsigned kKinds = 9;

TEST_CASE("the worked example of the header is what an array holds") {
  const std::vector<std::uint32_t> values = {1, 300};
  for (const Path path : paths()) {
    CHECK(encode(Form::fixed, values, path) == std::string("\x01\0\0\0\x2C\x01\0\0", 8));
    CHECK(encode(Form::leb128, values, path) == "\x01\xAC\x02");
    CHECK(encode(Form::stop_bit, values, path) == "\x81\x02\xAC");
  }
}

TEST_CASE("plain is always there, and the best way is one of those there are") {
  CHECK(paths().front() == Path::plain);
  CHECK(std::find(paths().begin(), paths().end(), best_path()) != paths().end());
}

TEMPLATE_TEST_CASE("all ways give the same bytes, and the same values back", "", std::uint32_t, std::uint64_t) {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    for (const std::size_t count : {0U, 1U, 2U, 3U, 7U, 15U, 16U, 17U, 31U, 33U, 64U, 257U, 1000U}) {
      const auto values = make_values<TestType>(random, kind, count);
      for (const Form form : kForms) {
        const std::string expected = encode(form, values, Path::plain);
        for (const Path path : paths()) {
          INFO("kind " << kind << ", " << count << " values, " << to_string(form) << ", " << to_string(path));
          CHECK(encode(form, values, path) == expected);
          CHECK(decode<TestType>(form, expected, count, path, count).values == values);
          CHECK(decode<TestType>(form, expected, count, path, count).said == std::to_string(expected.size()));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("an array that is cut anywhere is refused at the same place by all ways", "", std::uint32_t,
                   std::uint64_t) {
  std::mt19937_64 random(1);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    const auto values = make_values<TestType>(random, kind, 40);
    for (const Form form : kForms) {
      const std::string whole = encode(form, values, Path::plain);
      for (std::size_t cut = 0; cut < whole.size(); ++cut) {
        const std::string part = whole.substr(0, cut);
        // How many values are whole is found by asking for fewer and fewer.
        std::size_t good = values.size();
        while (
            encode(form, std::vector(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(good)), Path::plain)
                .size() > cut)
          --good;
        const auto expected = decode<TestType>(form, part, values.size(), Path::plain, good);
        CHECK_THAT(expected.said, test::contains_text("is not finished"));
        CHECK_THAT(expected.said, test::contains_text("value " + std::to_string(good) + " of 40, at offset "));
        for (const Path path : paths()) CHECK(decode<TestType>(form, part, values.size(), path, good) == expected);
      }
    }
  }
}

TEMPLATE_TEST_CASE("a malformed value anywhere is refused in the same words by all ways", "", std::uint32_t,
                   std::uint64_t) {
  constexpr std::size_t kMax = kVarintBytesMax<TestType>;
  const char low = sizeof(TestType) == 4 ? '\x10' : '\x02';  // One bit too many in the group of the highest bits.
  const std::pair<Form, std::string> faults[] = {
      {Form::leb128, std::string(kMax - 1, '\x80') + low},
      {Form::leb128, std::string(kMax, '\x80')},
      {Form::leb128, std::string(kMax, '\xFF') + "\x01"},
      {Form::leb128, std::string(3 * kMax, '\xFF')},
      {Form::stop_bit, std::string(1, low) + std::string(kMax - 2, '\0') + "\x80"},
      {Form::stop_bit, std::string(1, '\x01') + std::string(kMax - 1, '\0')},
      {Form::stop_bit, std::string(1, '\x01') + std::string(3 * kMax, '\x7F')},
      {Form::stop_bit, std::string(1, '\0') + "\x81"},
      {Form::stop_bit, std::string(1, '\0') + "\x01\x81"},
      {Form::stop_bit, std::string(1, '\0') + "\x01\x01\x81"},
      {Form::stop_bit, std::string(1, '\0') + "\x01\x01\x01\x81"},
  };
  std::mt19937_64 random(2);
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    const auto values = make_values<TestType>(random, kind, 50);
    for (const auto& [form, fault] : faults) {
      for (std::size_t good = 0; good < values.size(); ++good) {
        std::string bytes =
            encode(form, std::vector(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(good)), Path::plain);
        const std::string place = "value " + std::to_string(good) + " of 51, at offset " + std::to_string(bytes.size());
        bytes += fault;
        bytes +=
            encode(form, std::vector(values.begin() + static_cast<std::ptrdiff_t>(good), values.end()), Path::plain);
        const auto expected = decode<TestType>(form, bytes, 51, Path::plain, good);
        CHECK_THAT(expected.said, test::contains_text(place));
        for (const Path path : paths()) {
          INFO(to_string(path) << ", " << to_string(form) << ", kind " << kind);
          CHECK(decode<TestType>(form, bytes, 51, path, good) == expected);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("arbitrary bytes get one answer from all ways", "", std::uint32_t, std::uint64_t) {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    // Bytes whose top bits are rare, common or even: short values, long ones, and both.
    const auto rare = static_cast<unsigned>(random() % 9);
    std::string bytes(random() % 80, '\0');
    for (char& byte : bytes) {
      const bool top = random() % 8 < rare;
      const auto low = static_cast<unsigned>(random() % 5 == 0 ? 0 : random() & 0x7F);
      byte = static_cast<char>(low | (top ? 0x80U : 0U));
    }
    const auto form = random() % 2 == 0 ? Form::leb128 : Form::stop_bit;
    const std::size_t count = random() % 60;
    const auto expected = decode<TestType>(form, bytes, count, Path::plain, 0);
    for (const Path path : paths()) CHECK(decode<TestType>(form, bytes, count, path, 0) == expected);
  }
}

TEMPLATE_TEST_CASE("padded LEB128 values are read alike by all ways", "", std::uint32_t, std::uint64_t) {
  std::string bytes;
  std::vector<TestType> values;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t padding = i % (kVarintBytesMax<TestType> - 1);
    bytes += static_cast<char>(padding == 0 ? i % 128 : (i % 128) | 0x80);
    for (std::size_t pad = 0; pad < padding; ++pad) bytes += pad + 1 == padding ? '\0' : '\x80';
    values.push_back(static_cast<TestType>(i % 128));
  }
  for (const Path path : paths()) CHECK(decode<TestType>(Form::leb128, bytes, 200, path, 0).values == values);
}

TEMPLATE_TEST_CASE("zigzag of arrays is zigzag of each, in place too", "", std::uint32_t, std::uint64_t) {
  using Signed = std::make_signed_t<TestType>;
  std::mt19937_64 random(3);
  for (const std::size_t count : {0U, 1U, 3U, 4U, 7U, 8U, 9U, 100U}) {
    std::vector<Signed> values(count);
    for (Signed& value : values) value = static_cast<Signed>(random()) >> (random() % (8 * sizeof(Signed)));
    for (const Path path : paths()) {
      std::vector<TestType> codes(count);
      zigzag_array<TestType>(values, codes.data(), path);
      for (std::size_t i = 0; i < count; ++i) CHECK(codes[i] == zigzag(values[i]));
      std::vector<Signed> back(count);
      unzigzag_array<TestType>(codes, back.data(), path);
      CHECK(back == values);
    }
  }
}

}  // namespace
}  // namespace kvingest::codec
