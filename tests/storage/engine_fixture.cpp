#include "tests/storage/engine_fixture.hpp"

#include <algorithm>

namespace kvingest::test {
namespace {

std::vector<std::string> tool_command(std::string_view engine, const std::filesystem::path& dir, Opening how,
                                      std::string_view options, std::vector<std::string> before) {
  constexpr std::string_view kHow[] = {"fresh", "again", "read_only"};
  before.insert(before.end(), {program("test_engine_tool"), std::string(engine), dir.native(),
                               std::string(kHow[static_cast<std::size_t>(how)]), std::string(options)});
  return before;
}

}  // namespace

EngineContext context_for(const std::filesystem::path& dir, Opening how, EngineOptions options,
                          std::vector<std::string>* notices) {
  return {.dir = dir,
          .options = std::move(options),
          .read_only = how == Opening::read_only,
          .fresh = how == Opening::fresh,
          .posix = &Posix::real(),
          .notice = [notices](std::string_view text) {
            if (notices != nullptr) notices->emplace_back(text);
          }};
}

std::unique_ptr<Store> open_engine(const Engine& engine, const EngineContext& context) {
  auto opened = engine.open(context);
  REQUIRE_OK(opened);
  return std::move(*opened);
}

void write(Store& store, const WriteBatch& batch, Durability level) {
  REQUIRE_OK(store.write(batch, level));
}

std::string numbered_key(std::string_view text, std::uint64_t number) {
  return fmt::format("{}{:08}", text, number);
}

std::string numbered_value(std::uint64_t number, std::size_t bytes) {
  std::string value = fmt::format("{}-", number);
  value.resize(std::max(bytes, value.size()), static_cast<char>('a' + number % 26));
  return value;
}

WriteBatch numbered_batch(std::string_view text, std::uint64_t first, std::uint64_t count, std::size_t value_bytes) {
  WriteBatch batch;
  for (std::uint64_t number = first; number < first + count; ++number)
    batch.put(numbered_key(text, number), numbered_value(number, value_bytes));
  return batch;
}

std::optional<std::string> value_of(const Store& store, std::string_view key, Space space) {
  std::optional<std::string> found;
  const auto got = store.get(space, key, [&](std::string_view value) { found = value; });
  REQUIRE_OK(got);
  CHECK(*got == found.has_value());
  return found;
}

Entries entries_of(const Store& store, const Range& range, Space space) {
  Entries found;
  const auto passed = store.scan(space, range, [&](std::string_view key, std::string_view value) {
    found.emplace_back(key, value);
    return true;
  });
  REQUIRE_OK(passed);
  CHECK(*passed == found.size());
  return found;
}

std::uint64_t stat_of(const Store& store, std::string_view name) {
  std::optional<std::uint64_t> found;
  store.stats([&](std::string_view stat, std::uint64_t value) {
    if (stat == name) found = value;
  });
  INFO("stat " << name);
  REQUIRE(found);
  return *found;
}

Entries tree_of(const std::filesystem::path& dir) {
  Entries files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    const std::string name = entry.path().lexically_relative(dir).native();
    files.emplace_back(name, entry.is_regular_file() ? file_text(entry.path()) : std::string("directory"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

EngineProcess::EngineProcess(std::string_view engine, const std::filesystem::path& dir, Opening how,
                             std::string_view options, std::vector<std::string> before)
    : process_(tool_command(engine, dir, how, options, std::move(before)), {.pipe_input = true, .pipe_output = true}) {
  const auto line = process_.output().read_line();
  INFO(process_.err_text());
  REQUIRE(line == "open");
}

void EngineProcess::tell(std::string_view line) {
  process_.input().send_all(std::string(line) + "\n");
}

std::string EngineProcess::ask(std::string_view line) {
  tell(line);
  return process_.output().read_line().value_or("(ended)");
}

}  // namespace kvingest::test
