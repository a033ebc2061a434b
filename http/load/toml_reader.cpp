#include "http/load/toml_reader.hpp"

#include <algorithm>
#include <sstream>

#include "base/nearest.hpp"

namespace kvingest::fetch {

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (!node.is_value()) return std::nullopt;
  std::ostringstream text;  // Dates, and decimals, which nothing here depends on to the last digit.
  if (const auto* date = node.as_date()) {
    text << date->get();
  } else if (const auto* real = node.as_floating_point()) {
    text << real->get();
  } else {
    return std::nullopt;
  }
  return text.str();
}

std::vector<std::string> keys_in_order(const toml::table& table) {
  std::vector<std::pair<toml::source_position, std::string>> keys;
  for (const auto& [key, value] : table) keys.emplace_back(key.source().begin, std::string(key.str()));
  std::ranges::sort(keys, [](const auto& a, const auto& b) {
    return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
  });
  std::vector<std::string> names;
  for (auto& [place, name] : keys) names.push_back(std::move(name));
  return names;
}

Result<toml::table> parse_toml(std::string_view text) {
  try {
    return toml::table(toml::parse(text));
  } catch (const toml::parse_error& problem) {
    return fail(Code::invalid_argument, "line {}: {}", problem.source().begin.line, problem.description());
  }
}

const toml::node* TableReader::node(std::string_view key) {
  known_.emplace(key);
  return table_.get(key);
}

std::optional<std::string> TableReader::take_text(std::string_view key) {
  const toml::node* const found = node(key);
  if (found == nullptr) return std::nullopt;
  auto text = scalar_text(*found);
  if (!text) wrong_kind(key, "a text");
  return text;
}

void TableReader::text(std::string_view key, std::string* to) {
  if (auto given = take_text(key)) *to = *std::move(given);
}

void TableReader::text(std::string_view key, std::optional<std::string>* to) {
  if (auto given = take_text(key)) *to = std::move(given);
}

void TableReader::flag(std::string_view key, bool* to) {
  const toml::node* const found = node(key);
  if (found == nullptr) return;
  const auto* const truth = found->as_boolean();
  if (truth == nullptr) return wrong_kind(key, "true or false");
  *to = truth->get();
}

void TableReader::number(std::string_view key, std::uint64_t* to) {
  const toml::node* const found = node(key);
  if (found == nullptr) return;
  const auto* const number = found->as_integer();
  if (number == nullptr || number->get() < 0) return wrong_kind(key, "a whole number, not negative");
  *to = static_cast<std::uint64_t>(number->get());
}

void TableReader::number(std::string_view key, unsigned* to) {
  std::uint64_t wide = *to;
  number(key, &wide);
  if (wide > 1'000'000'000) return mistake(key, "too large");
  *to = static_cast<unsigned>(wide);
}

void TableReader::real(std::string_view key, double* to) {
  const toml::node* const found = node(key);
  if (found == nullptr) return;
  const auto value = found->value<double>();
  if (!value) return wrong_kind(key, "a number");
  *to = *value;
}

void TableReader::texts(std::string_view key, std::vector<std::string>* to) {
  const toml::node* const found = node(key);
  if (found == nullptr) return;
  to->clear();
  const toml::array* const list = found->as_array();
  if (list == nullptr) {
    auto one = scalar_text(*found);
    if (!one) return wrong_kind(key, "a text or a list of texts");
    to->push_back(*std::move(one));
    return;
  }
  for (const toml::node& each : *list) {
    auto one = scalar_text(each);
    if (!one) return wrong_kind(key, "a text or a list of texts");
    to->push_back(*std::move(one));
  }
}

void TableReader::pairs(std::string_view key, std::vector<std::pair<std::string, std::string>>* to) {
  const toml::table* const found = table(key);
  if (found == nullptr) return;
  to->clear();
  for (const std::string& name : keys_in_order(*found)) {
    auto value = scalar_text(*found->get(name));
    if (!value) return wrong_kind(key, "a table of texts");
    to->emplace_back(name, *std::move(value));
  }
}

const toml::table* TableReader::table(std::string_view key) {
  const toml::node* const found = node(key);
  if (found == nullptr) return nullptr;
  if (!found->is_table()) wrong_kind(key, "a table");
  return found->as_table();
}

const toml::array* TableReader::tables(std::string_view key) {
  const toml::node* const found = node(key);
  if (found == nullptr) return nullptr;
  const toml::array* const list = found->as_array();
  const bool all_tables = list != nullptr && std::ranges::all_of(*list, [](const auto& one) { return one.is_table(); });
  if (!all_tables) wrong_kind(key, "a list of tables");
  return all_tables ? list : nullptr;
}

void TableReader::wrong_kind(std::string_view key, std::string_view wanted) {
  mistake(key, fmt::format("{} is wanted", wanted));
}

void TableReader::mistake(std::string_view key, std::string text) {
  if (mistake_) return;
  const toml::node* const at = table_.get(key);
  const auto line = at != nullptr ? at->source().begin.line : table_.source().begin.line;
  const std::string place = place_.empty() ? std::string(key) : place_ + "." + std::string(key);
  mistake_ = Error{Code::invalid_argument, 0, fmt::format("line {}: {}: {}", line, place, text)};
}

void TableReader::adopt(const Result<void>& inner) {
  if (!inner && !mistake_) mistake_ = inner.error();
}

Result<void> TableReader::finish() {
  for (const std::string& key : keys_in_order(table_)) {
    if (known_.contains(key)) continue;
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    const std::string_view near = nearest_name(key, known);
    mistake(key, near.empty() ? "there is no such key" : fmt::format("there is no such key; is {} meant?", near));
  }
  if (mistake_) return tl::unexpected<Error>(*mistake_);
  return {};
}

}  // namespace kvingest::fetch
