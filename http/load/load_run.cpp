#include "http/load/load_run.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "http/load/gaps.hpp"
#include "http/load/json_tree.hpp"
#include "http/load/judge.hpp"
#include "http/load/quota_notes.hpp"
#include "http/load/url_template.hpp"
#include "http/url.hpp"

namespace kvingest::fetch {
namespace {

constexpr unsigned kBodyTries = 3;  // A body that is cut or wrong may be whole the next time.
constexpr std::size_t kCommitBytes = std::size_t{4} << 20;
constexpr std::size_t kWindowBytesMax = std::size_t{96} << 20;  // Fits into one batch.

Instant now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A window on its way: its pages, one after the other.
struct WindowRun {
  std::size_t item = 0;
  Span span;
  std::uint64_t page = 0;  ///< From 0.
  std::uint64_t offset = 0;
  Instant from = 0;  ///< Of the next page, where pages follow time.
  std::string cursor;
  std::string next_url;
  unsigned tries = 0;   ///< Of this page, whose body could not be used.
  unsigned asked = 0;   ///< Of the whole window, before, when it had too few rows.
  std::string kept;     ///< The first page, as the cache is to have it.
  bool reload = false;  ///< Fetched again because history was rewritten: that it changed is known.
  std::vector<Record> records;
  std::vector<Record> extras;
  std::set<std::string> seen;  ///< Keys, where there is more than one page.
  std::size_t bytes = 0;
  Oddities oddities;
};

/// An answer of the client in our words.
Outcome outcome_of(http::Kind kind) {
  using Kind = http::Kind;
  switch (kind) {
    case Kind::none:
      return Outcome::ok;
    case Kind::cancelled:
      return Outcome::cancelled;
    case Kind::usage:
      return Outcome::bad_request;
    case Kind::truncated:
      return Outcome::truncated;
    case Kind::too_large:
    case Kind::bomb:
    case Kind::bad_encoding:
      return Outcome::bad_body;
    case Kind::rate_limited:
      return Outcome::rate_limited;
    case Kind::quota:
      return Outcome::quota;
    case Kind::banned:
      return Outcome::banned;
    default:
      return Outcome::transport;
  }
}

/// Outcomes that say nothing of other windows of the item.
bool ends_item(Outcome outcome) {
  return outcome == Outcome::no_such_symbol || outcome == Outcome::auth || outcome == Outcome::plan;
}

double member_number(JsonTree& tree, std::string_view json, const std::string& name) {
  if (tree.parse(json) != JsonTree::Parsed::whole) return std::nan("");
  const JsonNode* const node = tree.member(*tree.root(), name);
  return node == nullptr || node->kind != JsonNode::Kind::number ? std::nan("") : approximate(node->text);
}

class Loader {
 public:
  Loader(const Plan& plan, Target& target, http::Session& session, const LoadOptions& options)
      : plan_(plan), target_(target), session_(session), options_(options) {}

  Result<LoadReport> run() {
    const auto start = std::chrono::steady_clock::now();
    KV_TRY(prepare());
    auto results =
        session_.stream_of([this] { return next_request(); }, {.window = options_.window, .stop = options_.stop});
    do {
      while (auto response = results.next()) {
        take(*std::move(response));
        if (!results.ready() || waiting_bytes_ >= kCommitBytes) KV_TRY(commit());
      }
      KV_TRY(commit());  // Which may find that more is to be fetched.
    } while (!tasks_.empty() && !options_.stop.stop_requested());
    KV_TRY(target_.commit({}, origin_notes(session_.origins(), origins_)));  // Also of what was refused.
    for (std::size_t i = 0; i < report_.items.size(); ++i) conclude(i);
    report_.origins = session_.origins();
    report_.wall = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    return std::move(report_);
  }

 private:
  Result<void> prepare() {
    for (const Item& item : plan_.items) {
      ItemReport& report = report_.items.emplace_back();
      report.source = item.job->preset->name;
      report.symbol = item.symbol;
      report.interval = item.interval;
      report.outcome = item.outcome;
      report.windows = item.windows.size();
      report.remarks = item.remarks;
      covered_.push_back(item.covered);
      KV_TRY(recall_unit(item));
      if (options_.cache == nullptr || item.windows.empty()) continue;
      const auto kept = target_.note("cache/" + item.series);
      KV_TRY(kept);
      if (*kept) options_.cache->offer(**kept);
    }
    // Round by round over the items: each gets its first window before one gets its second.
    for (std::size_t round = 0, added = 1; added > 0; ++round) {
      added = 0;
      for (std::size_t i = 0; i < plan_.items.size(); ++i) {
        const auto& windows = plan_.items[i].windows;
        if (round >= windows.size()) continue;
        WindowRun window;
        window.item = i;
        window.span = windows[round];
        window.from = window.span.from;
        tasks_.push_back(std::move(window));
        ++added;
      }
    }
    return set_limits();
  }

