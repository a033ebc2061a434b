// nearest.hpp -- "did you mean": the known name that is most like a mistyped one.
//
// Threads: pure function.
#pragma once

#include <span>
#include <string_view>

namespace kvingest {

/// The name among `known` with the fewest edits (insert, drop, replace, swap neighbours) from `given`; empty when
/// every one differs too much to be what was meant. The view is one of `known`.
[[nodiscard]] std::string_view nearest_name(std::string_view given, std::span<const std::string_view> known);

}  // namespace kvingest
