// The contract of kvingest/store.hpp, on every engine: keys, values and their limits.
//
// World: one store in a fresh directory, one thread.
#include <numeric>

#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

using namespace std::string_literals;

ENGINE_SCENARIO(kept, "a value is found under its key and under no other") {
  auto store = subject.open();
  CHECK(get(*store, "key") == std::nullopt);
  put(*store, "key", "value");
  CHECK(get(*store, "key") == "value");
  CHECK(get(*store, "ke") == std::nullopt);
  CHECK(get(*store, "key\0"s) == std::nullopt);
  CHECK(get(*store, "kez") == std::nullopt);
  CHECK(get(*store, "key", Space::meta) == std::nullopt);
}

ENGINE_SCENARIO(kept, "a value put again replaces the one before, longer or shorter") {
  auto store = subject.open();
  for (const std::size_t bytes : {10u, 5'000u, 0u, 3u, 100'000u, 7u}) {
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    put(*store, "key", value);
    const bool same = get(*store, "key") == value;
    CHECK(same);
    CHECK(count(*store) == 1);
  }
}

ENGINE_SCENARIO(kept, "an erased key is gone, and can be put again") {
  auto store = subject.open();
  put(*store, "a", "1");
  put(*store, "b", "2");
  WriteBatch batch;
  batch.erase("a");
  batch.erase("never there");
  write(*store, batch);
  CHECK(get(*store, "a") == std::nullopt);
  CHECK(get(*store, "b") == "2");
  CHECK(count(*store) == 1);
  put(*store, "a", "3");
  CHECK(get(*store, "a") == "3");
  CHECK(count(*store) == 2);
}

ENGINE_SCENARIO(kept, "every byte value can stand in a key and in a value") {
  auto store = subject.open();
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  Model model;
  std::vector<Operation> operations{{Operation::Kind::put, all, all}};
  for (const char byte : all) operations.push_back({Operation::Kind::put, std::string(1, byte), "\0x"s + byte});
  write(*store, operations);
  model.apply(operations);
  check_equal(*store, model);
}

ENGINE_SCENARIO(ordered, "keys order by unsigned bytes, a prefix before what it begins") {
  auto store = subject.open();
  const std::vector<std::string> sorted{"\0"s,   "\0\0"s,   "\0\x01"s, "\x01"s,  "a"s,      "a\0"s,     "a\0z"s,
                                        "ab"s,   "a\x7f"s,  "a\x80"s,  "a\xff"s, "b"s,      "\x7f"s,    "\x7f\xff"s,
                                        "\x80"s, "\x80\0"s, "\xfe"s,   "\xff"s,  "\xff\0"s, "\xff\xff"s};
  for (std::size_t i = 0; i < sorted.size(); ++i) put(*store, sorted[(i * 7) % sorted.size()], "v");
  CHECK(scan_keys(*store) == sorted);
}

ENGINE_SCENARIO(kept, "the longest key is kept whole, and one that differs in its last byte is another") {
  auto store = subject.open();
  const std::string longest(kKeyBytesMax, '\xff');
  std::string other = longest;
  other.back() = '\xfe';
  put(*store, longest, "one");
  put(*store, other, "two");
  CHECK(get(*store, longest) == "one");
  CHECK(get(*store, other) == "two");
  CHECK(get(*store, longest.substr(1)) == std::nullopt);
  CHECK(count(*store) == 2);
}

ENGINE_SCENARIO(anything, "keys and values beyond the limits are refused, and nothing of their batch is kept") {
  auto store = subject.open();
  const std::string key_too_long(kKeyBytesMax + 1, 'k');
  const std::string value_too_long(kValueBytesMax + 1, 'v');
  const auto refused = [&](Code code, auto&& fill) {
    WriteBatch batch;
    batch.put("beside", "it");
    fill(batch);
    for (const Durability level : {Durability::memory, Durability::disk}) CHECK_CODE(store->write(batch, level), code);
  };
  refused(Code::invalid_argument, [](WriteBatch& batch) { batch.put("", "empty key"); });
  refused(Code::invalid_argument, [](WriteBatch& batch) { batch.erase(""); });
  refused(Code::invalid_argument, [](WriteBatch& batch) { batch.put_meta("", "empty key"); });
  refused(Code::too_large, [&](WriteBatch& batch) { batch.put(key_too_long, "v"); });
  refused(Code::too_large, [&](WriteBatch& batch) { batch.erase(key_too_long); });
  refused(Code::too_large, [&](WriteBatch& batch) { batch.put_meta(key_too_long, "v"); });
  refused(Code::too_large, [&](WriteBatch& batch) { batch.put("k", value_too_long); });
  refused(Code::too_large, [&](WriteBatch& batch) { batch.put_next(value_too_long); });
  CHECK(get(*store, "beside") == std::nullopt);
  CHECK(count(*store) == 0);
  CHECK(store->last_batch() == 0);
  put(*store, "after", "all is well");
  CHECK(store->last_batch() == 1);
}

