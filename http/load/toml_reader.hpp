// toml_reader.hpp -- reads tables of a TOML file strictly: what nobody asked for is an error that names it.
//
//   TableReader window(table, "window");
//   window.size("size", &form.size);
//   return window.finish();
//
// Threads:  one.
// Errors:   the first mistake is kept and given by finish().
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::fetch {

class TableReader {
 public:
  TableReader(const toml::table& table, std::string place) : table_(table), place_(std::move(place)) {}

  void text(std::string_view key, std::string* to);
  void text(std::string_view key, std::optional<std::string>* to);
  void flag(std::string_view key, bool* to);
  void number(std::string_view key, std::uint64_t* to);
  void number(std::string_view key, unsigned* to);
  void real(std::string_view key, double* to);
  /// One text or a list of them; whole numbers are taken as their text.
  void texts(std::string_view key, std::vector<std::string>* to);
  /// A table of texts (whole numbers, truths and dates as their text), in the order of the file.
  void pairs(std::string_view key, std::vector<std::pair<std::string, std::string>>* to);
  /// One of `words`, whose index goes to `use`.
  template <class Enum>
  void word(std::string_view key, Enum* to, std::initializer_list<std::pair<std::string_view, Enum>> words) {
    const auto given = take_text(key);
    if (!given) return;
    std::string known;
    for (const auto& [name, value] : words) {
      if (*given == name) {
        *to = value;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    mistake(key, fmt::format("'{}' is none of {}", *given, known));
  }
  /// What `parse` makes of a text.
  template <class T, class Parse>
  void parsed(std::string_view key, T* to, Parse parse) {
    const auto given = take_text(key);
    if (!given) return;
    auto value = parse(*given);
    if (value) {
      *to = *std::move(value);
    } else {
      mistake(key, value.error().text);
    }
  }

  /// A table in this one; nullptr where there is none.
  [[nodiscard]] const toml::table* table(std::string_view key);
  [[nodiscard]] const toml::array* tables(std::string_view key);
  [[nodiscard]] const toml::node* node(std::string_view key);
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }

  void mistake(std::string_view key, std::string text);
  /// Takes over the mistake of a table in this one.
  void adopt(const Result<void>& inner);
  /// The first mistake, or an unknown key. Fails with: invalid_argument.
  [[nodiscard]] Result<void> finish();

 private:
  std::optional<std::string> take_text(std::string_view key);
  void wrong_kind(std::string_view key, std::string_view wanted);

  const toml::table& table_;
  std::string place_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> mistake_;
};

/// A scalar as text; nothing where it is none.
[[nodiscard]] std::optional<std::string> scalar_text(const toml::node& node);
/// The keys of a table in the order of the file.
[[nodiscard]] std::vector<std::string> keys_in_order(const toml::table& table);

/// Fails with: invalid_argument, with line and column.
[[nodiscard]] Result<toml::table> parse_toml(std::string_view text);

}  // namespace kvingest::fetch
