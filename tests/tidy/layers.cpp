// The layers, lowest first:
//   kvingest (public headers) < base < codec < record < storage | net | http < service < query < programs < tests
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/tidy/rules.hpp"

namespace kvingest::tidy {
namespace {

struct Layer {
  std::string_view name;    ///< The first part of its include paths.
  std::string_view folder;  ///< Where its files are.
  int height;
};

constexpr int kPrograms = 7;
constexpr std::array kLayers{
    Layer{"kvingest", "include/kvingest/", 0},
    Layer{"base", "src/base/", 1},
    Layer{"codec", "src/codec/", 2},
    Layer{"record", "src/record/", 3},
    Layer{"storage", "storage/", 4},
    Layer{"net", "net/", 4},
    Layer{"http", "http/", 4},
    Layer{"service", "src/service/", 5},
    Layer{"query", "src/query/", 6},
    Layer{"bench", "bench/", kPrograms},
    Layer{"tests", "tests/", 8},
};

/// A third-party library that only some folders may know.
struct Home {
  std::string_view header;                  ///< How its includes begin.
  std::array<std::string_view, 3> folders;  ///< How the paths of the files begin that may include it.
};

constexpr std::array kHomes{
    Home{"lmdb.h", {"storage/lmdb/"}},
    Home{"rocksdb/", {"storage/rocksdb/"}},
    Home{"asio", {"net/", "src/service/", "src/kvingest"}},
    Home{"curl/", {"http/"}},
    Home{"CLI/", {"src/base/cli"}},
    Home{"toml++/", {"src/base/cli", "http/"}},
    Home{"spdlog/", {"src/base/log.cpp"}},
};

/// The layer of a file; the folders of src/ that are no layer belong to one program.
Layer layer_of_file(std::string_view path) {
  for (const Layer& layer : kLayers) {
    if (path.starts_with(layer.folder)) return layer;
  }
  return {"programs", "src/", kPrograms};
}

Layer layer_of_include(std::string_view included) {
  for (const Layer& layer : kLayers) {
    if (included.starts_with(layer.name) && included.substr(layer.name.size()).starts_with('/')) return layer;
  }
  return {"programs", "src/", kPrograms};
}

bool is_home(const Home& home, std::string_view path) {
  if (path.starts_with("tests/") || path.starts_with("bench/")) return true;
  return std::ranges::any_of(home.folders,
                             [&](std::string_view folder) { return !folder.empty() && path.starts_with(folder); });
}

std::optional<std::string> judge_own(std::string_view path, std::string_view included) {
  const Layer from = layer_of_file(path);
  const Layer to = layer_of_include(included);
  if (to.height > from.height) return fmt::format("{} must not include {}: it is above", from.name, included);
  if (to.height == from.height && to.name != from.name && to.height < kPrograms) {
    return fmt::format("{} and {} never include one another: they meet in the public headers", from.name, to.name);
  }
  return std::nullopt;
}

std::optional<std::string> judge_foreign(std::string_view path, std::string_view included) {
  for (const Home& home : kHomes) {
    if (included.starts_with(home.header) && !is_home(home, path)) {
      return fmt::format("<{}> belongs to {}", included, home.folders[0]);
    }
  }
  return std::nullopt;
}

/// What an `#include` line names with its first quote: `"base/log.hpp`, `<lmdb.h`. Empty for other lines.
std::string_view include_of(std::string_view line) {
  constexpr std::string_view kInclude = "#include ";
  if (!line.starts_with(kInclude)) return {};
  line.remove_prefix(kInclude.size());
  const std::size_t end = line.find_first_of("\">", 1);
  return end == std::string_view::npos ? std::string_view{} : line.substr(0, end);
}

}  // namespace

Findings wrong_includes(const SourceFile& file) {
  Findings findings;
  int number = 0;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view included = include_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (included.size() < 2) continue;
    const std::string_view name = included.substr(1);
    const auto wrong = included.front() == '"' ? judge_own(file.path, name) : judge_foreign(file.path, name);
    if (wrong) findings.push_back({file.path, number, *wrong});
  }
  return findings;
}

}  // namespace kvingest::tidy
