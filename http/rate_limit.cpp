#include "http/rate_limit.hpp"

#include <algorithm>

#include "base/quantity.hpp"

namespace kvingest::http {

Result<Rate> parse_rate(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return fail(Code::invalid_argument, "rate '{}': write units and a span, as in 5/1m", text);
  }
  const auto units = parse_count(text.substr(0, slash), 1);
  if (!units) return fail(units.error(), "rate '{}'", text);
  std::string span(text.substr(slash + 1));
  if (span.ends_with('m'))
    span += "in";  // Elsewhere a bare m might be taken for metres or months; in a rate it cannot.
  const auto per = parse_duration(span);
  if (!per) return fail(per.error(), "rate '{}'", text);
  if (per->count() == 0) return fail(Code::invalid_argument, "rate '{}': the span is empty", text);
  return Rate{*units, *per};
}

void RateWindow::forget(Clock::time_point now) {
  while (!taken_.empty() && taken_.front().at + rate_.per <= now) {
    used_ -= taken_.front().cost;
    taken_.pop_front();
  }
}

Clock::time_point RateWindow::when(Clock::time_point now, std::uint64_t cost) {
  forget(now);
  std::uint64_t left = used_;
  Clock::time_point at = now;
  for (const Taken& one : taken_) {
    if (left + cost <= rate_.units) break;
    left -= one.cost;
    at = one.at + rate_.per;
  }
  return at;
}

void RateWindow::take(Clock::time_point now, std::uint64_t cost) {
  taken_.push_back({now, cost});
  used_ += cost;
}

std::chrono::system_clock::time_point when_allowed(Quota& quota, std::uint64_t cost,
                                                   std::chrono::system_clock::time_point now) {
  const bool over = now - quota.since >= quota.rate.per || now < quota.since;
  if (over) {
    quota.since = now;
    quota.used = 0;
  }
  if (quota.used == 0 || quota.used + cost <= quota.rate.units) return now;
  return quota.since + quota.rate.per;
}

void take(Quota& quota, std::uint64_t cost, std::chrono::system_clock::time_point now) {
  if (quota.used == 0) quota.since = now;
  quota.used += cost;
}

}  // namespace kvingest::http
