// engine_fixture.hpp -- an engine by its row alone, as open_store() uses it below its checks; and one in a second
// process, driven line by line.
//
// Threads: one at a time.
// Errors:  what a test cannot go on from fails it at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/posix.hpp"
#include "kvingest/engine.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {

/// How an engine finds its directory.
enum class Opening { fresh, again, read_only };

/// What an engine gets; `dir` exists. Notices go to `notices` where given.
EngineContext context_for(const std::filesystem::path& dir, Opening how, EngineOptions options = {},
                          std::vector<std::string>* notices = nullptr);

std::unique_ptr<Store> open_engine(const Engine& engine, const EngineContext& context);

/// Writes, or fails the test.
void write(Store& store, const WriteBatch& batch, Durability level = Durability::kernel);

/// A batch that puts keys "TEXT00000000" and so on from `first`, each with `value_bytes` bytes that tell its number.
WriteBatch numbered_batch(std::string_view text, std::uint64_t first, std::uint64_t count, std::size_t value_bytes);
std::string numbered_key(std::string_view text, std::uint64_t number);
std::string numbered_value(std::uint64_t number, std::size_t bytes);

/// The value under `key`; nullopt where there is none.
std::optional<std::string> value_of(const Store& store, std::string_view key, Space space = Space::records);

using Entries = std::vector<std::pair<std::string, std::string>>;
Entries entries_of(const Store& store, const Range& range = {}, Space space = Space::records);

std::uint64_t stat_of(const Store& store, std::string_view name);

/// Every file below `dir` with its content.
Entries tree_of(const std::filesystem::path& dir);

/// An engine in a process of its own (engine_tool.cpp says what it understands).
class EngineProcess {
 public:
  /// Starts it and waits until the engine is open. `before` goes in front of the command line.
  EngineProcess(std::string_view engine, const std::filesystem::path& dir, Opening how, std::string_view options = {},
                std::vector<std::string> before = {});

  /// Sends a line and returns the answer.
  std::string ask(std::string_view line);
  /// Sends a line whose answer is not waited for.
  void tell(std::string_view line);
  [[nodiscard]] Process& process() noexcept { return process_; }

 private:
  Process process_;
};

}  // namespace kvingest::test
