// url_template.hpp -- a preset's URL, query and headers with their placeholders filled in.
//
//   {symbol}   {interval}   {page.size}   {page.offset}   any variable of the preset
//   {from:F}   {to:F}   F is s, ms, us, ns (since the epoch), date (2024-01-31), ymd (20240131), year, iso
//
// A closed upper bound is one unit of its form before the end of the window, which itself is never in it.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "http/load/preset.hpp"
#include "http/load/time_text.hpp"

namespace kvingest::fetch {

struct Filling {
  std::string symbol;
  std::map<std::string, std::string> vars;
  Instant from = 0;
  Instant to = 0;
  Bounds bounds = Bounds::half_open;
  std::uint64_t page_size = 0;
  std::uint64_t page_offset = 0;
};

/// `in_url`: what is filled in is percent-encoded, a host name excepted.
[[nodiscard]] Result<std::string> filled(const Preset& preset, std::string_view text, const Filling& filling,
                                         bool in_url);

/// Whether every placeholder is known. Fails with: invalid_argument.
[[nodiscard]] Result<void> check_template(const Preset& preset, std::string_view text);

/// Whether the preset's request says anything about the window.
[[nodiscard]] bool asks_for_window(const Preset& preset);

}  // namespace kvingest::fetch
