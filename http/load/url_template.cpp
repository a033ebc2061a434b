#include "http/load/url_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "http/url.hpp"

namespace kvingest::fetch {
namespace {

std::int64_t unit_of(std::string_view form) {
  if (form == "ns") return 1;
  if (form == "us") return 1'000;
  if (form == "ms") return 1'000'000;
  if (form == "s" || form == "iso") return kNsPerSecond;
  if (form == "date" || form == "ymd" || form == "year") return kNsPerDay;
  return 0;
}

std::string time_in_form(Instant time, std::string_view form) {
  const Day day = day_of(time);
  if (form == "date") return format_day(day);
  if (form == "year") return format_day(day).substr(0, 4);
  if (form == "iso") return format_instant(time / kNsPerSecond * kNsPerSecond);
  if (form == "ymd") {
    std::string text = format_day(day);
    std::erase(text, '-');
    return text;
  }
  return std::to_string(time / unit_of(form));
}

struct Substitute {
  std::string text;
  bool as_it_is = false;  // The preset's own words may hold a slash that is one.
};

Substitute spelled(const Preset& preset, const std::string& name, const std::string& value) {
  const Variable* const variable = preset.variable(name);
  const auto found =
      variable == nullptr ? std::map<std::string, std::string>::const_iterator() : variable->spelled.find(value);
  if (variable == nullptr || found == variable->spelled.end()) return {value, name == "host"};
  return {found->second, true};
}

/// What stands for `name`; nothing where there is no such placeholder.
std::optional<Substitute> value_of(const Preset& preset, std::string_view name, const Filling& filling) {
  if (name == "symbol") return Substitute{filling.symbol};
  if (name == "page.size") return Substitute{std::to_string(filling.page_size)};
  if (name == "page.offset") return Substitute{std::to_string(filling.page_offset)};
  const std::size_t colon = name.find(':');
  const std::string_view form = colon == name.npos ? std::string_view() : name.substr(colon + 1);
  const std::string_view what = name.substr(0, colon);
  if ((what == "from" || what == "to") && unit_of(form) != 0) {
    const bool last = what == "to" && filling.bounds == Bounds::closed;
    return Substitute{time_in_form((what == "from" ? filling.from : filling.to) - (last ? unit_of(form) : 0), form)};
  }
  const auto found = filling.vars.find(std::string(name));
  if (found == filling.vars.end()) return std::nullopt;
  return spelled(preset, found->first, found->second);
}

}  // namespace

Result<std::string> filled(const Preset& preset, std::string_view text, const Filling& filling, bool in_url) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == text.npos) break;
    const std::size_t close = text.find('}', open);
    if (close == text.npos) return fail(Code::invalid_argument, "'{}': a brace is never closed", text);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const auto value = value_of(preset, name, filling);
    if (!value) return fail(Code::invalid_argument, "there is no placeholder {{{}}}", name);
    out += in_url && !value->as_it_is ? http::percent_encoded(value->text) : value->text;
    text.remove_prefix(close + 1);
  }
  return out;
}

Result<void> check_template(const Preset& preset, std::string_view text) {
  Filling filling;
  filling.vars["interval"] = "";
  for (const Variable& variable : preset.vars) filling.vars[variable.name] = "";
  KV_TRY(filled(preset, text, filling, true));
  return {};
}

bool asks_for_window(const Preset& preset) {
  const auto asks = [](std::string_view text) {
    return text.find("{from:") != text.npos || text.find("{to:") != text.npos;
  };
  return asks(preset.request.url) ||
         std::ranges::any_of(preset.request.query, [&](const auto& one) { return asks(one.second); });
}

}  // namespace kvingest::fetch
