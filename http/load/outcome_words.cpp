#include <array>
#include <utility>

#include "http/load/outcome.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 16> kWords{{
    {Outcome::ok, "ok"},
    {Outcome::empty, "empty"},
    {Outcome::no_such_symbol, "no_such_symbol"},
    {Outcome::out_of_range, "out_of_range"},
    {Outcome::rate_limited, "rate_limited"},
    {Outcome::quota, "quota"},
    {Outcome::banned, "banned"},
    {Outcome::auth, "auth"},
    {Outcome::plan, "plan"},
    {Outcome::bad_request, "bad_request"},
    {Outcome::bad_body, "bad_body"},
    {Outcome::truncated, "truncated"},
    {Outcome::transport, "transport"},
    {Outcome::server, "server"},
    {Outcome::no_progress, "no_progress"},
    {Outcome::cancelled, "cancelled"},
}};

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  return kWords[static_cast<std::size_t>(outcome)].second;
}

std::optional<Outcome> parse_outcome(std::string_view word) noexcept {
  for (const auto& [outcome, name] : kWords) {
    if (name == word) return outcome;
  }
  return std::nullopt;
}

}  // namespace kvingest::fetch
