#include "http/load/preset.hpp"

#include <algorithm>

#include "base/nearest.hpp"
#include "base/posix.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::size_t kPresetBytesMax = std::size_t{1} << 20;

std::string_view kind_name(Field::As as) {
  switch (as) {
    case Field::As::text:
      return "text";
    case Field::As::decimal:
      return "decimal";
    case Field::As::integer:
      return "int";
    case Field::As::boolean:
      return "bool";
    case Field::As::time:
      return "time";
    case Field::As::date:
      return "date";
  }
  return "text";
}

}  // namespace

const Variable* Preset::variable(std::string_view wanted) const noexcept {
  const auto found = std::ranges::find(vars, wanted, &Variable::name);
  return found == vars.end() ? nullptr : &*found;
}

const std::vector<std::string>& Preset::key_columns(std::string_view interval) const {
  const auto found = key.columns.find(std::string(interval));
  return found == key.columns.end() ? key.columns.at("*") : found->second;
}

std::string Preset::schema() const {
  std::string text = record + "(";
  for (const Field& field : fields) {
    if (!field.store) continue;
    if (!text.ends_with('(')) text += ',';
    text += field.name + ":";
    text += kind_name(field.as);
  }
  return text + ")";
}

Result<Preset> find_preset(const std::string& name) {
  if (name.ends_with(".toml")) {
    const auto text = read_file(Posix::real(), name, kPresetBytesMax);
    KV_TRY(text);
    auto preset = parse_preset(*text, std::filesystem::path(name).parent_path());
    if (!preset) return fail(preset.error(), "{}", name);
    return preset;
  }
  std::vector<std::string_view> names;
  for (const BuiltinPreset& one : builtin_presets()) {
    if (one.name == name) return parse_preset(one.toml, {});
    names.push_back(one.name);
  }
  const std::string_view near = nearest_name(name, names);
  return fail(Code::invalid_argument,
              "there is no source '{}'{}; `kvfetch sources` lists them, and a file's name ends in "
              ".toml",
              name, near.empty() ? "" : fmt::format(", is {} meant?", near));
}

}  // namespace kvingest::fetch