  /// What the prices of the series are in, as far as that was noted.
  Result<void> recall_unit(const Item& item) {
    std::string& unit = units_.emplace_back();
    if (item.job->preset->check.unit.empty()) return {};
    const auto note = target_.note("unit/" + item.series);
    KV_TRY(note);
    unit = note->value_or(std::string());
    return {};
  }

  /// The limits of each source, at the origin that is really asked.
  Result<void> set_limits() {
    for (const Item& item : plan_.items) {
      const auto url = url_of(item, WindowRun{});
      if (!url) return fail(url.error(), "{}", item.job->preset->name);
      const auto origin = http::origin_of(*url);
      if (!origin) return fail(origin.error(), "{}", item.job->preset->name);
      if (!origins_.insert(*origin).second) continue;
      http::OriginLimits limits = item.job->preset->limits.limits;
      const auto note = target_.note("quota/" + *origin);
      KV_TRY(note);
      if (*note) KV_TRY(restore_quotas(**note, limits.quotas));
      KV_TRY(session_.limit(*origin, std::move(limits)));
      const auto pause = target_.note("pause/" + *origin);
      KV_TRY(pause);
      if (*pause) KV_TRY(session_.pause(*origin, pause_left(**pause)));
    }
    return {};
  }

  [[nodiscard]] Filling filling_of(const Item& item, const WindowRun& window) const {
    const Preset& preset = *item.job->preset;
    Filling filling;
    filling.symbol = item.symbol;
    filling.vars = item.job->vars;
    filling.from = window.from;
    filling.to = window.span.to;
    filling.bounds = preset.request.bounds;
    filling.page_size = preset.page.size;
    filling.page_offset = window.offset;
    return filling;
  }

  [[nodiscard]] Result<std::string> url_of(const Item& item, const WindowRun& window) const {
    auto url = filled(*item.job->preset, item.job->preset->request.url, filling_of(item, window), true);
    KV_TRY(url);
    return item.job->origin.empty() ? url : http::moved_to(*url, item.job->origin);
  }

  std::optional<http::Request> next_request() {
    while (!tasks_.empty()) {
      WindowRun window = std::move(tasks_.front());
      tasks_.pop_front();
      if (dead_.contains(window.item)) continue;  // Its symbol is unknown, and the like.
      auto request = request_of(window);
      if (!request) {
        fail_window(window, Outcome::bad_request, request.error().text);
        continue;
      }
      request->tag = std::to_string(++last_id_);
      under_way_.emplace(last_id_, std::move(window));
      return *std::move(request);
    }
    return std::nullopt;
  }

  Result<http::Request> request_of(const WindowRun& window) {
    const Item& item = plan_.items[window.item];
    const Preset& preset = *item.job->preset;
    const Filling filling = filling_of(item, window);
    http::Request request;
    auto url = window.next_url.empty() ? url_of(item, window) : Result<std::string>(window.next_url);
    KV_TRY(url);
    request.url = *std::move(url);
    if (window.next_url.empty()) {
      for (const auto& [name, value] : preset.request.query) {
        auto text = filled(preset, value, filling, false);
        KV_TRY(text);
        request.params.emplace_back(name, *std::move(text));
      }
      if (!window.cursor.empty()) request.params.emplace_back(preset.page.param, window.cursor);
      if (preset.page.kind == PageForm::Kind::offset) {
        request.params.emplace_back(preset.page.param, std::to_string(window.offset));
      }
    }
    for (const auto& [name, value] : preset.request.headers) {
      auto text = filled(preset, value, filling, false);
      KV_TRY(text);
      request.headers.push_back({name, *std::move(text)});
    }
    KV_TRY(authorize(preset, request));
    request.cost = preset.limits.cost;
    request.cache =
        options_.cache != nullptr && window.page == 0 && window.tries == 0 && window.asked == 0 && !item.job->refresh;
    request.timeout = options_.timeout;
    request.retry = options_.retry;
    request.verdict = [form = item.job->preset](const http::Response& response) {
      return verdict_of(judge(*form, response.status, response.headers, response.body));
    };
    return request;
  }

