// engine_fixture.hpp -- opens an engine through its row alone, as open_store() does below its checks.
//
// Threads: one at a time.
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
#include "tests/support/catch.hpp"

namespace kvingest::test {

/// What an engine gets: `dir` exists; `fresh` where it is to make its files.
inline EngineContext context_for(const std::filesystem::path& dir, bool fresh, EngineOptions options = {}) {
  return {.dir = dir,
          .options = std::move(options),
          .fresh = fresh,
          .posix = &Posix::real(),
          .notice = [](std::string_view) {}};
}

/// Opens or fails the test.
inline std::unique_ptr<Store> open_engine(const Engine& engine, EngineContext context) {
  auto opened = engine.open(std::move(context));
  if (!opened) FAIL("open " << engine.name << ": " << opened.error().text);
  return std::move(*opened);
}

/// The value under `key`; nullopt where there is none.
inline std::optional<std::string> value_of(const Store& store, std::string_view key, Space space = Space::records) {
  std::optional<std::string> found;
  const auto got = store.get(space, key, [&](std::string_view value) { found = value; });
  if (!got) FAIL("get: " << got.error().text);
  CHECK(*got == found.has_value());
  return found;
}

inline std::uint64_t stat_of(const Store& store, std::string_view name) {
  std::optional<std::uint64_t> found;
  store.stats([&](std::string_view stat, std::uint64_t value) {
    if (stat == name) found = value;
  });
  if (!found) FAIL("no such stat: " << name);
  return *found;
}

using Entries = std::vector<std::pair<std::string, std::string>>;

inline Entries entries_of(const Store& store, const Range& range = {}, Space space = Space::records) {
  Entries found;
  const auto passed = store.scan(space, range, [&](std::string_view key, std::string_view value) {
    found.emplace_back(key, value);
    return true;
  });
  if (!passed) FAIL("scan: " << passed.error().text);
  CHECK(*passed == found.size());
  return found;
}

/// The code of a failure, or nullopt of a success, for CHECK lines that show it.
template <class T>
std::optional<Code> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional<Code>(result.error().code);
}

}  // namespace kvingest::test

template <>
struct Catch::StringMaker<kvingest::Code> {
  static std::string convert(kvingest::Code code) { return std::string(kvingest::to_string(code)); }
};
