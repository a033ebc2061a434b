// outcome.hpp -- what became of an item: one set of words for verdicts, reports and exit codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvingest::fetch {

enum class Outcome : std::uint8_t {
  ok,
  empty,  ///< Nothing there, said so that it can be trusted: no failure.
  no_such_symbol,
  out_of_range,  ///< The source does not have that span.
  rate_limited,  ///< Refused for now.
  quota,         ///< A day's or month's budget is used up.
  banned,
  auth,  ///< The key is missing or wrong.
  plan,  ///< The key does not pay for this.
  bad_request,
  bad_body,     ///< The answer is not what the source gives: a page, another header, rows that make no sense.
  truncated,    ///< The answer ends too early.
  transport,    ///< The network.
  server,       ///< The source is broken for now.
  no_progress,  ///< A page that brought nothing new.
  cancelled,
};

[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view word) noexcept;

/// The item is done: nothing is left to fetch.
[[nodiscard]] constexpr bool is_complete(Outcome outcome) noexcept {
  return outcome == Outcome::ok || outcome == Outcome::empty;
}

}  // namespace kvingest::fetch
