// BplusTree against std::map: short keys, long keys that share their prefix, keys that differ in trailing zeros only;
// in order, interleaved, at random; erased down to nothing.
#include "storage/index/bplus_tree.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

// Stands for the log: a value is an index into it.
class Keys final : public KeySource {
 public:
  [[nodiscard]] std::string_view key_at(std::uint64_t value) const override { return keys_.at(value); }
  std::uint64_t add(std::string key) {
    keys_.push_back(std::move(key));
    return keys_.size() - 1;
  }

 private:
  std::deque<std::string> keys_;
};

struct Fixture {
  Keys keys;
  BplusTree tree = std::move(*BplusTree::create(keys, std::size_t{64} << 20));
  std::map<std::string, std::uint64_t> model;

  void put(const std::string& key) {
    const std::uint64_t value = keys.add(key);
    const auto before = tree.put(key, value);
    const auto at = model.find(key);
    REQUIRE(before.has_value() == (at != model.end()));
    if (before) REQUIRE(*before == at->second);
    model[key] = value;
  }
  void erase(const std::string& key) {
    const auto before = tree.erase(key);
    const auto at = model.find(key);
    REQUIRE(before.has_value() == (at != model.end()));
    if (before) REQUIRE(*before == at->second);
    model.erase(key);
  }
  void check() {
    tree.check();
    REQUIRE(tree.size() == model.size());
    auto expected = model.begin();
    for (auto cursor = tree.first(); cursor.valid(); tree.next(cursor), ++expected) {
      BplusTree::KeyBuffer buffer;
      REQUIRE(tree.key(cursor, buffer) == expected->first);
      REQUIRE(tree.value(cursor) == expected->second);
    }
    REQUIRE(expected == model.end());
    auto backwards = model.rbegin();
    for (auto cursor = tree.last(); cursor.valid(); tree.previous(cursor), ++backwards) {
      BplusTree::KeyBuffer buffer;
      REQUIRE(tree.key(cursor, buffer) == backwards->first);
    }
    REQUIRE(backwards == model.rend());
  }
  /// Looks these and keys that are there up, `count` in all, together and one by one.
  void check_many(std::vector<std::string> wanted, std::size_t count) {
    for (const auto& [key, value] : model) {
      if (wanted.size() >= count) break;
      wanted.push_back(key);
    }
    const std::vector<std::string_view> views(wanted.begin(), wanted.end());
    std::vector<std::optional<std::uint64_t>> values(views.size(), 0);
    tree.find_many(views, values);
    for (std::size_t i = 0; i < views.size(); ++i) REQUIRE(values[i] == tree.find(views[i]));
  }
  void check_bounds(const std::string& key) {
    BplusTree::KeyBuffer buffer;
    const auto at = model.lower_bound(key);
    const auto cursor = tree.lower_bound(key);
    REQUIRE(cursor.valid() == (at != model.end()));
    if (cursor.valid()) REQUIRE(tree.key(cursor, buffer) == at->first);
    const auto before = tree.before(key);
    REQUIRE(before.valid() == (at != model.begin()));
    if (before.valid()) REQUIRE(tree.key(before, buffer) == std::prev(at)->first);
  }
};

using Random = std::mt19937_64;

std::string short_key(Random& random) {
  std::string key(1 + random() % 16, '\0');
  for (char& c : key) c = static_cast<char>(random() % 3);  // Few values: many equal prefixes, many zeros.
  return key;
}
std::string long_key(Random& random) {
  std::string key = random() % 2 == 0 ? "a/common/prefix/of/all/" : "a/common/prefiy/";
  return key + std::to_string(random() % 3000) + std::string(random() % 3, '\0');
}
std::string numbered(std::uint64_t number, const char* head = "") {
  std::string digits = std::to_string(number);
  return head + std::string(12 - digits.size(), '0') + digits;
}

template <class MakeKey>
void random_operations(MakeKey make_key) {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  Fixture f;
  for (int round = 0; round < 6; ++round) {
    const unsigned erased_of_8 = round % 2 == 0 ? 2 : 7;  // It grows, then shrinks.
    for (int i = 0; i < 8000; ++i) {
      const std::string key = make_key(random);
      random() % 8 < erased_of_8 ? f.erase(key) : f.put(key);
      if (i % 8 == 0) f.check_bounds(make_key(random));
      if (i % 64 == 0) f.check_many({make_key(random), make_key(random), make_key(random)}, random() % 40);
    }
    f.check();
  }
  while (!f.model.empty()) f.erase(f.model.begin()->first);
  f.check();
}

TEST_CASE("random puts and erases of short keys agree with std::map") {
  random_operations(short_key);
}
TEST_CASE("random puts and erases of long keys with common prefixes agree with std::map") {
  random_operations(long_key);
}
TEST_CASE("long and short keys side by side agree with std::map") {
  random_operations([](Random& random) {
    switch (random() % 4) {
      case 0:
        return long_key(random);
      case 1:
        return std::string("a/common/prefix/").substr(0, 1 + random() % 16);
      case 2:
        return numbered(random() % 2000, "b/");
      default:
        return short_key(random);
    }
  });
}

TEST_CASE("keys in order fill the leaves to the brim") {
  Fixture f;
  constexpr std::size_t kKeys = 60'000;
  for (std::size_t i = 0; i < kKeys; ++i) f.put(numbered(i));
  f.check();
  CHECK(f.tree.used_bytes() < kKeys * 26);
}

