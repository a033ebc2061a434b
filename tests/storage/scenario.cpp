#include "tests/storage/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/support/skip.hpp"

namespace kvingest::test {
namespace {

std::vector<ScenarioInfo>& noted() {
  static std::vector<ScenarioInfo> all;
  return all;
}

std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

void check_gets(const Store& store, const Model& model) {
  for (const Space space : {Space::records, Space::meta}) {
    for (const auto& [key, value] : model.space(space)) {
      CAPTURE(key);
      const auto found = get(store, key, space);
      REQUIRE(found.has_value());
      // Compared outside the assertion: a difference of two values of a megabyte is no text to read.
      const bool same = *found == value;
      REQUIRE(same);
    }
  }
}

void check_multi_get(const Store& store, const Model& model) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : model.space(Space::records)) keys.push_back(key);
  keys.emplace_back("a key that no model has");
  std::size_t wrong = 0;
  const auto found = store.multi_get(keys, [&](std::size_t index, std::string_view value) {
    if (index + 1 >= keys.size() || model.space(Space::records).at(std::string(keys[index])) != value) ++wrong;
  });
  REQUIRE_OK(found);
  CHECK(*found == keys.size() - 1);
  CHECK(wrong == 0);
}

void check_scan(const Store& store, const Model& model, Space space, const Range& range) {
  const Rows wanted = model.scan(space, range);
  const Rows found = scan(store, range, space);
  REQUIRE(found.size() == wanted.size());
  const auto [at, unused] = std::mismatch(found.begin(), found.end(), wanted.begin());
  const bool same = at == found.end();
  CAPTURE(at - found.begin(), range.reverse);
  REQUIRE(same);
}

}  // namespace

Result<std::unique_ptr<Store>> Subject::try_open(StoreOptions options) const {
  if (options.dir.empty()) options.dir = dir();
  return open_store(spec(), options);
}

std::string Subject::spec_text() const {
  std::string text(engine_->name);
  for (const auto& [name, value] : options_) text += fmt::format(",{}={}", name, value);
  return text;
}

void Subject::use_small_files() {
  for (const EngineOption& option : engine_->options) {
    if (option.name == "segment") options_["segment"] = "256K";
    if (option.name == "checkpoint") options_["checkpoint"] = "64K";
  }
}

std::unique_ptr<Store> Subject::open(StoreOptions options) const {
  auto store = try_open(std::move(options));
  REQUIRE_OK(store);
  return std::move(*store);
}

void write(Store& store, const WriteBatch& batch, Durability level) {
  REQUIRE_OK(store.write(batch, level));
}

void write(Store& store, std::span<const Operation> operations, std::uint64_t first) {
  write(store, to_batch(operations, first));
}

void put(Store& store, std::string_view key, std::string_view value, Durability level) {
  WriteBatch batch;
  batch.put(key, value);
  write(store, batch, level);
}

std::optional<std::string> get(const Store& store, std::string_view key, Space space) {
  std::optional<std::string> value;
  const auto found = store.get(space, key, [&](std::string_view bytes) { value = bytes; });
  REQUIRE_OK(found);
  REQUIRE(*found == value.has_value());
  return value;
}

Rows scan(const Store& store, const Range& range, Space space) {
  Rows rows;
  const auto passed = store.scan(space, range, [&](std::string_view key, std::string_view value) {
    rows.emplace_back(key, value);
    return true;
  });
  REQUIRE_OK(passed);
  REQUIRE(*passed == rows.size());
  return rows;
}

std::vector<std::string> scan_keys(const Store& store, const Range& range) {
  std::vector<std::string> keys;
  for (auto& [key, value] : scan(store, range)) keys.push_back(std::move(key));
  return keys;
}

std::uint64_t count(const Store& store) {
  const auto counted = store.count();
  REQUIRE_OK(counted);
  return *counted;
}

void close(Store& store) {
  REQUIRE_OK(store.close());
}

void check_equal(const Store& store, const Model& model) {
  CHECK(count(store) == model.space(Space::records).size());
  check_gets(store, model);
  check_multi_get(store, model);
  for (const bool reverse : {false, true}) {
    if (store.capabilities().ordered) check_scan(store, model, Space::records, {.reverse = reverse});
    check_scan(store, model, Space::meta, {.reverse = reverse});
  }
}

std::vector<std::pair<std::string, std::string>> tree(const std::filesystem::path& dir) {
  std::vector<std::pair<std::string, std::string>> entries;
  if (!std::filesystem::exists(dir)) return entries;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    const std::string name = std::filesystem::relative(entry.path(), dir).native();
    entries.emplace_back(name, entry.is_regular_file() ? file_text(entry.path()) : std::string());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::uint64_t test_seed() {
  static const std::uint64_t seed = number_from_environment("KVINGEST_TEST_SEED").value_or(std::random_device()());
  return seed;
}

void print_rounds(std::size_t rounds, std::string_view what) {
  fmt::print("rounds: {} {}\n", rounds, what);
}

std::size_t torture_rounds(std::size_t rounds) {
  return number_from_environment("KVINGEST_TORTURE_ROUNDS").value_or(rounds);
}

const std::vector<ScenarioInfo>& scenarios() {
  return noted();
}

void note_scenario(std::string_view name, Needs needs) {
  noted().push_back({name, needs});
}

bool makes_our_calls(const Engine& engine) noexcept {
  return engine.name == "file" || engine.name == "mmap";
}

bool applies(const Engine& engine, Needs needs) noexcept {
  if (needs == Needs::persistent) return engine.persistent;
  return needs == Needs::anything || engine.name != "null";  // The only one that forgets by design.
}

void run_scenario(Scenario scenario, Needs needs, std::size_t engine) {
  const Engine& row = *engines()[engine];
  if (!row.missing.empty()) {
    print_skipped(fmt::format("store {} is not in this build: {}", row.name, row.missing));
    return;
  }
  if (needs == Needs::ordered) {
    const Subject probe(row);
    const auto store = probe.open();
    if (!store->capabilities().ordered) {
      std::printf("store %.*s has no order: its scans must be refused\n", static_cast<int>(row.name.size()),
                  row.name.data());
      CHECK_CODE(store->scan({}, [](std::string_view, std::string_view) { return true; }), Code::unsupported);
      return;
    }
    close(*store);
  }
  Subject subject(row);
  scenario(subject);
}

}  // namespace kvingest::test
