// store_spec.cpp -- "NAME[,key=value...]" as a choice of engine.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kvingest/engine.hpp"

namespace kvingest {
namespace {

// Levenshtein's: insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& letter : text) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return text;
}

// "did you mean X? " when one of `known` is near enough to be meant, else nothing.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string wanted = lower(word);
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string_view name : known) {
    const std::size_t distance = edit_distance(wanted, name);
    if (distance >= best || distance >= name.size()) continue;
    best = distance;
    nearest = name;
  }
  return nearest.empty() ? std::string() : fmt::format("did you mean {}? ", nearest);
}

Result<const Engine*> named_engine(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Engine* engine : engines()) {
    if (engine->name == name) return engine;
    known.push_back(engine->name);
  }
  return fail(Code::invalid_argument, "no such store '{}'; {}known: {}", name, suggestion(name, known),
              fmt::join(known, ", "));
}

Result<void> add_option(StoreSpec& spec, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::vector<std::string_view> known;
  for (const EngineOption& option : spec.engine->options) known.push_back(option.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    if (known.empty()) {
      return fail(Code::invalid_argument, "store {} has no option '{}', nor any other", spec.engine->name, name);
    }
    return fail(Code::invalid_argument, "store {} has no option '{}'; {}known: {}", spec.engine->name, name,
                suggestion(name, known), fmt::join(known, ", "));
  }
  if (equals == std::string_view::npos) {
    return fail(Code::invalid_argument, "option {} of store {} needs a value: {}=VALUE", name, spec.engine->name, name);
  }
  if (!spec.options.emplace(name, text.substr(equals + 1)).second) {
    return fail(Code::invalid_argument, "option {} of store {} is given twice", name, spec.engine->name);
  }
  return {};
}

}  // namespace

Result<StoreSpec> parse_store_spec(std::string_view text) {
  const std::size_t comma = text.find(',');
  auto engine = named_engine(text.substr(0, comma));
  KV_TRY(engine);
  if (!(*engine)->missing.empty()) {
    return fail(Code::unsupported, "store '{}' is not in this build: {}", (*engine)->name, (*engine)->missing);
  }
  StoreSpec spec{.engine = *engine, .options = {}};
  for (std::size_t at = comma; at != std::string_view::npos;) {
    const std::size_t end = text.find(',', at + 1);
    KV_TRY(add_option(spec, text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1)));
    at = end;
  }
  return spec;
}

}  // namespace kvingest
