// VersionedIndex: the newest place of each key, scans that see the store as of their start, and when places are free.
// Places are numbers here; the writer changes the index from inside a scan's visitor, which runs outside the latch.
#include "storage/index/versioned_index.hpp"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

namespace kvingest {
namespace {

using Tree = SortedMap<std::map<std::string, int, std::less<>>>;
using BTree = SortedMap<absl::btree_map<std::string, int, std::less<>>>;
using Rows = std::vector<std::pair<std::string, int>>;

std::string key_of(int number) {
  return fmt::format("k{:06}", number);
}

template <class Index>
std::optional<int> found(const Index& index, std::string_view key, Space space = Space::records) {
  std::optional<int> place;
  const bool there = index.find(space, key, [&](int at) { place = at; });
  CHECK(there == place.has_value());
  return place;
}

template <class Index>
Rows scanned(const Index& index, const Range& range = {}, Space space = Space::records) {
  Rows rows;
  index.scan(space, range, [&](std::string_view key, int place) { return rows.emplace_back(key, place), true; });
  return rows;
}

template <class Index>
std::vector<std::pair<int, std::uint64_t>> released(Index& index) {
  std::vector<std::pair<int, std::uint64_t>> places;
  index.release([&](int place, std::uint64_t batch) { places.emplace_back(place, batch); });
  return places;
}

TEMPLATE_TEST_CASE("puts, overwrites and erases are found, each space by itself", "", Tree, BTree) {
  VersionedIndex<TestType> index;
  {
    auto update = index.update(1, 3);
    update.put(Space::records, "b", 1);
    update.put(Space::records, "a", 2);
    update.put(Space::meta, "a", 3);
    update.publish();
  }
  CHECK(found(index, "a") == 2);
  CHECK(found(index, "a", Space::meta) == 3);
  CHECK_FALSE(found(index, "c"));
  CHECK(released(index).empty());
  {
    auto update = index.update(2, 3);
    update.put(Space::records, "a", 4);
    update.erase(Space::records, "b");
    update.erase(Space::records, "never there");
    update.publish();
  }
  CHECK(found(index, "a") == 4);
  CHECK_FALSE(found(index, "b"));
  CHECK(index.size(Space::records) == 1);
  CHECK(index.published() == 2);
  CHECK(released(index) == std::vector<std::pair<int, std::uint64_t>>{{2, 2}, {1, 2}});
  CHECK(index.older_versions() == 0);
}

template <class Index>
void put_numbers(Index& index, std::uint64_t batch, int first, int count, int step = 1) {
  auto update = index.update(batch, static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) update.put(Space::records, key_of(first + i * step), first + i * step);
  update.publish();
}

TEST_CASE("a scan honours its bounds, direction and limit") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 1000);
  const std::string from = key_of(10);
  const std::string to = key_of(700);
  Rows rows = scanned(index, {.first = from, .last = to});
  REQUIRE(rows.size() == 690);
  CHECK(rows.front().first == from);
  CHECK(rows.back().second == 699);
  rows = scanned(index, {.first = from, .last = to, .reverse = true});
  REQUIRE(rows.size() == 690);
  CHECK(rows.front().second == 699);
  CHECK(rows.back().second == 10);
  rows = scanned(index, {.first = from, .reverse = true, .limit = 600});
  REQUIRE(rows.size() == 600);
  CHECK(rows.back().second == 400);
  CHECK(scanned(index, {.limit = 0}).empty());
  CHECK(scanned(index, {.first = to, .last = from}).empty());
  CHECK(scanned(index, {.first = to, .last = from, .reverse = true}).empty());
  CHECK(scanned(index, {.first = "z"}).empty());
  CHECK(scanned(index, {.last = "a", .reverse = true}).empty());
  CHECK(scanned(index, {}, Space::meta).empty());
  std::size_t shown = 0;
  CHECK(index.scan(Space::records, {}, [&](std::string_view, int) { return ++shown < 300; }) == 300);
}

// What one batch may do to the keys 0, 2, 4 ... of a store while it is scanned.
template <class Index>
void disturb(Index& index, std::uint64_t batch, int keys, std::mt19937& random) {
  auto update = index.update(batch, 40);
  for (int i = 0; i < 40; ++i) {
    const std::string key = key_of(static_cast<int>(random() % static_cast<unsigned>(keys)));
    if (random() % 3 == 0) {
      update.erase(Space::records, key);
    } else {
      update.put(Space::records, key, -static_cast<int>(batch));
    }
  }
  update.publish();
}

