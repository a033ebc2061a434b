// load_run.hpp -- runs a plan: requests, verdicts, decoding, pages, commits, and a report of every item.
//
// A window is done when the verdict on its whole body is in and its records are durable; its note is written in the
// same step. So a run that is stopped, killed or refused goes on with the windows that are left.
//
// Threads: one, beside the session's, on which the verdicts run.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "http/load/noted_cache.hpp"
#include "http/load/plan.hpp"
#include "http/load/target.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::fetch {

/// The secret that a preset names, "env:NAME" or "file:PATH"; nothing where there is none.
using SecretSource = std::function<std::optional<std::string>(const std::string& where)>;

struct LoadOptions {
  unsigned window = 64;  ///< Requests under way at once, over all sources.
  std::stop_token stop;
  SecretSource secrets;
  NotedCache* cache = nullptr;  ///< The session's, too. Null: none.
  bool extras = true;           ///< Keep the further records of a body, such as splits.
  bool accept_unit = false;     ///< A series may go on in another unit than before.
  http::Timeouts timeout;
  http::RetryPolicy retry;
  std::function<void(std::size_t done, std::size_t windows)> progress;
};

struct ItemReport {
  std::string source;
  std::string symbol;
  std::string interval;
  Outcome outcome = Outcome::ok;
  std::string message;
  std::size_t windows = 0;
  std::size_t windows_done = 0;
  std::uint64_t requests = 0;
  std::uint64_t attempts = 0;  ///< More than requests: some were tried again.
  int status = 0;              ///< Of the last answer.
  std::uint64_t records = 0;   ///< Fetched in this run, each counted once.
  std::uint64_t extras = 0;
  std::size_t suspicious = 0;   ///< Windows that had too few rows however often they were asked for.
  std::uint64_t unchanged = 0;  ///< Answers that the source said are as they were.
  std::vector<Day> gaps;        ///< Days that most other series of the source have.
  Written written;
  Oddities oddities;
  bool restated = false;
  std::vector<std::string> remarks;
};

struct LoadReport {
  std::vector<ItemReport> items;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::chrono::milliseconds wall{0};
  std::vector<http::OriginState> origins;
  [[nodiscard]] bool complete() const noexcept;
};

/// Fails with: what the target's commit fails with; then what the report of an item says has not all become durable.
[[nodiscard]] Result<LoadReport> run_plan(const Plan& plan, Target& target, http::Session& session,
                                          const LoadOptions& options);

}  // namespace kvingest::fetch
