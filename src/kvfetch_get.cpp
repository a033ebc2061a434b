// kvfetch_get.cpp -- `get`: downloads of many URLs at once, each resumed where it broke, with a bar for each and one
// for all.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "kvfetch_settings.hpp"
#include "kvfetch_stop.hpp"

namespace kvingest::kvfetch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDrawEvery{200};
constexpr milliseconds kLineEvery{3'000};
constexpr std::size_t kBarsMax = 10;

/// The last part of an URL's path.
std::string name_of(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  const std::size_t slash = url.rfind('/');
  std::string name;
  if (slash != url.npos && (scheme == url.npos || slash > scheme + 2)) name = url.substr(slash + 1);
  return name.empty() || name == "." || name == ".." ? "index.html" : name;
}

struct Transfer {
  std::string url;
  std::filesystem::path file;
  std::uint64_t bytes = 0;  // Guarded by Downloads::mutex_, as what follows.
  std::uint64_t total = 0;
  bool running = false;
  bool done = false;
  http::Download result;
};

class Downloads {
 public:
  Downloads(const Settings& settings, std::stop_token stop)
      : settings_(settings), stop_(std::move(stop)), session_(session_options(settings)) {}

  /// Fails with: invalid_argument (two URLs of one name), io_error.
  Result<void> prepare() {
    std::error_code error;
    std::filesystem::create_directories(settings_.output_dir, error);
    if (error) return fail(error.value(), "create {}", settings_.output_dir);
    std::set<std::string> names;
    for (const std::string& url : settings_.urls) {
      const std::string name = name_of(url);
      if (!names.insert(name).second) {
        return fail(Code::invalid_argument, "two of the URLs would be the file {}: download them one after the other",
                    name);
      }
      Transfer& transfer = transfers_.emplace_back();
      transfer.url = url;
      transfer.file = std::filesystem::path(settings_.output_dir) / name;
    }
    return {};
  }

  int run() {
    std::vector<std::thread> workers;
    const std::size_t count = std::min<std::size_t>(settings_.parallel, transfers_.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { download_next(); });
    watch();
    for (std::thread& worker : workers) worker.join();
    return finish();
  }

 private:
  void download_next() {
    for (std::size_t i = next_++; i < transfers_.size(); i = next_++) {
      Transfer& transfer = transfers_[i];
      set(transfer, [](Transfer& one) { one.running = true; });
      http::Request request;
      request.stop = stop_;
      request.retry = retry_policy(settings_);
      http::DownloadOptions options;
      options.resume = !settings_.no_resume;
      options.progress = [&](std::uint64_t bytes, std::uint64_t total) {
        const std::lock_guard lock(mutex_);
        transfer.bytes = bytes;
        transfer.total = total;
      };
      auto result = session_.download(transfer.url, transfer.file, std::move(options), std::move(request));
      set(transfer, [&](Transfer& one) {
        one.result = std::move(result);
        one.running = false;
        one.done = true;
      });
    }
  }

  template <class Change>
  void set(Transfer& transfer, Change change) {
    const std::lock_guard lock(mutex_);
    change(transfer);
    if (transfer.done) ++finished_;
    changed_.notify_all();
  }

  void watch() {
    const bool terminal = ::isatty(STDERR_FILENO) == 1;
    std::unique_lock lock(mutex_);
    while (finished_ < transfers_.size()) {
      changed_.wait_for(lock, terminal ? kDrawEvery : kLineEvery);
      if (!settings_.quiet) draw(terminal);
    }
    erase_drawn(terminal);
  }

  void erase_drawn(bool terminal) {
    if (terminal && drawn_ > 0) std::fprintf(stderr, "\x1b[%zuA\x1b[J", drawn_);
    drawn_ = 0;
  }

  void draw(bool terminal) {
    std::string text;
    std::uint64_t bytes = 0;
    std::size_t shown = 0;
    for (const Transfer& one : transfers_) {
      bytes += one.done ? one.result.bytes : one.bytes;
      if (!terminal || !one.running || shown == kBarsMax) continue;
      ++shown;
      text += bar(one) + "\n";
    }
    text += fmt::format("{} of {} done, {} bytes\n", finished_, transfers_.size(), format_grouped(bytes));
    erase_drawn(terminal);
    std::fputs(text.c_str(), stderr);
    drawn_ = shown + 1;
  }

  static std::string bar(const Transfer& one) {
    constexpr std::size_t kWidth = 30;
    const std::string name = one.file.filename().native().substr(0, 30);
    if (one.total == 0) return fmt::format("{:<30} {} bytes", name, format_grouped(one.bytes));
    const std::size_t full = static_cast<std::size_t>(one.bytes * kWidth / std::max(one.total, one.bytes));
    return fmt::format("{:<30} [{:<30}] {:>3}%", name, std::string(full, '#'),
                       one.bytes * 100 / std::max(one.total, one.bytes));
  }

  int finish() const {
    bool complete = true;
    std::string text;
    JsonWriter json;
    json.begin_object().key("items").begin_array();
    for (const Transfer& one : transfers_) {
      const http::Response& response = one.result.response;
      complete = complete && one.result.ok();
      const std::string_view outcome = response.ok() ? "ok" : http::to_string(response.error.kind);
      json.begin_object().field("url", response.url).field("file", one.file.native()).field("outcome", outcome);
      json.field("bytes", one.result.bytes).field("resumed_from", one.result.resumed_from);
      json.field("attempts", response.attempts).field("message", response.error.text).end_object();
      text += fmt::format("{}  {}  {} bytes{}{}\n", one.file.native(), outcome, one.result.bytes,
                          one.result.resumed_from > 0 ? fmt::format(", {} from before", one.result.resumed_from) : "",
                          response.ok() ? "" : "  " + response.error.text);
    }
    json.end_array().field("complete", complete).end_object();
    const int exit_code = complete ? cli::kDone : stop_.stop_requested() ? cli::kInterrupted : cli::kIncomplete;
    return cli::print({.exit_code = exit_code, .out = settings_.json ? json.text() + "\n" : text, .err = {}});
  }

  const Settings& settings_;
  std::stop_token stop_;
  http::Session session_;
  std::deque<Transfer> transfers_;  // A deque: workers hold references.
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t finished_ = 0;  // Guarded by mutex_.
  std::size_t drawn_ = 0;     // Lines on the terminal.
};

}  // namespace

int get(const Settings& settings) {
  const StopOnSignal stop;
  Downloads downloads(settings, stop.token());
  if (const auto prepared = downloads.prepare(); !prepared) {
    return complain(prepared.error(), prepared.error().code == Code::invalid_argument ? cli::kUsage : cli::kIncomplete);
  }
  return downloads.run();
}

}  // namespace kvingest::kvfetch
