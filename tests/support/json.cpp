#include "tests/support/json.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <functional>
#include <stdexcept>

namespace kvingest::test {

Json Json::parse(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element top;
  if (const auto error = parser.parse(simdjson::padded_string(text)).get(top); error != simdjson::SUCCESS)
    throw std::runtime_error(fmt::format("{}: {}", simdjson::error_message(error), text.substr(0, 500)));
  const std::function<Json(simdjson::dom::element)> copy = [&copy](simdjson::dom::element from) {
    Json to;
    if (from.is_object()) {
      const simdjson::dom::object members = from.get_object().value();
      for (const auto& [name, value] : members) to.members_.emplace(name, copy(value));
    } else if (from.is_array()) {
      const simdjson::dom::array items = from.get_array().value();
      for (const simdjson::dom::element value : items) to.items_.push_back(copy(value));
    } else {
      to.text_ = from.is_string() ? std::string(from.get_string().value()) : simdjson::minify(from);
    }
    return to;
  };
  return copy(top);
}

const Json& Json::operator[](std::string_view name) const {
  const auto found = members_.find(std::string(name));
  if (found == members_.end()) throw std::runtime_error(fmt::format("no member \"{}\"", name));
  return found->second;
}

std::uint64_t Json::number() const {
  std::uint64_t parsed = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), parsed);
  if (error != std::errc() || end != text_.data() + text_.size())
    throw std::runtime_error(fmt::format("not a whole number: \"{}\"", text_));
  return parsed;
}

}  // namespace kvingest::test