ENGINE_SCENARIO(anything, "a batch beyond its limit is refused whole") {
  auto store = subject.open();
  WriteBatch batch;
  const std::string part(kValueBytesMax - 1, 'v');
  batch.put("a", part);
  batch.put("b", part);
  batch.put("c", "the little too much");
  CHECK_CODE(store->write(batch, Durability::memory), Code::too_large);
  CHECK(get(*store, "a") == std::nullopt);
  CHECK(store->last_batch() == 0);
}

ENGINE_SCENARIO(kept, "values of awkward lengths come back as they were") {
  auto store = subject.open();
  Model model;
  std::vector<Operation> operations;
  for (const std::size_t bytes :
       {0u,   1u,    2u,    63u,   64u,   127u,  128u,    129u,    255u,    256u,    257u,    511u,
        512u, 1023u, 4000u, 4095u, 4096u, 4097u, 16'383u, 16'384u, 65'535u, 65'536u, 65'537u, 1'048'577u}) {
    std::string value(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(i * 31 + bytes);
    operations.push_back({Operation::Kind::put, "key/" + std::to_string(bytes), value});
    operations.push_back({Operation::Kind::next, {}, value});
    operations.push_back({Operation::Kind::put_meta, "meta/" + std::to_string(bytes), value});
  }
  write(*store, operations);
  model.apply(operations);
  check_equal(*store, model);
}

ENGINE_SCENARIO(kept, "the largest value is kept whole") {
  auto store = subject.open();
  std::string value(kValueBytesMax, 'x');
  for (std::size_t i = 0; i < value.size(); i += 4093) value[i] = static_cast<char>(i);
  put(*store, "large", value);
  std::size_t seen = 0;
  bool same = false;
  CHECK_OK(store->get("large", [&](std::string_view bytes) { seen = bytes.size(), same = bytes == value; }));
  CHECK(seen == kValueBytesMax);
  CHECK(same);
  WriteBatch batch;
  batch.put_next(value);
  batch.number(1);
  write(*store, batch);
  CHECK_OK(store->get(seq_key(1), [&](std::string_view bytes) { same = bytes == value; }));
  CHECK(same);
  put(*store, "large", "small");
  CHECK(get(*store, "large") == "small");
}

ENGINE_SCENARIO(kept, "several keys are looked up at once, in any order, repeated or missing") {
  auto store = subject.open();
  std::vector<Operation> operations;
  for (int i = 0; i < 1000; ++i)
    operations.push_back({Operation::Kind::put, "k" + std::to_string(i), std::to_string(i)});
  write(*store, operations);
  const std::vector<std::string_view> keys{"k999", "missing", "k0", "k500", "k0", "k1000"};
  std::vector<std::string> found(keys.size(), "-");
  const auto hits = store->multi_get(keys, [&](std::size_t index, std::string_view value) { found.at(index) = value; });
  REQUIRE_OK(hits);
  CHECK(*hits == 4);
  CHECK(found == std::vector<std::string>{"999", "-", "0", "500", "0", "-"});
  const auto none = store->multi_get({}, [](std::size_t, std::string_view) { FAIL("nothing was asked for"); });
  REQUIRE_OK(none);
  CHECK(*none == 0);
}

ENGINE_SCENARIO(anything, "a key no store can hold is never found") {
  auto store = subject.open();
  for (const std::string& key : {std::string(), std::string(kKeyBytesMax + 1, 'k'), std::string(5000, 'k')}) {
    const auto found = store->get(key, [](std::string_view) { FAIL("a value for an impossible key"); });
    if (found) CHECK_FALSE(*found);
    if (!found) CHECK((found.error().code == Code::invalid_argument || found.error().code == Code::too_large));
  }
}

}  // namespace
}  // namespace kvingest::test