TEMPLATE_TEST_CASE("a scan sees the store as of its start, whatever is put and erased meanwhile", "", Tree, BTree) {
  const bool reverse = GENERATE(false, true);
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  VersionedIndex<TestType> index;
  put_numbers(index, 1, 0, 1000, 2);
  const Range range{.reverse = reverse};
  const Rows before = scanned(index, range);
  std::uint64_t batch = 1;
  Rows seen;
  index.scan(Space::records, range, [&](std::string_view key, int place) {
    if (seen.size() % 50 == 0) disturb(index, ++batch, 2100, random);
    seen.emplace_back(key, place);
    return true;
  });
  CHECK(seen == before);
  CHECK(index.older_versions() == 0);  // The last reader takes them along.
  CHECK(scanned(index) != before);
}

TEST_CASE("scans that overlap each see their own start, and versions go when the last of them ends") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 400);
  Rows outer;
  Rows inner;
  index.scan(Space::records, {}, [&](std::string_view key, int place) {
    if (outer.size() == 300) {
      put_numbers(index, 2, 399, 1);
      put_numbers(index, 3, 0, 1);
      {
        auto update = index.update(4, 2);
        update.put(Space::records, key_of(399), 4);
        update.erase(Space::records, key_of(0));
        update.publish();
      }
      index.scan(Space::records, {}, [&](std::string_view at, int there) {
        if (inner.size() == 100) {
          auto update = index.update(5, 1);
          update.put(Space::records, key_of(399), 5);
          update.publish();
        }
        inner.emplace_back(at, there);
        return true;
      });
    }
    outer.emplace_back(key, place);
    return true;
  });
  REQUIRE(outer.size() == 400);
  CHECK(outer.front().second == 0);
  CHECK(outer.back().second == 399);
  REQUIRE(inner.size() == 399);
  CHECK(inner.back().second == 4);
  CHECK(found(index, key_of(399)) == 5);
  CHECK(index.older_versions() == 0);
}

TEST_CASE("a place is released only when no scan that began before it was replaced is running") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 600);
  std::size_t rows = 0;
  index.scan(Space::records, {}, [&](std::string_view, int) {
    if (++rows == 10) {
      auto update = index.update(2, 2);
      update.put(Space::records, key_of(500), 1000);
      update.erase(Space::records, key_of(501));
      update.publish();
      CHECK(released(index).empty());
      CHECK(index.older_versions() == 2);
    }
    return true;
  });
  CHECK(rows == 600);
  CHECK(released(index) == std::vector<std::pair<int, std::uint64_t>>{{500, 2}, {501, 2}});
}

TEST_CASE("keys put behind the last one during a scan, and keys outside its range, need no older version") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 600);
  std::size_t rows = 0;
  const std::string last = key_of(550);
  index.scan(Space::records, {.last = last}, [&](std::string_view, int) {
    if (++rows == 1) {
      put_numbers(index, 2, 600, 100);
      put_numbers(index, 3, 551, 10);
      CHECK(index.older_versions() == 0);
    }
    return true;
  });
  CHECK(rows == 550);
}

TEST_CASE("places can be moved under scans, which tell when they cannot have the old ones in hand any more") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 10);
  std::uint64_t moved_at = 0;
  Rows rows;
  index.scan(Space::records, {}, [&](std::string_view key, int place) {
    if (rows.empty()) {
      index.relocate([](auto& records, auto&) { records.put(key_of(5), 1005); });
      moved_at = index.reader_count();
      CHECK(index.readers_before(moved_at));
    }
    if (rows.size() == 1) {  // Who begins later does not count, although as of the same batch.
      index.scan(Space::records, {}, [&](std::string_view, int) { return false; });
      CHECK(index.readers_before(moved_at));
    }
    rows.emplace_back(key, place);
    return true;
  });
  CHECK(rows[5].second == 5);
  CHECK(found(index, key_of(5)) == 1005);
  index.scan(Space::records, {}, [&](std::string_view, int) {
    CHECK_FALSE(index.readers_before(moved_at));
    CHECK(index.readers_before(index.reader_count()));
    return false;
  });
  CHECK(released(index).empty());
}

