// job_file.hpp -- what `kvfetch run JOBS.toml` reads: a list of what is to be loaded.
//
//   [[job]]
//   source   = "yahoo-chart"
//   symbols  = ["AAPL", "MSFT"]        # or symbols_file = "symbols.txt", one a line
//   from     = 2020-01-01
//   to       = 2024-01-01              # without it: up to now
//   interval = "1d"
//   vars     = { host = "query2.finance.yahoo.com" }
//   origin   = "http://127.0.0.1:8080"
//
// Threads: pure functions, but for the files they read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "http/load/plan.hpp"
#include "kvingest/result.hpp"

namespace kvingest::fetch {

/// A job as it is written down.
struct JobText {
  std::string source;
  std::vector<std::string> symbols;
  std::string from;
  std::string to;  ///< Empty: up to now.
  std::string interval;
  std::map<std::string, std::string> vars;
  std::string origin;
  bool refresh = false;
};

/// Fails with: io_error, invalid_argument (with the line).
[[nodiscard]] Result<std::vector<JobText>> read_jobs(const std::filesystem::path& path);

/// The symbols of a file, one a line; blank lines and lines that begin with # are none. Fails with: io_error.
[[nodiscard]] Result<std::vector<std::string>> read_symbols(const std::filesystem::path& path);

/// Checks a job and completes it. Fails with: invalid_argument, what find_preset() fails with.
[[nodiscard]] Result<Job> make_job(const JobText& text, Instant now);

}  // namespace kvingest::fetch
