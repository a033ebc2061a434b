// scenario.hpp -- one scenario, run against every engine by name.
//
//   ENGINE_SCENARIO(kept, "a key that was erased is not there") {
//     auto store = subject.open();
//     ...
//   }
//
// becomes the test cases "a key that was erased is not there - map", "... - lmdb" and so on, one CTest entry each. What
// an engine cannot do by its own capabilities is not run but checked to be refused, and said.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvingest/engine.hpp"
#include "tests/storage/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvingest::test {

/// What a scenario asks of an engine; each includes those before it.
enum class Needs {
  anything,    ///< Also the engine that forgets everything.
  kept,        ///< What was written can be read.
  ordered,     ///< Scans of the record space.
  persistent,  ///< A directory that outlives the process.
};

/// An engine under test, with a directory of its own.
class Subject {
 public:
  explicit Subject(const Engine& engine) : engine_(&engine) {}

  [[nodiscard]] const Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] StoreSpec spec() const { return {engine_, options_}; }
  /// The same as --store takes it.
  [[nodiscard]] std::string spec_text() const;
  /// From now on, files are small where the engine lets one choose, so that little data meets many of its steps.
  void use_small_files();
  /// Its store directory; nothing is there before the first open().
  [[nodiscard]] std::filesystem::path dir() const { return temp_ / "store"; }
  [[nodiscard]] const TempDir& temp() const noexcept { return temp_; }

  /// Opens the store; the test fails where that does.
  [[nodiscard]] std::unique_ptr<Store> open(StoreOptions options = {}) const;
  [[nodiscard]] std::unique_ptr<Store> open_read_only() const { return open({.read_only = true}); }
  [[nodiscard]] Result<std::unique_ptr<Store>> try_open(StoreOptions options = {}) const;

 private:
  const Engine* engine_;
  EngineOptions options_;
  TempDir temp_;
};

// Short forms. Each fails the test where the store reports an error.

void write(Store& store, const WriteBatch& batch, Durability level = Durability::memory);
void write(Store& store, std::span<const Operation> operations, std::uint64_t first = 1);
void put(Store& store, std::string_view key, std::string_view value, Durability level = Durability::memory);
[[nodiscard]] std::optional<std::string> get(const Store& store, std::string_view key, Space space = Space::records);
[[nodiscard]] Rows scan(const Store& store, const Range& range = {}, Space space = Space::records);
[[nodiscard]] std::vector<std::string> scan_keys(const Store& store, const Range& range = {});
[[nodiscard]] std::uint64_t count(const Store& store);
void close(Store& store);

/// Holds a store against the model: both spaces, by get, multi_get, scans in both directions, count. An unordered store
/// is asked for each key instead.
void check_equal(const Store& store, const Model& model);

/// The path, kind and bytes of everything below a directory: a test that compares two sees every change.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> tree(const std::filesystem::path& dir);

/// A seed for this run: KVINGEST_TEST_SEED, or a new one. Print it with CAPTURE.
[[nodiscard]] std::uint64_t test_seed();

/// `rounds`, or what KVINGEST_TORTURE_ROUNDS asks for, for the long form of a campaign.
[[nodiscard]] std::size_t torture_rounds(std::size_t rounds);

/// Says how many rounds a campaign had, on a line that `./dev torture` counts.
void print_rounds(std::size_t rounds, std::string_view what);

using Scenario = void (*)(Subject& subject);

struct ScenarioInfo {
  std::string_view name;
  Needs needs;
};
/// All scenarios of this program.
[[nodiscard]] const std::vector<ScenarioInfo>& scenarios();

/// Whether an engine makes its system calls through the table of base/posix.hpp, all of them.
[[nodiscard]] bool makes_our_calls(const Engine& engine) noexcept;

/// Whether an engine is tried with scenarios that need this; ordered is found out on the open store.
[[nodiscard]] bool applies(const Engine& engine, Needs needs) noexcept;

void run_scenario(Scenario scenario, Needs needs, std::size_t engine);
void note_scenario(std::string_view name, Needs needs);

/// Room for engines to come; a test fails when it is used up.
inline constexpr std::size_t kEnginesMax = 12;

template <Scenario scenario, Needs needs, std::size_t... engine>
void register_scenario(const char* name, std::index_sequence<engine...>) {
  note_scenario(name, needs);
  const auto add = [name](std::size_t index, void (*test)()) {
    if (index >= engines().size() || !applies(*engines()[index], needs)) return;
    const std::string engine_name(engines()[index]->name);
    const std::string test_name = std::string(name) + " - " + engine_name;
    const std::string tags = "[" + engine_name + "]";
    REGISTER_TEST_CASE(test, test_name, tags);
  };
  (add(engine, [] { run_scenario(scenario, needs, engine); }), ...);
}

}  // namespace kvingest::test

// Numbered by __COUNTER__, not by line: two files may be compiled as one.
#define ENGINE_SCENARIO(needs, name) KV_SCENARIO_1(needs, name, __COUNTER__)
#define KV_SCENARIO_1(needs, name, number) KV_SCENARIO_2(needs, name, number)
#define KV_SCENARIO_2(needs, name, number)                                                      \
  static void kv_scenario_##number(::kvingest::test::Subject& subject);                         \
  static const bool kv_scenario_registered_##number = [] {                                      \
    ::kvingest::test::register_scenario<&kv_scenario_##number, ::kvingest::test::Needs::needs>( \
        name, std::make_index_sequence<::kvingest::test::kEnginesMax>());                       \
    return true;                                                                                \
  }();                                                                                          \
  static void kv_scenario_##number([[maybe_unused]] ::kvingest::test::Subject& subject)
