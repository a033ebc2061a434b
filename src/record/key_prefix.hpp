// key_prefix.hpp -- the end of the keys that begin alike.
//
// Threads: a function without state.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace kvingest {

/// The first key behind all that begin with `prefix`; nothing where there is none (0xFF only).
[[nodiscard]] inline std::optional<std::string> end_of_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace kvingest
