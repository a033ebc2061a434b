// The contract of kvingest/store.hpp, on every ordered engine: scans.
//
// World: one store in a fresh directory; in the last scenarios one thread writes while another scans.
#include <atomic>
#include <thread>

#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

using namespace std::string_literals;
using Kind = Operation::Kind;

/// "k000" to "k999", even numbers only, so that bounds fall on keys and between them.
std::vector<Operation> even_keys() {
  std::vector<Operation> operations;
  for (int i = 0; i < 1000; i += 2) {
    const std::string digits = std::to_string(1000 + i).substr(1);
    operations.push_back({Kind::put, "k" + digits, digits});
  }
  return operations;
}

ENGINE_SCENARIO(ordered, "a scan keeps its bounds, direction and limit") {
  auto store = subject.open();
  Model model;
  write(*store, even_keys());
  model.apply(even_keys());
  using Bound = std::optional<std::string_view>;
  const std::vector<std::pair<Bound, Bound>> bounds{
      {std::nullopt, std::nullopt},
      {"k100", "k200"},
      {"k101", "k199"},
      {std::nullopt, "k010"},
      {"k990", std::nullopt},
      {"k500", "k500"},
      {"k501", "k501"},
      {"k300", "k100"},
      {"", ""},
      {"", std::nullopt},
      {std::nullopt, ""},
      {"a", "j"},
      {"l", "z"},
      {"k998", "k999"},
      {"k", "k000"},
      {"k000", "k0000"},
  };
  for (const auto& [first, last] : bounds) {
    for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{7}, Range().limit}) {
      for (const bool reverse : {false, true}) {
        const Range range{first, last, reverse, limit};
        CAPTURE(first.value_or("-"), last.value_or("-"), reverse, limit);
        const bool same = scan(*store, range) == model.scan(Space::records, range);
        CHECK(same);
      }
    }
  }
}

ENGINE_SCENARIO(ordered, "a scan of an empty store passes nothing") {
  auto store = subject.open();
  for (const bool reverse : {false, true}) {
    CHECK(scan(*store, {.reverse = reverse}).empty());
    CHECK(scan(*store, {.first = "a", .last = "b", .reverse = reverse}).empty());
    CHECK(scan(*store, {.reverse = reverse}, Space::meta).empty());
  }
}

ENGINE_SCENARIO(ordered, "a scan ends when its visitor says so, and counts what it passed") {
  auto store = subject.open();
  write(*store, even_keys());
  int seen = 0;
  const auto passed = store->scan({}, [&](std::string_view, std::string_view) { return ++seen < 5; });
  REQUIRE_OK(passed);
  CHECK(seen == 5);
  CHECK(*passed == 5);
}

ENGINE_SCENARIO(ordered, "a bound is a position: it may be longer than any key, and end in the highest byte") {
  auto store = subject.open();
  const std::string longest(kKeyBytesMax, 'm');
  for (const std::string& key : {"a"s, longest, "n"s, "\xff"s, "\xff\xff"s}) put(*store, key, "v");
  const std::string beyond = longest + "m";
  CHECK(scan_keys(*store, {.first = beyond}) == std::vector<std::string>{"n", "\xff", "\xff\xff"});
  CHECK(scan_keys(*store, {.last = beyond}) == std::vector<std::string>{"a", longest});
  CHECK(scan_keys(*store, {.last = beyond, .reverse = true}) == std::vector<std::string>{longest, "a"});
  CHECK(scan_keys(*store, {.first = "\xff\xff\xff"}).empty());
  CHECK(scan_keys(*store, {.last = "\xff\xff\xff", .reverse = true, .limit = 1}) ==
        std::vector<std::string>{"\xff\xff"});
}

ENGINE_SCENARIO(ordered, "a scan passes erased keys over, at its ends and in its middle") {
  auto store = subject.open();
  Model model;
  write(*store, even_keys());
  model.apply(even_keys());
  std::vector<Operation> erases;
  for (const int i : {0, 2, 4, 100, 102, 104, 300, 500, 994, 996, 998}) {
    erases.push_back({Kind::erase, "k" + std::to_string(1000 + i).substr(1), {}});
  }
  write(*store, erases);
  model.apply(erases);
  check_equal(*store, model);
  for (const bool reverse : {false, true}) {
    const Range range{"k100", "k106", reverse};
    CHECK(scan(*store, range).empty());
    CHECK(scan(*store, {.first = "k099", .reverse = reverse, .limit = 3}) ==
          model.scan(Space::records, {.first = "k099", .reverse = reverse, .limit = 3}));
  }
}