  Result<void> authorize(const Preset& preset, http::Request& request) const {
    if (preset.auth.kind == http::Auth::Kind::none) return {};
    const auto secret = options_.secrets ? options_.secrets(preset.auth.secret) : std::nullopt;
    if (!secret && preset.auth.optional) return {};
    if (!secret) return fail(Code::invalid_argument, "no key: {} is not there", preset.auth.secret);
    request.auth = {preset.auth.kind, preset.auth.name, preset.auth.prefix, http::Secret(*secret)};
    return {};
  }

  void take(http::Response response) {
    std::uint64_t id = 0;
    std::from_chars(response.tag.data(), response.tag.data() + response.tag.size(), id);
    auto node = under_way_.extract(id);
    WindowRun window = std::move(node.mapped());
    ItemReport& report = report_.items[window.item];
    ++report.requests;
    ++report_.requests;
    report.attempts += response.attempts;
    report_.bytes += response.body.size();
    if (response.status != 0) report.status = response.status;
    if (response.ok()) return take_body(std::move(window), response);
    Outcome outcome = outcome_of(response.error.kind);
    std::string message = response.error.text;
    const bool answered = response.status != 0 && outcome == Outcome::transport;
    if (answered || response.error.kind == http::Kind::rejected) {
      const Judgement judgement = judge(*preset_of(window), response.status, response.headers, response.body);
      if (!is_complete(judgement.outcome)) outcome = judgement.outcome;
    }
    if (response.error.kind == http::Kind::http_5xx) outcome = Outcome::server;
    fail_window(window, outcome, std::move(message));
  }

  [[nodiscard]] const Preset* preset_of(const WindowRun& window) const {
    return plan_.items[window.item].job->preset.get();
  }

  void take_body(WindowRun window, const http::Response& response) {
    const Item& item = plan_.items[window.item];
    const Preset& preset = *item.job->preset;
    const Judgement judgement = judge(preset, response.status, response.headers, response.body);
    if (judgement.outcome == Outcome::empty) return complete(std::move(window));
    // Kept only when it could be decoded.
    const auto kept = options_.cache == nullptr ? std::nullopt : options_.cache->take(response.cache_key);
    DecodeContext context;
    context.source = preset.name;
    context.symbol = item.symbol;
    context.interval = item.interval;
    context.from = window.span.from;
    context.to = window.span.to;
    context.now = now_ns();
    context.whole = response.proven_whole;
    Decoded decoded = decode(preset, response.body, context);
    if (!is_complete(decoded.outcome)) {
      if (++window.tries < kBodyTries && !options_.stop.stop_requested()) {
        tasks_.push_front(std::move(window));
        return;
      }
      return fail_window(window, decoded.outcome, session_.redact(decoded.problem));
    }
    if (const std::string problem = unit_problem(window.item, decoded); !problem.empty())
      return fail_window(window, Outcome::bad_body, problem);
    if (kept && window.span.to > settled_until(item.interval, context.now)) window.kept = *kept;
    if (response.from_cache) ++report_.items[window.item].unchanged;
    take_page(std::move(window), std::move(decoded), response);
  }

  /// Prices in pence behind prices in pounds are no prices. Empty: the unit is what it was, or may change.
  std::string unit_problem(std::size_t item, const Decoded& decoded) {
    std::string& known = units_[item];
    const std::string& before = known.empty() ? decoded.unit : known;
    const std::string& now = decoded.other_unit.empty() ? decoded.unit : decoded.other_unit;
    if (now.empty() || now == before || options_.accept_unit) {
      if (!now.empty()) known = now;
      return {};
    }
    return fmt::format("{} was {} and is {}: see what became of the prices, then say --accept-unit",
                       plan_.items[item].job->preset->check.unit, before, now);
  }

  void take_page(WindowRun window, Decoded decoded, const http::Response& response) {
    const PageForm& form = preset_of(window)->page;
    window.tries = 0;
    window.oddities += decoded.oddities;
    const bool first_page = window.page++ == 0;
    const bool more = has_more(window, form, decoded, response);
    std::size_t fresh = 0;
    for (Record& record : decoded.records) {
      window.bytes += record.key.size() + record.json.size();
      if ((more || !first_page) && !window.seen.insert(record.key).second) {
        ++window.oddities.duplicates;
        continue;
      }
      ++fresh;
      window.records.push_back(std::move(record));
    }
    for (auto& [name, records] : decoded.extras) {
      for (Record& record : records) window.extras.push_back(std::move(record));
    }
    if (!more) return complete(std::move(window));
    if (fresh == 0) return fail_window(window, Outcome::no_progress, "a page brought nothing new");
    if (window.page >= form.pages_max || window.bytes > kWindowBytesMax) {
      return fail_window(window, Outcome::no_progress, fmt::format("{} pages, and there are more", window.page));
    }
    tasks_.push_front(std::move(window));
  }