TEST_CASE("several keys are found as of one batch") {
  VersionedIndex<Tree> index;
  put_numbers(index, 1, 0, 1000, 2);
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) names.push_back(key_of(1999 - i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::size_t shown = 0;
  index.multi_find(Space::records, keys, [&](std::size_t at, int place) {
    if (shown++ == 0) {
      auto update = index.update(2, 2);
      update.erase(Space::records, key_of(0));
      update.put(Space::records, key_of(1), 1);
      update.put(Space::records, key_of(2), -2);
      update.publish();
    }
    CHECK(place == 1999 - static_cast<int>(at));
    return true;
  });
  CHECK(shown == 1000);
}

// Random batches, scans within scans, moves and releases, against plain maps. A place that was released must never be
// shown again.
class Chaos {
 public:
  explicit Chaos(unsigned seed) : random_(seed) {}

  void run() {
    for (int round = 0; round < 200; ++round) {
      batch();
      scan(0);
      look_up();
      release();
    }
    CHECK(wrong_ == 0);
    CHECK(index_.older_versions() == 0);
    CHECK(index_.retired_places() == 0);
    CHECK(used_.size() == model_.size());
  }

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  std::string random_key() {
    return key_of(static_cast<int>(below(300 + std::min(300u, static_cast<unsigned>(batch_)))));
  }
  int new_place() { return used_.insert(++last_place_), last_place_; }

  void batch() {
    // The hint alone decides whether readers may be let in, so a small batch can be tried as a large one.
    auto update = index_.update(++batch_, below(4) == 0 ? 1'000'000 : 10);
    for (unsigned i = below(60); i > 0; --i) {
      const std::string key = random_key();
      if (below(3) == 0) {
        update.erase(Space::records, key);
        model_.erase(key);
      } else {
        const int place = new_place();
        update.put(Space::records, key, place);
        model_[key] = place;
      }
    }
    update.publish();
  }
  void move() {
    if (model_.empty()) return;
    const auto at = std::next(model_.begin(), below(static_cast<unsigned>(model_.size())));
    const int to = new_place();
    index_.relocate([&](auto& records, auto&) { CHECK(records.put(at->first, to) == at->second); });
    left_.emplace_back(at->second, index_.reader_count());
    moved_[at->second] = to;
    at->second = to;
  }
  void release() {
    index_.release([this](int place, std::uint64_t) { wrong_ += used_.erase(place) == 1 ? 0 : 1; });
    std::erase_if(left_, [this](const auto& left) {
      if (index_.readers_before(left.second)) return false;
      wrong_ += used_.erase(left.first) == 1 ? 0 : 1;
      return true;
    });
  }
  // Where a place went since a scan began is where it may be seen as well.
  bool same(int seen, int expected) const {
    for (auto at = moved_.find(expected); seen != expected && at != moved_.end(); at = moved_.find(expected)) {
      expected = at->second;
    }
    return seen == expected;
  }

  void scan(int depth) {
    const std::string one = random_key();
    const std::string two = random_key();
    Range range{.first = std::min(one, two), .last = std::max(one, two), .reverse = below(2) == 0};
    if (below(2) == 0) range.first.reset();
    if (below(2) == 0) range.last.reset();
    Rows expected;
    for (const auto& [key, place] : model_) {
      if ((!range.first || key >= *range.first) && (!range.last || key < *range.last))
        expected.emplace_back(key, place);
    }
    if (range.reverse) std::reverse(expected.begin(), expected.end());
    std::size_t row = 0;
    const std::size_t rows = index_.scan(Space::records, range, [&](std::string_view key, int place) {
      const bool right = row < expected.size() && key == expected[row].first && same(place, expected[row].second);
      wrong_ += right && used_.contains(place) ? 0 : 1;
      ++row;
      disturb(depth);
      return true;
    });
    if (rows != expected.size()) ++wrong_;
  }
  void disturb(int depth) {
    switch (below(80)) {
      case 0:
        return batch();
      case 1:
        return move();
      case 2:
        return release();
      case 3:
        return depth < 2 ? scan(depth + 1) : void();
      default:
        return;
    }
  }
  void look_up() {
    for (int i = 0; i < 20; ++i) {
      const std::string key = random_key();
      const auto at = model_.find(key);
      CHECK(found(index_, key) == (at == model_.end() ? std::nullopt : std::optional<int>(at->second)));
    }
  }

  std::mt19937 random_;
  VersionedIndex<Tree> index_;
  std::map<std::string, int> model_;
  std::map<int, int> moved_;
  std::vector<std::pair<int, std::uint64_t>> left_;  // Places that were moved away from, and when.
  std::set<int> used_;
  int last_place_ = 0;
  int wrong_ = 0;
  std::uint64_t batch_ = 0;
};

TEST_CASE("random batches, nested scans, moves and releases agree with plain maps") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  Chaos(seed).run();
}

