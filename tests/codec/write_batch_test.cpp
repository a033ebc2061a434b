// WriteBatch: the encoding documented in kvingest/write_batch.hpp, numbering, and damage that must be found.
#include "kvingest/write_batch.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using namespace std::string_literals;

std::vector<std::string> listed(const WriteBatch& batch) {
  std::vector<std::string> rows;
  const auto done = for_each_operation(batch.bytes(), [&](const BatchOperation& op) -> Result<void> {
    rows.push_back((op.space == Space::meta ? "meta " : "") + (op.erase ? "-"s : "+"s) + std::string(op.key) + "=" +
                   std::string(op.value));
    return {};
  });
  REQUIRE(done);
  return rows;
}

TEST_CASE("the worked example of the header is what the batch holds") {
  WriteBatch batch;
  batch.put("k", "v");
  batch.put_next("ab");
  CHECK(batch.number(7) == 9);
  CHECK(batch.bytes() == "\x01\x01\x01kv\x03\x01\0\0\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x02"s + "ab");
}

TEST_CASE("operations come back in order with their keys spelled out") {
  WriteBatch batch;
  batch.put_next("first");
  batch.put_next(std::string(300, 'x'));
  batch.put("key", "value");
  batch.erase("gone");
  batch.put_meta("m", "1");
  batch.erase_meta("n");
  batch.put_with_number("k/00000000000000000000/z", {2}, "text");
  CHECK(batch.number(1) == 5);
  CHECK(listed(batch) == std::vector<std::string>{"+\0\0\0\0\0\0\0\x01=first"s,
                                                  "+\0\0\0\0\0\0\0\x02="s + std::string(300, 'x'), "+key=value",
                                                  "-gone=", "meta +m=1", "meta -n=", "+k/00000000000000000004/z=text"});
}

TEST_CASE("appended batches keep the numbers they have, and can be numbered anew as one") {
  WriteBatch one, two;
  one.put_next("a");
  one.number(1);
  two.put_next("b");
  two.put_with_number("00000000000000000000", {0}, "c");
  two.number(2);
  one.append(two);
  CHECK(listed(one) ==
        std::vector<std::string>{"+\0\0\0\0\0\0\0\x01=a"s, "+\0\0\0\0\0\0\0\x02=b"s, "+00000000000000000003=c"});
  CHECK(one.number(10) == 13);
  CHECK(listed(one)[2] == "+00000000000000000012=c");
}

TEST_CASE("keys and values beyond their limits mark the batch") {
  WriteBatch batch;
  batch.put(std::string(kKeyBytesMax, 'k'), "v");
  CHECK(batch.check());
  batch.put(std::string(kKeyBytesMax + 1, 'k'), "v");
  REQUIRE_FALSE(batch.check());
  CHECK(batch.check().error().code == Code::too_large);
  batch.clear();
  CHECK(batch.check());
  batch.erase("");
  REQUIRE_FALSE(batch.check());
  CHECK(batch.check().error().code == Code::invalid_argument);
}

TEST_CASE("a batch cut at any byte is found damaged or is a shorter batch, and nothing is read outside it") {
  WriteBatch batch;
  batch.put("key", "value");
  batch.put_next("line");
  batch.erase("k2");
  batch.number(1);
  const std::string whole(batch.bytes());
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const std::string part = whole.substr(0, cut);
    std::size_t seen = 0;
    const auto done =
        for_each_operation(part, [&](const BatchOperation&) -> Result<void> { return ++seen, Result<void>(); });
    CHECK((!done || seen < 3));
    if (!done) CHECK(done.error().code == Code::corrupt);
  }
}

}  // namespace
}  // namespace kvingest
