// store_spec.cpp -- "NAME[,key=value...]" as a choice of engine.
#include <algorithm>
#include <vector>

#include "base/nearest.hpp"
#include "kvingest/engine.hpp"

namespace kvingest {
namespace {

// "did you mean X? " when one of `known` is near enough to be meant, else nothing.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  std::string wanted(word);
  for (char& letter : wanted) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  const std::string_view nearest = nearest_name(wanted, known);
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
  if ((*engine)->check != nullptr) KV_TRY((*engine)->check(spec.options));
  return spec;
}

}  // namespace kvingest