ENGINE_SCENARIO(ordered, "a scan walks through runs, records put between them and bounds inside a run") {
  auto store = subject.open();
  Model model;
  const auto apply = [&](const std::vector<Operation>& operations, std::uint64_t first) {
    write(*store, operations, first);
    model.apply(operations, first);
  };
  std::vector<Operation> run;
  for (int i = 0; i < 700; ++i) run.push_back({Kind::next, {}, "line " + std::to_string(i)});
  apply(run, 1);
  apply(run, 5000);
  apply({{Kind::put, seq_key(300) + "a", "between"},
         {Kind::put, seq_key(300).substr(0, 7), "shorter"},
         {Kind::erase, seq_key(350), {}},
         {Kind::put, "text key", "far behind"}},
        9000);
  const std::string from = seq_key(295), to = seq_key(5003);
  for (const bool reverse : {false, true}) {
    for (const std::size_t limit : {std::size_t{3}, std::size_t{300}, Range().limit}) {
      const Range range{from, to, reverse, limit};
      CAPTURE(reverse, limit);
      const bool same = scan(*store, range) == model.scan(Space::records, range);
      CHECK(same);
    }
  }
  check_equal(*store, model);
}

ENGINE_SCENARIO(ordered, "paging by the last key seen passes every record once") {
  auto store = subject.open();
  write(*store, even_keys());
  std::vector<std::string> paged;
  std::string next;
  while (true) {
    const auto page = scan_keys(*store, {.first = next, .limit = 33});
    if (page.empty()) break;
    paged.insert(paged.end(), page.begin(), page.end());
    next = page.back() + '\0';
  }
  CHECK(paged == scan_keys(*store));
}

/// What the writer has made of the store after its batch `generation`: all keys say so, and every third key, another
/// third each time, is erased.
std::vector<Operation> generation_batch(int generation, int keys) {
  std::vector<Operation> operations;
  for (int i = 0; i < keys; ++i) {
    const std::string key = "key/" + std::to_string(10'000 + i);
    if ((i + generation) % 3 == 0) {
      operations.push_back({Kind::erase, key, {}});
    } else {
      operations.push_back({Kind::put, key, std::to_string(generation)});
    }
  }
  return operations;
}

/// A scan made while others write is sound when all it saw is of one generation, complete, and not older than its
/// start.
bool is_one_generation(const Rows& rows, int keys, int oldest, int newest) {
  if (rows.empty()) return false;
  const int generation = std::stoi(rows.front().second);
  if (generation < oldest || generation > newest) return false;
  Model model;
  model.apply(generation_batch(generation, keys));
  return rows == model.scan(Space::records, {});
}

ENGINE_SCENARIO(ordered, "a scan sees the store as of its start while writes and erasures go on") {
  auto store = subject.open();
  constexpr int kKeys = 2'000;  // Several times what a scan may pass before it lets the writer in.
  constexpr int kOverlapsWanted = 20;
  write(*store, generation_batch(1, kKeys));
  std::atomic<int> generation{1};  // Written for sure; generation + 1 may be in the store as well.
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  std::thread writer([&] {
    while (!done) {
      const auto written = store->write(to_batch(generation_batch(generation + 1, kKeys)), Durability::memory);
      if (!written) failed = true;
      ++generation;
    }
  });
  int overlaps = 0;
  int wrong = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int i = 0; overlaps < kOverlapsWanted && std::chrono::steady_clock::now() < end && !failed; ++i) {
    const int before = generation;
    Rows rows;
    const auto passed = store->scan({.reverse = i % 2 == 1}, [&](std::string_view key, std::string_view value) {
      rows.emplace_back(key, value);
      return true;
    });
    const int after = generation;
    if (!passed) failed = true;
    if (i % 2 == 1) std::reverse(rows.begin(), rows.end());
    if (!is_one_generation(rows, kKeys, before, after + 1)) ++wrong;
    if (after > before) ++overlaps;
  }
  done = true;
  writer.join();
  CHECK_FALSE(failed);
  CHECK(wrong == 0);
  CHECK(overlaps == kOverlapsWanted);
}

ENGINE_SCENARIO(ordered, "what write() returned from is seen by every read that starts after it") {
  auto store = subject.open();
  std::atomic<int> written{0};
  std::atomic<bool> done{false};
  std::atomic<int> stale{0};
  std::atomic<int> looks{0};
  std::thread reader([&] {
    while (!done) {
      const int at_least = written;
      int seen = 0;
      const auto got = store->get("counter", [&](std::string_view value) { seen = std::stoi(std::string(value)); });
      int scanned = 0;
      const auto passed = store->scan({}, [&](std::string_view, std::string_view value) {
        scanned = std::stoi(std::string(value));
        return true;
      });
      if (!got || !passed || seen < at_least || scanned < at_least) ++stale;
      ++looks;
    }
  });
  for (int i = 1; i <= 500 || looks < 100; ++i) {
    const auto result =
        store->write(to_batch(std::vector<Operation>{{Kind::put, "counter", std::to_string(i)}}), Durability::memory);
    if (!result) ++stale;
    written = i;
  }
  done = true;
  reader.join();
  CHECK(stale == 0);
}

}  // namespace
}  // namespace kvingest::test
