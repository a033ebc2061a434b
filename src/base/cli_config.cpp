#include <toml++/toml.h>

#include <sstream>

#include "base/cli_arguments.hpp"
#include "base/posix.hpp"

namespace kvingest::cli {
namespace {

constexpr std::size_t kConfigBytesMax = 1 << 20;

/// The text that would stand on the command line, or nothing for a table, date or time.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

/// The values of an array, or the one value of anything else.
std::optional<std::vector<std::string>> texts_of(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    auto text = scalar_text(node);
    if (!text) return std::nullopt;
    return std::vector{*std::move(text)};
  }
  std::vector<std::string> texts;
  for (const toml::node& part : *array) {
    auto text = scalar_text(part);
    if (!text) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  return texts;
}

void insert(toml::table& table, const Option& option) {
  if (option.kind == Option::Kind::list) {
    toml::array array;
    for (const std::string& value : option.get_list()) array.push_back(option.secret ? std::string("***") : value);
    table.insert(option.name, std::move(array));
    return;
  }
  const auto value = option.get();
  if (!value) return;
  if (option.secret)
    table.insert(option.name, "***");
  else if (option.kind == Option::Kind::flag)
    table.insert(option.name, *value == "true");
  else if (const auto number = parse_count(*value, 0, std::numeric_limits<std::int64_t>::max());
           number && option.kind == Option::Kind::number)
    table.insert(option.name, static_cast<std::int64_t>(*number));
  else
    table.insert(option.name, *value);
}

}  // namespace

Result<Values> read_config(const std::string& path) {
  auto bytes = read_file(Posix::real(), path, kConfigBytesMax);
  KV_TRY(bytes);
  try {
    const toml::table table = toml::parse(*bytes, path);
    Values values;
    for (const auto& [key, node] : table) {
      auto texts = texts_of(node);
      if (!texts)
        return fail(Code::invalid_argument, "{}:{}: {} must be a text, a number, true, false or an array of them", path,
                    node.source().begin.line, key.str());
      values[std::string(key.str())] = *std::move(texts);
    }
    return values;
  } catch (const toml::parse_error& error) {
    return fail(Code::invalid_argument, "{}:{}: {}", path, error.source().begin.line, error.description());
  }
}

std::string write_config(std::span<const Command* const> commands) {
  toml::table table;
  std::string unset;
  for (const Command* command : commands) {
    for (const Option& option : command->options()) {
      if (option.builtin || option.positional) continue;
      insert(table, option);
      if (!table.contains(option.name)) unset += "# " + option.name + " is not set\n";
    }
  }
  std::ostringstream out;
  out << toml::toml_formatter(table) << '\n';
  return out.str() + unset;
}

}  // namespace kvingest::cli