  /// Whether another page is to be asked for; prepares `window` for it.
  bool has_more(WindowRun& window, const PageForm& form, const Decoded& decoded, const http::Response& response) {
    using Kind = PageForm::Kind;
    const bool full = form.stop == PageForm::Stop::empty ? decoded.rows > 0 : decoded.rows >= form.size;
    switch (form.kind) {
      case Kind::none:
        return false;
      case Kind::time:
        // The next page begins behind the last row, at the next of the smallest unit that sources count in.
        window.from = (decoded.last_time / 1'000'000 + 1) * 1'000'000;
        return full && decoded.last_time + interval_ns(plan_.items[window.item].interval).value_or(0) < window.span.to;
      case Kind::offset:
        window.offset += decoded.rows;
        return full;
      case Kind::cursor:
        window.cursor = decoded.next;
        return !decoded.next.empty();
      case Kind::url: {
        if (decoded.next.empty()) return false;
        auto url = http::resolved(response.url, decoded.next);
        const Item& item = plan_.items[window.item];
        if (url && !item.job->origin.empty()) url = http::moved_to(*url, item.job->origin);
        const auto home = url_of(item, window);
        // A key goes with the request, so the next page has to be at home.
        if (!url || !home || http::origin_of(*url).value_or("") != http::origin_of(*home).value_or("?")) return false;
        window.next_url = *std::move(url);
        return true;
      }
    }
    return false;
  }

  void fail_window(const WindowRun& window, Outcome outcome, std::string message) {
    ItemReport& report = report_.items[window.item];
    if (is_complete(report.outcome) || outcome == Outcome::no_such_symbol) {
      report.outcome = outcome;
      report.message = std::move(message);
    }
    if (ends_item(outcome)) dead_.insert(window.item);
    step();
  }

  /// A window with fewer rows than there should be may have more the next time.
  void complete(WindowRun window) {
    if (window.records.size() < preset_of(window)->check.rows_min && !options_.stop.stop_requested()) {
      if (window.asked + 1 < kBodyTries) {
        WindowRun again;
        again.item = window.item;
        again.span = window.span;
        again.from = window.span.from;
        again.reload = window.reload;
        again.asked = window.asked + 1;
        tasks_.push_back(std::move(again));
        return;
      }
      ++report_.items[window.item].suspicious;
    }
    waiting_bytes_ += window.bytes + 1;
    waiting_.push_back(std::move(window));
  }

  void step() {
    ++steps_;
    if (options_.progress) options_.progress(steps_, plan_.windows);
  }

  // ---- Commits
  // --------------------------------------------------------------------------------------------------------

