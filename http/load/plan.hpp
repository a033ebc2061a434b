// plan.hpp -- what a job asks for, cut into windows before the first request.
//
// An item is one series: a symbol of a source at an interval. What is done is taken off, what the source does not have
// is said, and the rest is cut so that one answer, or a few pages, hold each window.
//
// Threads: pure functions.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/load/coverage.hpp"
#include "http/load/outcome.hpp"
#include "http/load/preset.hpp"
#include "http/load/target.hpp"

namespace kvingest::fetch {

struct Job {
  std::shared_ptr<const Preset> preset;  ///< Shared by the jobs of one source.
  std::string source;                    ///< As it was named: a preset's name or file.
  std::vector<std::string> symbols;
  Span wanted;
  std::map<std::string, std::string> vars;  ///< Complete: defaults are filled in.
  std::string origin;                       ///< Scheme, host and port in place of the preset's; empty: the preset's.
  bool refresh = false;                     ///< What is done is fetched again.
};

/// Fills in defaults and checks names and values. Fails with: invalid_argument.
Result<void> complete_variables(Job& job);

struct Item {
  const Job* job = nullptr;
  std::string symbol;
  std::string interval;
  std::string series;  ///< Names its note: source, symbol, interval and whatever else makes another series.
  Coverage covered;
  std::vector<Span> windows;
  std::vector<std::string> remarks;  ///< What was cut off, and the like.
  Outcome outcome = Outcome::ok;     ///< Not ok before anything is asked: there is nothing to ask for.
};

struct Plan {
  std::deque<Item> items;  ///< A deque: items are referred to.
  std::size_t windows = 0;
  /// The least time that the rates of the sources allow, for one request a window.
  std::chrono::milliseconds least_time{0};
};

/// `jobs` outlive the plan. Fails with: what reading notes fails with.
[[nodiscard]] Result<Plan> make_plan(const std::vector<Job>& jobs, Target& target, Instant now);

/// What is noted of a series: what is done, and when that was noted.
[[nodiscard]] std::string series_note(const Coverage& covered, Instant now);

/// `span` in windows that one answer, or a few pages, hold.
[[nodiscard]] std::vector<Span> cut_into_windows(const Preset& preset, const std::string& interval, Span span);

/// Up to here a series is settled: what is later may still change, or come.
[[nodiscard]] Instant settled_until(const std::string& interval, Instant now);

}  // namespace kvingest::fetch
