// kvfetch_settings.hpp -- what the commands of kvfetch share: their settings, and how they end.
//
// Threads: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cli.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::kvfetch {

struct Settings {
  // load
  std::string source;
  std::string symbols;
  std::string from;
  std::string to;
  std::string interval;
  std::vector<std::string> vars;
  std::string origin;
  // run
  std::string jobs;
  // load and run
  std::optional<std::string> store;
  std::string dir = "kvdata";
  std::optional<std::string> into;
  std::string state = "kvfetch-state";
  bool refresh = false;
  bool dry_run = false;
  bool force_template = false;
  bool extras = false;
  bool accept_unit = false;
  std::string failed_out;
  std::uint64_t window = 64;
  // get
  std::vector<std::string> urls;
  std::string output_dir = ".";
  std::uint64_t parallel = 8;
  bool no_resume = false;
  // check
  std::string preset;
  // all that ask
  std::string user_agent = "kvfetch";
  std::string ca_file;
  std::optional<std::string> proxy;
  std::uint64_t attempts = 5;
  std::chrono::milliseconds deadline{600'000};
  bool json = false;
  bool quiet = false;
};

/// Says what went wrong and returns `exit_code`.
int complain(const Error& error, int exit_code);

[[nodiscard]] http::SessionOptions session_options(const Settings& settings);
[[nodiscard]] http::RetryPolicy retry_policy(const Settings& settings);

// The commands: each returns the exit code.
int load(const Settings& settings);
int run_jobs(const Settings& settings);
int get(const Settings& settings);
int sources(const Settings& settings);
int check(const Settings& settings);

}  // namespace kvingest::kvfetch
