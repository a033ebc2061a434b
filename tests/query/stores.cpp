#include "tests/query/stores.hpp"

#include <map>

#include "tests/support/expect.hpp"

namespace kvingest::test {

std::vector<std::string> persistent_engines() {
  std::vector<std::string> names;
  for (const Engine* engine : engines()) {
    if (engine->persistent && engine->missing.empty()) names.emplace_back(engine->name);
  }
  REQUIRE_FALSE(names.empty());
  return names;
}

std::unique_ptr<Store> map_store() {
  auto store = open_store(*parse_store_spec("map"), {});
  REQUIRE_OK(store);
  return *std::move(store);
}

std::unique_ptr<Store> created(const std::string& engine, const std::filesystem::path& dir,
                               std::map<std::string, std::string, std::less<>> labels) {
  auto store = open_store(*parse_store_spec(engine), {.dir = dir, .labels = std::move(labels)});
  REQUIRE_OK(store);
  return *std::move(store);
}

void write_numbered(const std::string& engine, const std::filesystem::path& dir, int count) {
  const auto store = created(engine, dir, {{"key", "{seq}"}, {"format", "line"}, {"value", "(whole message)"}});
  WriteBatch batch;
  for (int i = 1; i <= count; ++i) batch.put_next(fmt::format("value {}", i));
  batch.put_meta("m", "not a record");
  batch.number(1);
  REQUIRE_OK(store->write(batch, Durability::disk));
  REQUIRE_OK(store->close());
}

Entries entries_of(const Store& store, Space space) {
  Entries entries;
  REQUIRE_OK(store.scan(space, {}, [&](std::string_view key, std::string_view value) {
    entries.emplace_back(key, value);
    return true;
  }));
  return entries;
}

Finished kvq(std::vector<std::string> args, const std::filesystem::path& dir) {
  args.insert(args.begin(), program("kvq"));
  args.insert(args.end(), {"--dir", dir.native()});
  return run(std::move(args));
}

std::string kvq_out(std::vector<std::string> args, const std::filesystem::path& dir) {
  const Finished done = kvq(std::move(args), dir);
  INFO(done.err);
  CHECK(done.exit.code == 0);
  CHECK(done.err.empty());
  return done.out;
}

}  // namespace kvingest::test