  Result<void> commit() {
    if (waiting_.empty()) return {};
    std::vector<const Record*> records;
    Notes notes;
    for (WindowRun& window : waiting_) {
      KV_TRY(add_window(window, records));
      const std::string& series = plan_.items[window.item].series;
      notes.emplace_back("series/" + series, series_note(covered_[window.item], now_ns()));
      if (!units_[window.item].empty()) notes.emplace_back("unit/" + series, units_[window.item]);
      if (!window.kept.empty()) notes.emplace_back("cache/" + series, std::move(window.kept));
    }
    for (auto& note : origin_notes(session_.origins(), origins_)) notes.push_back(std::move(note));
    KV_TRY(target_.commit(records, notes));
    for (const WindowRun& window : waiting_) {
      ++report_.items[window.item].windows_done;
      step();
    }
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  Result<void> add_window(WindowRun& window, std::vector<const Record*>& records) {
    const Item& item = plan_.items[window.item];
    ItemReport& report = report_.items[window.item];
    report.oddities += window.oddities;
    std::vector<double> ratios;
    for (const Record& record : window.records) {
      KV_TRY(add_record(record, report.written, records, &ratios, item.job->preset->check.restated));
    }
    report.records += window.records.size();
    if (!item.job->preset->check.sparse && interval_ns(item.interval) == kNsPerDay) {
      const std::string calendar = report.source + " " + report.interval;
      for (const Record& record : window.records) gaps_.add(window.item, calendar, record.day);
    }
    if (options_.extras) {
      Written uncounted;
      for (const Record& record : window.extras) {
        KV_TRY(add_record(record, uncounted, records, nullptr, {}));
      }
    }
    report.extras += window.extras.size();
    const Instant settled = settled_until(item.interval, now_ns());
    Instant until = std::min(window.span.to, settled);
    for (const Record& record : window.records) {
      if (record.provisional) until = std::min(until, record.time);
    }
    if (!window.reload && is_one_ratio(ratios)) reload_history(window);
    covered_[window.item].add({window.span.from, until});
    return {};
  }

  /// History was rewritten, as by a split: all that was done before is fetched again, in this run or the next.
  void reload_history(const WindowRun& found) {
    const Item& item = plan_.items[found.item];
    ItemReport& report = report_.items[found.item];
    if (std::exchange(report.restated, true)) return;
    for (const Span& done : covered_[found.item].spans()) {
      Coverage fresh;
      fresh.add(found.span);
      for (const Span& hole : fresh.holes(done)) {
        for (const Span& span : cut_into_windows(*item.job->preset, item.interval, hole)) {
          WindowRun window;
          window.item = found.item;
          window.span = span;
          window.from = span.from;
          window.reload = true;
          tasks_.push_back(std::move(window));
          ++report.windows;
        }
      }
    }
    covered_[found.item].clear();
  }

  /// Writes what is new or another than before.
  Result<void> add_record(const Record& record, Written& written, std::vector<const Record*>& records,
                          std::vector<double>* ratios, const std::string& restated) {
    const auto before = target_.find(record.key);
    KV_TRY(before);
    if (*before && **before == record.json) {
      ++written.same;
      return {};
    }
    ++(*before ? written.changed : written.inserted);
    if (*before && ratios != nullptr && !restated.empty()) {
      ratios->push_back(member_number(tree_, record.json, restated) / member_number(tree_, **before, restated));
    }
    records.push_back(&record);
    return {};
  }

  /// A split or a dividend changes all stored values by one ratio; a correction changes one of them.
  static bool is_one_ratio(const std::vector<double>& ratios) {
    constexpr std::size_t kEnough = 3;
    constexpr double kRounding = 1e-4;
    if (ratios.size() < kEnough || !(std::abs(ratios[0] - 1) > kRounding)) return false;
    return std::ranges::all_of(ratios, [&](double ratio) { return std::abs(ratio / ratios[0] - 1) < kRounding; });
  }

  /// What the item comes to, when all is done that will be.
  void conclude(std::size_t i) {
    ItemReport& report = report_.items[i];
    if (is_complete(report.outcome) && report.windows_done < report.windows) {
      report.outcome = Outcome::cancelled;
      report.message = "stopped before it was done";
    }
    if (report.outcome == Outcome::ok && report.windows > 0 && report.records == 0) report.outcome = Outcome::empty;
    report.gaps = gaps_.gaps(i);
    if (report.suspicious > 0) {
      report.remarks.push_back(fmt::format("suspicious: {} window(s) with fewer than {} rows, each asked for {} times",
                                           report.suspicious, plan_.items[i].job->preset->check.rows_min, kBodyTries));
    }
    if (!options_.extras && report.extras > 0)
      report.remarks.push_back(fmt::format("{} splits and the like were not sent; see --extras", report.extras));
  }

  const Plan& plan_;
  Target& target_;
  http::Session& session_;
  const LoadOptions& options_;
  LoadReport report_;
  std::vector<Coverage> covered_;   // By item.
  std::vector<std::string> units_;  // By item; empty: not known.
  std::deque<WindowRun> tasks_;
  std::map<std::uint64_t, WindowRun> under_way_;
  std::uint64_t last_id_ = 0;
  std::set<std::size_t> dead_;  // Items of which no more is asked.
  std::set<std::string> origins_;
  std::vector<WindowRun> waiting_;  // Whole, and not yet written.
  std::size_t waiting_bytes_ = 0;
  std::size_t steps_ = 0;
  JsonTree tree_;
  GapFinder gaps_;
};

}  // namespace

bool LoadReport::complete() const noexcept {
  return std::ranges::all_of(items, [](const ItemReport& item) { return is_complete(item.outcome); });
}

Result<LoadReport> run_plan(const Plan& plan, Target& target, http::Session& session, const LoadOptions& options) {
  return Loader(plan, target, session, options).run();
}

}  // namespace kvingest::fetch
