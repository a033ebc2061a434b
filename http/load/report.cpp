#include "http/load/report.hpp"

#include <map>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::size_t kGapsShown = 100;

/// The oddities that there are, by name.
void each_oddity(const Oddities& odd, FunctionRef<void(std::string_view name, std::uint64_t count)> visit) {
  const std::pair<std::string_view, std::uint64_t> all[] = {
      {"nulls_dropped", odd.nulls_dropped}, {"outside", odd.outside},
      {"duplicates", odd.duplicates},       {"future", odd.future},
      {"out_of_order", odd.out_of_order},   {"bad_ohlc", odd.bad_ohlc},
      {"provisional", odd.provisional}};
  for (const auto& [name, count] : all) {
    if (count > 0) visit(name, count);
  }
}

std::string span_text(Span span) {
  return format_instant(span.from) + " to " + format_instant(span.to);
}

std::string item_name(std::string_view source, std::string_view symbol, std::string_view interval) {
  return fmt::format("{} {}{}{}", source, symbol, interval.empty() ? "" : " ", interval);
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text;
  for (const Item& item : plan.items) {
    text += fmt::format("{}  {} window(s)", item_name(item.job->preset->name, item.symbol, item.interval),
                        item.windows.size());
    if (!item.windows.empty()) text += "  " + span_text({item.windows.front().from, item.windows.back().to});
    for (const std::string& remark : item.remarks) text += "  (" + remark + ")";
    text += '\n';
  }
  text += fmt::format("{} item(s), {} request(s) or more, {} s or more under the limits of their sources\n",
                      plan.items.size(), plan.windows, (plan.least_time.count() + 999) / 1000);
  return text;
}

std::string plan_json(const Plan& plan) {
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const Item& item : plan.items) {
    json.begin_object().field("source", item.job->preset->name).field("symbol", item.symbol);
    json.field("interval", item.interval).key("windows").begin_array();
    for (const Span& window : item.windows) {
      json.begin_object()
          .field("from", format_instant(window.from))
          .field("to", format_instant(window.to))
          .end_object();
    }
    json.end_array().key("remarks").begin_array();
    for (const std::string& remark : item.remarks) json.value(remark);
    json.end_array().end_object();
  }
  json.end_array().field("windows", plan.windows);
  json.field("least_seconds", static_cast<double>(plan.least_time.count()) / 1000).end_object();
  return json.text() + "\n";
}

std::string report_text(const LoadReport& report) {
  std::string text;
  std::uint64_t records = 0;
  std::size_t incomplete = 0;
  for (const ItemReport& item : report.items) {
    records += item.records;
    incomplete += is_complete(item.outcome) ? 0 : 1;
    text += fmt::format("{}  {}  records {}", item_name(item.source, item.symbol, item.interval),
                        to_string(item.outcome), item.records);
    if (item.written.changed > 0) text += fmt::format("  changed {}", item.written.changed);
    if (item.extras > 0) text += fmt::format("  extras {}", item.extras);
    text += fmt::format("  windows {}/{}", item.windows_done, item.windows);
    each_oddity(item.oddities,
                [&](std::string_view name, std::uint64_t count) { text += fmt::format("  {} {}", name, count); });
    if (!item.gaps.empty()) text += fmt::format("  gaps {} from {}", item.gaps.size(), format_day(item.gaps.front()));
    if (item.restated) text += "  restated: its history had changed, and was fetched again";
    if (!item.message.empty()) text += "  \"" + item.message + "\"";
    for (const std::string& remark : item.remarks) text += "  (" + remark + ")";
    text += '\n';
  }
  for (const http::OriginState& origin : report.origins) {
    if (origin.refused == 0 && origin.paused_for.count() == 0) continue;
    text += fmt::format("{} refused {} of {} requests", origin.origin, origin.refused, origin.sent);
    if (origin.paused_for.count() > 0) text += fmt::format("; try again in {}", format_duration(origin.paused_for));
    text += '\n';
  }
  text +=
      fmt::format("items {}  incomplete {}  records {}  requests {}  bytes {}  seconds {:.3f}\n", report.items.size(),
                  incomplete, records, report.requests, report.bytes, static_cast<double>(report.wall.count()) / 1000);
  return text;
}

std::string report_json(const LoadReport& report) {
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const ItemReport& item : report.items) {
    json.begin_object().field("source", item.source).field("symbol", item.symbol).field("interval", item.interval);
    json.field("outcome", to_string(item.outcome)).field("message", item.message).field("records", item.records);
    json.field("inserted", item.written.inserted)
        .field("changed", item.written.changed)
        .field("same", item.written.same);
    json.field("extras", item.extras)
        .field("unchanged", item.unchanged)
        .field("suspicious", item.suspicious)
        .field("windows", item.windows)
        .field("windows_done", item.windows_done);
    json.field("requests", item.requests).field("attempts", item.attempts).field("status", item.status);
    json.key("gaps").begin_array();
    for (std::size_t i = 0; i < std::min(item.gaps.size(), kGapsShown); ++i) json.value(format_day(item.gaps[i]));
    json.end_array().field("gaps_found", item.gaps.size()).key("oddities").begin_object();
    each_oddity(item.oddities, [&](std::string_view name, std::uint64_t count) { json.field(name, count); });
    json.end_object().field("restated", item.restated).key("remarks").begin_array();
    for (const std::string& remark : item.remarks) json.value(remark);
    json.end_array().end_object();
  }
  json.end_array().key("origins").begin_array();
  for (const http::OriginState& origin : report.origins) {
    json.begin_object().field("origin", origin.origin).field("protocol", origin.protocol).field("sent", origin.sent);
    json.field("refused", origin.refused).field("window", origin.window);
    json.field("paused_ms", origin.paused_for.count()).end_object();
  }
  json.end_array().field("complete", report.complete()).field("requests", report.requests).field("bytes", report.bytes);
  json.field("seconds", static_cast<double>(report.wall.count()) / 1000).end_object();
  return json.text() + "\n";
}

std::string failed_jobs(const Plan& plan, const LoadReport& report) {
  // What JSON writes as a text is a basic string of TOML, too.
  std::map<const Job*, std::string> symbols;
  std::vector<const Job*> jobs;  // In the order of the plan.
  for (std::size_t i = 0; i < report.items.size(); ++i) {
    if (is_complete(report.items[i].outcome)) continue;
    const Job* const job = plan.items[i].job;
    std::string& list = symbols[job];
    if (list.empty()) jobs.push_back(job);
    list += list.empty() ? "[" : ", ";
    append_json_string(list, report.items[i].symbol);
  }
  std::string text;
  const auto member = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("{} = ", name);
    append_json_string(text, value);
    text += '\n';
  };
  for (const Job* const job : jobs) {
    text += "[[job]]\n";
    member("source", job->source);
    text += fmt::format("symbols = {}]\nfrom = {}\nto = {}\nvars = {{", symbols[job],
                        format_day(day_of(job->wanted.from)), format_day(day_of(job->wanted.to)));
    for (const auto& [name, value] : job->vars) {
      text += text.ends_with('{') ? " " : ", ";
      append_json_string(text, name);
      text += " = ";
      append_json_string(text, value);
    }
    text += " }\n";
    if (!job->origin.empty()) member("origin", job->origin);
    if (job->refresh) text += "refresh = true\n";
    text += '\n';
  }
  return text;
}

}  // namespace kvingest::fetch
