// kvfetch_load.cpp -- `load` and `run`: jobs into a store or into a running kvingest.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "base/posix.hpp"
#include "base/progress.hpp"
#include "feed/tcp.hpp"
#include "http/load/job_file.hpp"
#include "http/load/load_run.hpp"
#include "http/load/report.hpp"
#include "kvfetch_feed.hpp"
#include "kvfetch_settings.hpp"
#include "kvfetch_stop.hpp"
#include "kvingest/engine.hpp"
#include "record/record_plan.hpp"

namespace kvingest::kvfetch {
namespace {

using fetch::JobText;

constexpr std::size_t kSecretBytesMax = 64 * 1024;
constexpr std::string_view kStoreDefault = "lmdb";
constexpr std::string_view kStateEngine = "file";  // Small, and in every build.

fetch::Instant now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<std::string> secret_at(const std::string& where) {
  if (where.starts_with("env:")) {
    const char* const value = std::getenv(where.c_str() + 4);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  }
  auto text = read_file(Posix::real(), where.substr(where.find(':') + 1), kSecretBytesMax);
  if (!text) return std::nullopt;
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  return text->empty() ? std::nullopt : std::optional<std::string>(*std::move(text));
}

Result<std::vector<std::string>> symbols_of(const std::string& text) {
  if (text.starts_with('@')) return fetch::read_symbols(text.substr(1));
  std::vector<std::string> symbols;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (!one.empty()) symbols.emplace_back(one);
  }
  return symbols;
}

Result<JobText> job_of(const Settings& settings) {
  JobText job;
  if (settings.source.empty()) return fail(Code::invalid_argument, "--source is needed; `kvfetch sources` lists them");
  if (settings.symbols.empty()) return fail(Code::invalid_argument, "--symbols is needed");
  if (settings.from.empty()) return fail(Code::invalid_argument, "--from is needed: a day such as 2024-01-31");
  auto symbols = symbols_of(settings.symbols);
  KV_TRY(symbols);
  job = {.source = settings.source,
         .symbols = *std::move(symbols),
         .from = settings.from,
         .to = settings.to,
         .interval = settings.interval};
  for (const std::string& one : settings.vars) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos) return fail(Code::invalid_argument, "--var '{}': write NAME=VALUE", one);
    job.vars[one.substr(0, equals)] = one.substr(equals + 1);
  }
  return job;
}