TEST_CASE("a thousand interleaved series fill the leaves nearly as well") {
  Fixture f;
  constexpr std::size_t kSeries = 1000;
  constexpr std::size_t kEach = 130;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (std::size_t series = 0; series < kSeries; ++series)
      f.put("s" + numbered(series).substr(8) + "/" + numbered(i));
  }
  f.check();
  CHECK(f.tree.used_bytes() < kSeries * kEach * 45);
}

TEST_CASE("keys in falling order agree with std::map") {
  Fixture f;
  for (std::size_t i = 20'000; i-- > 0;) f.put(numbered(i));
  f.check();
}

TEST_CASE("erasing most keys gives most of the memory back") {
  Fixture f;
  Random random(1);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < 40'000; ++i) keys.push_back(numbered(i));
  std::shuffle(keys.begin(), keys.end(), random);
  for (const auto& key : keys) f.put(key);
  const std::size_t full = f.tree.used_bytes();
  for (std::size_t i = 2000; i < keys.size(); ++i) f.erase(keys[i]);
  f.check();
  CHECK(f.tree.used_bytes() < full / 4);
}

TEST_CASE("a tree says beforehand when it may be full") {
  Keys keys;
  auto tree = BplusTree::create(keys, std::size_t{1} << 20);
  REQUIRE(tree);
  Random random(2);
  std::size_t puts = 0;
  while (tree->room_for(10)) {
    for (int i = 0; i < 10; ++i) tree->put(numbered(random() % 1'000'000'000), keys.add("")), ++puts;
  }
  CHECK(puts > 20'000);
  CHECK(tree->used_bytes() <= std::size_t{1} << 20);
}

// A tree with the leaves of another one; `drop` of each hundred entries are left out.
bool rebuild(const BplusTree& from, BplusTree& to, std::size_t drop) {
  std::vector<BplusTree::Entries> leaves;
  for (auto cursor = from.first(); cursor.valid();) leaves.push_back(from.take_leaf(cursor));
  if (!to.begin_leaves(leaves.size())) return false;
  std::size_t number = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    std::vector<BplusTree::Prefix> prefixes;
    std::vector<std::uint64_t> words;
    for (std::size_t k = 0; k < leaves[i].words.size(); ++k) {
      if (number++ % 100 < drop) continue;
      prefixes.push_back(leaves[i].prefixes[k]);
      words.push_back(leaves[i].words[k]);
    }
    if (!to.fill_leaf(i, {prefixes, words})) return false;
  }
  return to.finish_leaves();
}

TEST_CASE("bplus_tree: a tree made of another one's leaves is the same, and goes on like it") {
  for (const std::size_t count : {0U, 1U, 66U, 67U, 5000U, 60'000U}) {
    Fixture from;
    std::mt19937_64 random(count);
    for (std::size_t i = 0; i < count; ++i) {
      from.put(random() % 4 == 0 ? "a key longer than its prefix " + std::to_string(random())
                                 : std::to_string(random()));
    }
    Fixture to;
    to.put("is gone when the tree is made anew");
    to.model = from.model;
    to.keys = from.keys;
    REQUIRE(rebuild(from.tree, to.tree, 0));
    to.check();
    CHECK(to.tree.used_bytes() <= from.tree.used_bytes() + 2 * BplusTree::kNodeBytes);
    std::vector<std::string> keys;
    for (const auto& [key, value] : to.model) keys.push_back(key);
    for (const std::string& key : keys) {
      if (random() % 2 == 0) to.erase(key);
    }
    for (std::size_t i = 0; i < count; ++i) to.put(std::to_string(random()));
    to.check();
  }
}

TEST_CASE("bplus_tree: leaves that lose entries, or all of them, leave a tree of the others") {
  Fixture from;
  for (int i = 0; i < 20'000; ++i) from.put(std::to_string(100'000 + i));
  for (const std::size_t drop : {50U, 99U, 100U}) {
    Fixture to;
    to.keys = from.keys;
    std::size_t number = 0;
    for (const auto& [key, value] : from.model) {
      if (number++ % 100 >= drop) to.model[key] = value;
    }
    REQUIRE(rebuild(from.tree, to.tree, drop));
    to.check();
    to.put("goes on");
    to.check();
  }
}

TEST_CASE("bplus_tree: leaves that are out of order are no tree") {
  Fixture fixture;
  const BplusTree::Prefix prefixes[] = {BplusTree::Prefix{2} << 120, BplusTree::Prefix{1} << 120};
  const std::uint64_t words[] = {std::uint64_t{1} << BplusTree::kValueBits, std::uint64_t{1} << BplusTree::kValueBits};
  REQUIRE(fixture.tree.begin_leaves(1));
  CHECK_FALSE(fixture.tree.fill_leaf(0, {prefixes, words}));
  REQUIRE(fixture.tree.begin_leaves(2));
  CHECK(fixture.tree.fill_leaf(0, {std::span(prefixes).first(1), std::span(words).first(1)}));
  CHECK(fixture.tree.fill_leaf(1, {std::span(prefixes).last(1), std::span(words).last(1)}));
  CHECK_FALSE(fixture.tree.finish_leaves());
  fixture.tree.clear();
  fixture.put("starts anew");
  fixture.check();
  CHECK_FALSE(fixture.tree.begin_leaves(std::size_t{1} << 20));  // More than its memory.
}

}  // namespace
}  // namespace kvingest
