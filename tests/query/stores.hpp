// stores.hpp -- what the tests of kvq share: engines by name, stores filled here, kvq as a process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvingest/engine.hpp"
#include "tests/support/process.hpp"

namespace kvingest::test {

/// The persistent engines of this build.
[[nodiscard]] std::vector<std::string> persistent_engines();

/// An empty store in memory.
[[nodiscard]] std::unique_ptr<Store> map_store();

/// A new store whose marker has these labels.
[[nodiscard]] std::unique_ptr<Store> created(const std::string& engine, const std::filesystem::path& dir,
                                             std::map<std::string, std::string, std::less<>> labels);

/// A {seq} store that holds "value N" under N, from 1 to `count`, and a meta entry; closed.
void write_numbered(const std::string& engine, const std::filesystem::path& dir, int count);

using Entries = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Entries entries_of(const Store& store, Space space);

/// Runs kvq on `dir`.
[[nodiscard]] Finished kvq(std::vector<std::string> args, const std::filesystem::path& dir);
/// What it prints; the test fails unless it ends with 0 and says nothing on stderr.
std::string kvq_out(std::vector<std::string> args, const std::filesystem::path& dir);

}  // namespace kvingest::test
