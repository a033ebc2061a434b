// Engines check each other: the same random operations on an engine, on `map`, and on plain maps of the test's own.
//
// World: batches of random operations on awkward keys, from a seed that is printed; opening again in between.
#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

constexpr std::size_t kBatches = 150;
constexpr std::size_t kOperationsMax = 60;
constexpr std::size_t kValueBytesMax = 20'000;

const Engine& map_engine() {
  for (const Engine* each : engines()) {
    if (each->name == "map") return *each;
  }
  throw std::runtime_error("no engine map");
}

Range random_range(OperationSource& source, std::string& first, std::string& last) {
  Range range;
  first = source.key();
  last = source.key();
  if (source.below(4) != 0) range.first = first;
  if (source.below(4) != 0) range.last = last;
  range.reverse = source.below(2) == 0;
  if (source.below(3) == 0) range.limit = source.below(20);
  return range;
}

void compare_reads(const Store& store, const Store& reference, const Model& model, OperationSource& source) {
  for (int i = 0; i < 20; ++i) {
    const std::string key = source.key();
    const Space space = i % 4 == 0 ? Space::meta : Space::records;
    const auto found = get(store, key, space);
    const bool same = found == get(reference, key, space);
    CAPTURE(key, i);
    REQUIRE(same);
  }
  for (int i = 0; i < 5; ++i) {
    std::string first, last;
    const Range range = random_range(source, first, last);
    for (const Space space : {Space::records, Space::meta}) {
      if (space == Space::records && !store.capabilities().ordered) continue;
      const Rows found = scan(store, range, space);
      const bool like_map = found == scan(reference, range, space);
      const bool like_model = found == model.scan(space, range);
      CAPTURE(first, last, range.reverse, range.limit, i);
      REQUIRE(like_map);
      REQUIRE(like_model);
    }
  }
}

ENGINE_SCENARIO(kept, "random operations give what map gives, opening again in between") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  WARN("seed " << seed);
  OperationSource source(seed);
  auto store = subject.open();
  const Subject reference_subject(map_engine());
  const auto reference = reference_subject.open();
  Model model;
  const std::size_t batches = torture_rounds(1) * kBatches;
  for (std::size_t i = 0; i < batches; ++i) {
    CAPTURE(i);
    const auto operations = source.batch(kOperationsMax, kValueBytesMax);
    const std::uint64_t first = 1 + source.below(300);
    const auto level = static_cast<Durability>(source.below(16) == 0 ? 2 : source.below(2));
    write(*store, to_batch(operations, first), level);
    write(*reference, operations, first);
    model.apply(operations, first);
    compare_reads(*store, *reference, model, source);
    if (source.below(40) == 0) CHECK_OK(store->compact());
    if (subject.engine().persistent && source.below(20) == 0) {
      if (source.below(2) == 0) close(*store);
      store.reset();
      store = subject.open();
      CHECK(store->last_batch() == i + 1);
      check_equal(*store, model);
    }
  }
  check_equal(*store, model);
  check_equal(*reference, model);
}

}  // namespace
}  // namespace kvingest::test
