// catch.hpp -- Catch2 under one name: version 2 (Debian 12) and version 3 (Debian 13).
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace kvingest::test {

/// CHECK_THAT(text, contains_text("part")); the two versions name the matcher differently.
inline auto contains_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace kvingest::test