Result<std::vector<fetch::Job>> complete(std::vector<JobText> texts, const Settings& settings) {
  std::vector<fetch::Job> jobs;
  for (JobText& text : texts) {
    if (!settings.origin.empty()) text.origin = settings.origin;
    text.refresh = text.refresh || settings.refresh;
    auto job = fetch::make_job(text, now_ns());
    KV_TRY(job);
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

/// What the marker of the store says of the records, for kvq and for another run.
std::map<std::string, std::string, std::less<>> labels_of(const std::vector<fetch::Job>& jobs) {
  std::map<std::string, std::string, std::less<>> labels = {
      {"format", "json"}, {"key", "{source}/{symbol}/{interval}/{date}"}, {"value", std::string(kWholeMessageLabel)}};
  for (const fetch::Job& job : jobs) labels["schema." + job.preset->name] = job.preset->schema();
  return labels;
}

void print_notice(std::string_view text) {
  cli::print({.exit_code = cli::kDone, .out = {}, .err = fmt::format("kvfetch: note: {}\n", text)});
}

/// The target with the store behind it.
struct OpenTarget {
  std::unique_ptr<Store> store;
  std::unique_ptr<fetch::Target> target;
};

Result<OpenTarget> open_target(const Settings& settings, const StoreSpec& spec, const std::vector<fetch::Job>& jobs,
                               const std::optional<feed::Address>& into, std::stop_token stop, int& exit_code) {
  StoreOptions options;
  options.dir = into ? settings.state : settings.dir;
  if (!into) options.labels = labels_of(jobs);
  options.force_labels = settings.force_template;
  options.notice = print_notice;
  OpenTarget open;
  auto store = open_store(spec, options);
  exit_code = cli::kStoreUnavailable;
  KV_TRY(store);
  open.store = *std::move(store);
  exit_code = cli::kIncomplete;
  if (into) {
    auto feed = FeedTarget::connect(*into, *open.store, std::move(stop));
    KV_TRY(feed);
    open.target = *std::move(feed);
  } else {
    open.target = std::make_unique<fetch::StoreTarget>(*open.store);
  }
  return open;
}

/// Without a store yet nothing is noted, and nothing is made for a look.
class NothingNoted final : public fetch::Target {
 public:
  Result<std::optional<std::string>> find(std::string_view) override { return std::optional<std::string>(); }
  [[nodiscard]] bool knows_records() const noexcept override { return false; }
  Result<void> commit(std::span<const fetch::Record* const>, const fetch::Notes&) override { return {}; }
  Result<std::optional<std::string>> note(std::string_view) override { return std::optional<std::string>(); }
};

int show_plan(const Settings& settings, const std::vector<fetch::Job>& jobs) {
  NothingNoted nothing;
  std::unique_ptr<Store> store;
  std::unique_ptr<fetch::StoreTarget> noted;
  const std::string& dir = settings.into ? settings.state : settings.dir;
  if (read_marker(dir)) {
    auto opened = open_store({.dir = dir, .read_only = true, .create = false, .notice = print_notice});
    if (!opened) return complain(opened.error(), cli::kStoreUnavailable);
    store = *std::move(opened);
    noted = std::make_unique<fetch::StoreTarget>(*store);
  }
  const auto plan = fetch::make_plan(jobs, noted ? static_cast<fetch::Target&>(*noted) : nothing, now_ns());
  if (!plan) return complain(plan.error(), cli::kIncomplete);
  return cli::print(
      {.exit_code = cli::kDone, .out = settings.json ? fetch::plan_json(*plan) : fetch::plan_text(*plan), .err = {}});
}

/// An old file must not speak for this run.
Result<void> remove_failed(const Settings& settings) {
  std::error_code error;
  if (!settings.failed_out.empty()) std::filesystem::remove(settings.failed_out, error);
  if (error) return fail(error.value(), "--failed-out {}: remove the old one", settings.failed_out);
  return {};
}

Result<void> write_failed(const Settings& settings, const fetch::Plan& plan, const fetch::LoadReport& report) {
  const std::string jobs = settings.failed_out.empty() ? std::string() : fetch::failed_jobs(plan, report);
  if (jobs.empty()) return {};
  auto file = File::open(Posix::real(), settings.failed_out, O_WRONLY | O_CREAT | O_TRUNC);
  KV_TRY(file);
  return file->write_at(jobs, 0);
}

int fetch_all(const Settings& settings, const std::vector<fetch::Job>& jobs, fetch::Target& target,
              const StopOnSignal& stop) {
  const auto plan = fetch::make_plan(jobs, target, now_ns());
  if (!plan) return complain(plan.error(), cli::kIncomplete);
  fetch::NotedCache cache;
  http::SessionOptions asking = session_options(settings);
  asking.cache = &cache;
  http::Session session(std::move(asking));
  Progress progress(settings.quiet ? nullptr : stderr, "windows", plan->windows);
  fetch::LoadOptions options;
  options.window = static_cast<unsigned>(settings.window);
  options.stop = stop.token();
  options.secrets = secret_at;
  options.cache = &cache;
  // Under a service's own keys a split may replace the bar of its day.
  options.extras = target.knows_records() || settings.extras;
  options.accept_unit = settings.accept_unit;
  options.retry = retry_policy(settings);
  options.progress = [&](std::size_t done, std::size_t) { progress.update(done); };
  const auto report = fetch::run_plan(*plan, target, session, options);
  progress.clear();
  if (!report) return complain(report.error(), stop.stopped() ? cli::kInterrupted : cli::kIncomplete);
  if (const auto written = write_failed(settings, *plan, *report); !written)
    return complain(written.error(), cli::kIncomplete);
  const int exit_code = report->complete() ? cli::kDone : stop.stopped() ? cli::kInterrupted : cli::kIncomplete;
  return cli::print({.exit_code = exit_code,
                     .out = settings.json ? fetch::report_json(*report) : fetch::report_text(*report),
                     .err = {}});
}

int work(const Settings& settings, Result<std::vector<JobText>> texts) {
  if (!texts) return complain(texts.error(), cli::kUsage);
  const auto jobs = complete(*std::move(texts), settings);
  if (!jobs) return complain(jobs.error(), cli::kUsage);
  std::optional<feed::Address> into;
  if (settings.into) {
    constexpr std::string_view kScheme = "tcp://";
    if (settings.store)
      return complain({Code::invalid_argument, 0, "--into and --store exclude each other"}, cli::kUsage);
    const bool is_tcp = settings.into->starts_with(kScheme);
    auto address = feed::Address::parse(is_tcp ? settings.into->substr(kScheme.size()) : std::string());
    if (!address) return complain({Code::invalid_argument, 0, "--into: write tcp://HOST:PORT"}, cli::kUsage);
    into = *std::move(address);
  }
  const std::string engine = into ? std::string(kStateEngine) : settings.store.value_or(std::string(kStoreDefault));
  const auto spec = parse_store_spec(engine);
  if (!spec) return complain(spec.error(), cli::kUsage);
  if (settings.dry_run) return show_plan(settings, *jobs);
  if (const auto removed = remove_failed(settings); !removed) return complain(removed.error(), cli::kIncomplete);
  const StopOnSignal stop;
  int exit_code = cli::kIncomplete;
  auto open = open_target(settings, *spec, *jobs, into, stop.token(), exit_code);
  if (!open) return complain(open.error(), exit_code);
  exit_code = fetch_all(settings, *jobs, *open->target, stop);
  open->target.reset();
  const auto closed = open->store->close();
  return closed ? exit_code : complain(closed.error(), cli::kIncomplete);
}

}  // namespace

int load(const Settings& settings) {
  const auto job = job_of(settings);
  if (!job) return complain(job.error(), cli::kUsage);
  return work(settings, std::vector<JobText>{*job});
}

int run_jobs(const Settings& settings) {
  return work(settings, fetch::read_jobs(settings.jobs));
}

}  // namespace kvingest::kvfetch
