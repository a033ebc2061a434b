// The contract of kvingest/store.hpp, on every engine: batches, runs, the meta space, counting.
//
// World: one store in a fresh directory; where readers are asked for, other threads read while this one writes.
#include <atomic>
#include <thread>

#include "tests/storage/scenario.hpp"

namespace kvingest::test {
namespace {

using Kind = Operation::Kind;

ENGINE_SCENARIO(kept, "the operations of a batch apply in their order") {
  auto store = subject.open();
  Model model;
  const std::vector<std::vector<Operation>> batches{
      {{Kind::put, "k", "1"}, {Kind::put, "k", "2"}, {Kind::erase, "k"}, {Kind::put, "k", "3"}},
      {{Kind::put, "gone", "1"}, {Kind::erase, "gone"}},
      {{Kind::erase, "k"}, {Kind::put, "k", "4"}, {Kind::put_meta, "m", "1"}, {Kind::erase_meta, "m"}},
      {{Kind::put_meta, "m", "2"}, {Kind::put_meta, "m", "3"}, {Kind::erase, "k"}},
      {{Kind::next, {}, "run"}, {Kind::erase, seq_key(1)}, {Kind::put, seq_key(1), "put over it"}},
      {{Kind::put, seq_key(2), "before"}, {Kind::next, {}, "over it"}},
  };
  for (const auto& operations : batches) {
    write(*store, operations);
    model.apply(operations);
    check_equal(*store, model);
  }
}

ENGINE_SCENARIO(kept, "the two spaces do not meet") {
  auto store = subject.open();
  WriteBatch batch;
  batch.put("same", "record");
  batch.put_meta("same", "meta");
  batch.put_meta("only meta", "meta");
  write(*store, batch);
  CHECK(get(*store, "same") == "record");
  CHECK(get(*store, "same", Space::meta) == "meta");
  CHECK(get(*store, "only meta") == std::nullopt);
  CHECK(count(*store) == 1);
  CHECK(scan(*store, {}, Space::meta) == Rows{{"only meta", "meta"}, {"same", "meta"}});
  if (store->capabilities().ordered) CHECK(scan(*store) == Rows{{"same", "record"}});
  batch.clear();
  batch.erase_meta("same");
  write(*store, batch);
  CHECK(get(*store, "same") == "record");
  CHECK(get(*store, "same", Space::meta) == std::nullopt);
}

ENGINE_SCENARIO(kept, "records of a run are found under their numbers as 8-byte keys") {
  auto store = subject.open();
  Model model;
  std::uint64_t next = 1;
  for (const std::size_t run : {1u, 3u, 500u, 2u}) {
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < run; ++i) operations.push_back({Kind::next, {}, "line " + std::to_string(next + i)});
    write(*store, operations, next);
    model.apply(operations, next);
    next += run;
  }
  CHECK(get(*store, seq_key(1)) == "line 1");
  CHECK(get(*store, seq_key(506)) == "line 506");
  CHECK(get(*store, seq_key(0)) == std::nullopt);
  CHECK(get(*store, seq_key(507)) == std::nullopt);
  CHECK(get(*store, seq_key(1).substr(1)) == std::nullopt);
  check_equal(*store, model);
}

ENGINE_SCENARIO(kept, "single records inside a run can be replaced, erased and put back") {
  auto store = subject.open();
  Model model;
  const auto apply = [&](const std::vector<Operation>& operations, std::uint64_t first) {
    write(*store, operations, first);
    model.apply(operations, first);
    check_equal(*store, model);
  };
  std::vector<Operation> run;
  for (int i = 0; i < 20; ++i) run.push_back({Kind::next, {}, "run " + std::to_string(i)});
  apply(run, 100);
  apply({{Kind::put, seq_key(105), "replaced"}, {Kind::erase, seq_key(110)}}, 1000);
  apply({{Kind::erase, seq_key(100)}, {Kind::erase, seq_key(119)}}, 1001);
  apply({{Kind::put, seq_key(110), "back"}, {Kind::put, seq_key(105) + "x", "between"}}, 1002);
  apply(run, 95);  // Numbers given again: the later run holds.
  std::vector<Operation> all;
  for (std::uint64_t i = 90; i < 125; ++i) all.push_back({Kind::erase, seq_key(i)});
  apply(all, 2000);
}

ENGINE_SCENARIO(kept, "numbers far apart and the largest ones are kept") {
  auto store = subject.open();
  Model model;
  for (const std::uint64_t first : {std::uint64_t{0xff}, std::uint64_t{1} << 32, ~std::uint64_t{0} - 1}) {
    const std::vector<Operation> operations{{Kind::next, {}, "a"}, {Kind::next, {}, "b"}};
    write(*store, operations, first);
    model.apply(operations, first);
  }
  check_equal(*store, model);
}

ENGINE_SCENARIO(kept, "puts of one batch take consecutive numbers, whatever their keys") {
  auto store = subject.open();
  WriteBatch batch;
  batch.put_next("seven");
  batch.put("named", "takes eight");
  batch.put_with_number("k/00000000000000000000", {2}, "nine");
  batch.put_next("ten");
  CHECK(batch.number(7) == 11);
  write(*store, batch);
  CHECK(get(*store, seq_key(7)) == "seven");
  CHECK(get(*store, "k/00000000000000000009") == "nine");
  CHECK(get(*store, seq_key(10)) == "ten");
  CHECK(count(*store) == 4);
}

ENGINE_SCENARIO(anything, "last_batch counts the writes that succeeded, the empty one included") {
  auto store = subject.open();
  CHECK(store->last_batch() == 0);
  put(*store, "a", "1");
  put(*store, "a", "1");
  CHECK(store->last_batch() == 2);
  WriteBatch refused;
  refused.put("", "no");
  CHECK_CODE(store->write(refused, Durability::memory), Code::invalid_argument);
  CHECK(store->last_batch() == 2);
  write(*store, WriteBatch());
  CHECK(store->last_batch() == 3);
  WriteBatch meta_only;
  meta_only.put_meta("m", "1");
  write(*store, meta_only, Durability::disk);
  CHECK(store->last_batch() == 4);
}

ENGINE_SCENARIO(kept, "a batch can be written at every level, and is there at once") {
  auto store = subject.open();
  const auto capabilities = store->capabilities();
  CHECK(capabilities.weakest <= capabilities.strongest);
  CHECK(capabilities.persistent == subject.engine().persistent);
  if (capabilities.persistent) CHECK(capabilities.strongest == Durability::disk);
  if (!capabilities.persistent) CHECK(capabilities.given(Durability::disk) == Durability::memory);
  for (const Durability level : {Durability::memory, Durability::kernel, Durability::disk}) {
    put(*store, to_string(level), "written", level);
    CHECK(get(*store, to_string(level)) == "written");
  }
  CHECK_OK(store->sync());
  CHECK(count(*store) == 3);
}

ENGINE_SCENARIO(kept, "a batch of many operations is one step") {
  auto store = subject.open();
  Model model;
  std::vector<Operation> operations;
  for (int i = 0; i < 20'000; ++i)
    operations.push_back({Kind::put, "key/" + std::to_string(i * 7919 % 20'000), "v" + std::to_string(i)});
  write(*store, operations);
  model.apply(operations);
  CHECK(store->last_batch() == 1);
  check_equal(*store, model);
}

// Readers ask for a pair of keys that each batch changes together, far apart, so that a store that applies a batch in
// steps shows itself.
ENGINE_SCENARIO(kept, "readers never see half a batch") {
  auto store = subject.open();
  constexpr int kBatches = 300;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> errors{0};
  const std::vector<std::string_view> pair{"a", "z"};
  const auto read = [&] {
    while (!done) {
      std::string seen[2];
      const auto found =
          store->multi_get(pair, [&](std::size_t index, std::string_view value) { seen[index] = value; });
      if (!found) ++errors;
      if (found && (*found == 1 || seen[0] != seen[1])) ++torn;
      ++looks;
    }
  };
  std::thread readers[2] = {std::thread(read), std::thread(read)};
  for (int i = 0; i < kBatches || looks < 1000; ++i) {
    std::vector<Operation> operations{{i % 10 == 9 ? Kind::erase : Kind::put, "a", std::to_string(i)}};
    for (int filler = 0; filler < 50; ++filler) operations.push_back({Kind::put, "m" + std::to_string(filler), "x"});
    operations.push_back({i % 10 == 9 ? Kind::erase : Kind::put, "z", std::to_string(i)});
    const auto written = store->write(to_batch(operations), Durability::memory);
    if (!written) ++errors;
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(errors == 0);
  CHECK(torn == 0);
}

}  // namespace
}  // namespace kvingest::test
