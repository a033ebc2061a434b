#include "http/load/plan.hpp"

#include <algorithm>
#include <charconv>

namespace kvingest::fetch {
namespace {

constexpr std::int64_t kOverlapBuckets = 5;  // Enough to tell a split from a correction.
// A run that goes on where another was stopped fetches nothing twice; one of another day looks for changed history.
constexpr std::int64_t kOverlapAfter = 12 * 3600 * kNsPerSecond;

std::int64_t value_for(const std::map<std::string, std::int64_t>& by_interval, const std::string& interval) {
  auto found = by_interval.find(interval);
  if (found == by_interval.end()) found = by_interval.find("*");
  return found == by_interval.end() ? 0 : found->second;
}

std::string series_of(const Job& job, const std::string& symbol, const std::string& interval) {
  std::string name = key_part(job.preset->name) + "/" + key_part(symbol) + "/" + key_part(interval);
  for (const auto& [variable, value] : job.vars) {
    if (variable != "host" && variable != "interval") name += "/" + key_part(variable + "=" + value);
  }
  return name;
}

/// Takes off what the source says it does not have.
void cut_to_what_exists(Item& item, Span& wanted, Instant now) {
  const WindowForm& form = item.job->preset->window;
  const std::int64_t length = interval_ns(item.interval).value_or(0);
  std::int64_t reach = value_for(form.lookback_ns, item.interval);
  if (form.last_n_only != 0 && length != 0) {
    const auto kept = static_cast<std::int64_t>(form.last_n_only) * length;
    reach = reach == 0 ? kept : std::min(reach, kept);
  }
  if (reach == 0 || wanted.from >= now - reach) return;
  const Instant earliest = (day_of(now - reach) + 1) * kNsPerDay;
  item.remarks.push_back(fmt::format("the source has nothing before {}", format_day(day_of(earliest))));
  wanted.from = std::min(earliest, wanted.to);
  if (wanted.is_empty()) item.outcome = Outcome::out_of_range;
}

Instant next_year(Instant instant) {
  const int year = std::stoi(format_day(day_of(instant)).substr(0, 4)) + 1;
  return *parse_day(fmt::format("{:04}-01-01", year)) * kNsPerDay;
}

Instant noted_at(std::string_view note) {
  Instant at = 0;
  const std::size_t mark = note.find('@');
  if (mark != note.npos) std::from_chars(note.data() + mark + 1, note.data() + note.size(), at);
  return at;
}

Result<void> plan_item(Item& item, Target& target, Instant now) {
  const Job& job = *item.job;
  const Preset& preset = *job.preset;
  const auto note = target.note("series/" + item.series);
  KV_TRY(note);
  const bool compares = !preset.check.restated.empty() && *note && now - noted_at(**note) > kOverlapAfter;
  if (*note) {
    auto covered = Coverage::decode(std::string_view(**note).substr(0, (*note)->find('@')));
    if (!covered) return fail(covered.error(), "series {}", item.series);
    item.covered = *std::move(covered);
  }
  Span wanted = job.wanted;
  cut_to_what_exists(item, wanted, now);
  if (wanted.is_empty()) return {};
  std::vector<Span> holes = job.refresh ? std::vector<Span>{wanted} : item.covered.holes(wanted);
  if (holes.empty()) return {};
  if (preset.request.bounds == Bounds::none) {
    item.windows.push_back(wanted);  // The source sends what it likes.
    return {};
  }
  const std::int64_t length = interval_ns(item.interval).value_or(kNsPerDay);
  for (Span hole : holes) {
    const bool goes_on = hole.from > wanted.from;  // Behind something done, a little of which is compared.
    if (goes_on && compares) {
      hole.from = std::max(wanted.from, hole.from - kOverlapBuckets * length);
    }
    for (const Span& window : cut_into_windows(preset, item.interval, hole)) item.windows.push_back(window);
  }
  return {};
}

/// At the rates of `preset`, so many requests take this long at least.
std::chrono::milliseconds time_for(const Preset& preset, std::size_t requests) {
  std::chrono::milliseconds longest = preset.limits.limits.spacing * static_cast<std::int64_t>(requests);
  const std::uint64_t units = requests * preset.limits.cost;
  for (const http::Rate& rate : preset.limits.limits.rates) {
    const std::uint64_t full = units == 0 ? 0 : (units - 1) / rate.units;  // The first span's worth goes at once.
    longest = std::max(longest, rate.per * static_cast<std::int64_t>(full));
  }
  return longest;
}

}  // namespace

std::string series_note(const Coverage& covered, Instant now) {
  return covered.encode() + "@" + std::to_string(now);
}

std::vector<Span> cut_into_windows(const Preset& preset, const std::string& interval, Span span) {
  std::int64_t longest = value_for(preset.window.span_ns, interval);
  const std::int64_t length = interval_ns(interval).value_or(0);
  std::uint64_t buckets = preset.window.buckets_max;
  if (preset.page.kind == PageForm::Kind::time && buckets == 0) buckets = preset.page.size;
  if (buckets != 0 && length != 0) {
    const auto fits = static_cast<std::int64_t>(buckets) * length;
    longest = longest == 0 ? fits : std::min(longest, fits);
  }
  if (longest == 0 || preset.request.bounds == Bounds::none) longest = span.to - span.from;
  std::vector<Span> windows;
  for (Instant at = span.from; at < span.to;) {
    const Instant end = preset.window.by_year ? next_year(at) : at + longest;
    windows.push_back({at, std::min(span.to, end)});
    at = end;
  }
  return windows;
}

Result<void> complete_variables(Job& job) {
  const Preset& preset = *job.preset;
  for (const auto& [name, value] : job.vars) {
    const Variable* const variable = preset.variable(name);
    if (variable == nullptr) return fail(Code::invalid_argument, "{} has no variable '{}'", preset.name, name);
    const auto& allowed = variable->allowed;
    if (!allowed.empty() && std::ranges::find(allowed, value) == allowed.end()) {
      return fail(Code::invalid_argument, "{}: {} = '{}' is none of {}", preset.name, name, value,
                  fmt::join(allowed, ", "));
    }
  }
  for (const Variable& variable : preset.vars) {
    if (job.vars.contains(variable.name)) continue;
    if (!variable.fallback) return fail(Code::invalid_argument, "{}: {} must be given", preset.name, variable.name);
    job.vars[variable.name] = *variable.fallback;
  }
  return {};
}

Instant settled_until(const std::string& interval, Instant now) {
  const std::int64_t length = interval_ns(interval).value_or(kNsPerDay);
  // A day's margin where bars are days or longer: sessions end at other hours than UTC's days.
  return length < kNsPerDay ? now - length : day_of(now) * kNsPerDay - length;
}

Result<Plan> make_plan(const std::vector<Job>& jobs, Target& target, Instant now) {
  Plan plan;
  std::map<std::string, std::pair<const Preset*, std::size_t>> by_source;
  for (const Job& job : jobs) {
    const auto interval = job.vars.find("interval");
    for (const std::string& symbol : job.symbols) {
      Item& item = plan.items.emplace_back();
      item.job = &job;
      item.symbol = symbol;
      if (interval != job.vars.end()) item.interval = interval->second;
      item.series = series_of(job, symbol, item.interval);
      KV_TRY(plan_item(item, target, now));
      plan.windows += item.windows.size();
      auto& source = by_source[job.preset->name];
      source.first = job.preset.get();
      source.second += item.windows.size();
    }
  }
  for (const auto& [name, source] : by_source) {
    plan.least_time = std::max(plan.least_time, time_for(*source.first, source.second));
  }
  return plan;
}

}  // namespace kvingest::fetch
