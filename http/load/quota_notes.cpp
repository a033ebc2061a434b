#include "http/load/quota_notes.hpp"

#include <charconv>
#include <chrono>

namespace kvingest::fetch {
namespace {

// Shorter pauses are over before another run begins.
constexpr http::Milliseconds kPauseWorthNoting{10'000};

std::int64_t wall_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<http::Milliseconds>(now).count();
}

std::int64_t ms_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<http::Milliseconds>(time.time_since_epoch()).count();
}

/// Takes a number and the blank or end behind it.
bool take(std::string_view& text, std::int64_t& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

}  // namespace

Notes origin_notes(const std::vector<http::OriginState>& states, const std::set<std::string>& wanted) {
  Notes notes;
  for (const http::OriginState& state : states) {
    if (!wanted.contains(state.origin)) continue;
    std::string quotas;
    for (const http::Quota& quota : state.quotas) {
      quotas += fmt::format("{} {} {} {} ", quota.rate.units, quota.rate.per.count(), quota.used, ms_of(quota.since));
    }
    if (!quotas.empty()) notes.emplace_back("quota/" + state.origin, std::move(quotas));
    if (state.paused_for > kPauseWorthNoting) {
      notes.emplace_back("pause/" + state.origin, std::to_string(wall_ms() + state.paused_for.count()));
    }
  }
  return notes;
}

Result<void> restore_quotas(std::string_view note, std::vector<http::Quota>& quotas) {
  while (!note.empty()) {
    std::int64_t units = 0;
    std::int64_t per = 0;
    std::int64_t used = 0;
    std::int64_t since = 0;
    if (!take(note, units) || !take(note, per) || !take(note, used) || !take(note, since)) {
      return fail(Code::corrupt, "the note of a quota cannot be read");
    }
    for (http::Quota& quota : quotas) {
      if (static_cast<std::int64_t>(quota.rate.units) != units || quota.rate.per.count() != per) continue;
      quota.used = static_cast<std::uint64_t>(used);
      quota.since = std::chrono::system_clock::time_point(http::Milliseconds(since));
    }
  }
  return {};
}

http::Milliseconds pause_left(std::string_view note) {
  std::int64_t until = 0;
  if (!take(note, until)) return http::Milliseconds(0);
  return http::Milliseconds(std::max<std::int64_t>(0, until - wall_ms()));
}

}  // namespace kvingest::fetch
