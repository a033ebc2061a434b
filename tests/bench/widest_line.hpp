// widest_line.hpp -- whether what kvbench prints fits a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace kvingest::test {

/// Of a text of several lines, in bytes.
[[nodiscard]] inline std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  return widest;
}

}  // namespace kvingest::test
