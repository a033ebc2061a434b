// quota_notes.hpp -- what of an origin outlives a process: budgets of days, and pauses that it asked for.
//
// Threads: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "http/load/target.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::fetch {

/// Notes `quota/ORIGIN` and `pause/ORIGIN` for each of `wanted` that has something to note.
[[nodiscard]] Notes origin_notes(const std::vector<http::OriginState>& states, const std::set<std::string>& wanted);

/// Puts what `note` says was used into `quotas` of the same rate. Fails with: corrupt.
Result<void> restore_quotas(std::string_view note, std::vector<http::Quota>& quotas);

/// How long the pause of a note still lasts.
[[nodiscard]] http::Milliseconds pause_left(std::string_view note);

}  // namespace kvingest::fetch