TEST_CASE("what a large batch replaced is forgotten when it is published, and while scans overlap, bit by bit") {
  VersionedIndex<Tree> index;
  constexpr int kKeys = 2 * static_cast<int>(VersionedIndex<Tree>::kOperationsPerHold);
  put_numbers(index, 1, 0, kKeys);
  put_numbers(index, 2, 0, kKeys);
  CHECK(index.older_versions() == 0);
  // A scan runs at every moment, but none of them for long.
  std::size_t rows = 0;
  index.scan(Space::records, {.limit = 300}, [&](std::string_view, int) {
    if (++rows > 1) return true;
    put_numbers(index, 3, 0, kKeys);
    CHECK(index.older_versions() == kKeys);
    return true;
  });
  CHECK(index.older_versions() == 0);
}

TEST_CASE("readers see a large batch whole or not at all, and scans begun in its middle see the store before it") {
  using Index = VersionedIndex<Tree>;
  constexpr int kKeys = 3 * static_cast<int>(Index::kOperationsPerHold);
  Index index;
  put_numbers(index, 1, 0, kKeys, 2);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    std::uint64_t rounds = 0;
    while (!done.load() || rounds == 0) {
      ++rounds;
      const std::string low = key_of(1);
      const std::string high = key_of(2 * kKeys - 2);
      std::optional<int> first;
      index.find(Space::records, low, [&](int place) { first = place; });
      std::optional<int> last;
      index.find(Space::records, high, [&](int place) { last = place; });
      if (first && last != -2) ++wrong;  // The batch puts the last key last: having seen one, we must see the other.
      std::size_t odd = 0;
      const std::size_t rows = index.scan(Space::records, {.first = low}, [&](std::string_view, int place) {
        odd += place == -2 ? 1u : 0u;
        return true;
      });
      if (odd != 0 && (odd != rows || rows != 2 * kKeys)) ++wrong;
    }
  });
  {
    auto update = index.update(2, 2 * kKeys);
    for (int i = 0; i < kKeys; ++i) {
      update.put(Space::records, key_of(2 * i + 1), -2);
      update.put(Space::records, key_of(2 * i + 2), -2);
    }
    update.put(Space::records, key_of(2 * kKeys - 2), -2);
    update.publish();
  }
  done = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(found(index, key_of(1)) == -2);
}

TEST_CASE("scans, gets and a busy writer in three threads: each scan is one batch's state, and all come to an end") {
  VersionedIndex<BTree> index;
  constexpr int kKeys = 2000;
  constexpr std::uint64_t kBatches = 300;
  put_numbers(index, 1, 0, kKeys);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::atomic<int> rounds{0};
  const auto scan_until_done = [&](bool reverse) {
    do {
      std::optional<int> batch;  // A batch puts its number under every key.
      const std::size_t rows = index.scan(Space::records, {.reverse = reverse}, [&](std::string_view, int place) {
        if (place < 0 && !batch) batch = place;
        if (batch && place != *batch) ++wrong;
        return true;
      });
      if (rows != kKeys) ++wrong;
      ++rounds;
    } while (!done.load());
  };
  std::thread forward(scan_until_done, false);
  std::thread backward(scan_until_done, true);
  std::uint64_t batch = 1;
  while (batch < kBatches || rounds < 4) {
    auto update = index.update(++batch, kKeys);
    for (int i = 0; i < kKeys; ++i) update.put(Space::records, key_of(i), -static_cast<int>(batch));
    update.publish();
    index.release([](int, std::uint64_t) {});
    REQUIRE(batch < 1'000'000);
  }
  done = true;
  forward.join();
  backward.join();
  CHECK(wrong == 0);
  index.release([](int, std::uint64_t) {});
  CHECK(index.retired_places() == 0);
}

}  // namespace
}  // namespace kvingest
