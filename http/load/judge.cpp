#include "http/load/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "http/load/json_tree.hpp"
#include "http/load/time_text.hpp"
#include "http/retry.hpp"
#include "record/utf8.hpp"

namespace kvingest::fetch {
namespace {

constexpr std::size_t kQuotedBytes = 120;

std::string_view without_edges(std::string_view text) {
  text = without_bom(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool starts_like(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  for (std::size_t i = 0; i < lower_prefix.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] | 0x20) : text[i];
    if (c != lower_prefix[i]) return false;
  }
  return true;
}

/// The answer being judged; its JSON is parsed once, and only when a rule asks for it.
class Answer {
 public:
  Answer(int status, const http::Headers& headers, std::string_view body)
      : status_(status), headers_(headers), body_(body), trimmed_(without_edges(body)) {}

  [[nodiscard]] std::string_view trimmed() const { return trimmed_; }
  [[nodiscard]] std::string_view type() const { return http::find_header(headers_, "content-type"); }
  [[nodiscard]] int status() const { return status_; }

  const JsonNode* at(std::string_view pointer) {
    if (!parsed_) {
      parsed_ = true;
      json_ =
          (trimmed_.starts_with('{') || trimmed_.starts_with('[')) && tree_.parse(trimmed_) == JsonTree::Parsed::whole;
    }
    return json_ ? tree_.find(*tree_.root(), pointer) : nullptr;
  }
  bool is_json() {
    static_cast<void>(at(""));
    return json_;
  }

  bool matches(const Condition& when) {
    const auto has_status = [&](int wanted) { return wanted == status_ || wanted == status_ / 100; };
    if (!when.statuses.empty() && std::ranges::none_of(when.statuses, has_status)) return false;
    if (!when.type.empty() && !starts_like(type(), when.type)) return false;
    if (!when.header.empty() && http::find_header(headers_, when.header).empty()) return false;
    if (when.starts && !trimmed_.starts_with(*when.starts)) return false;
    if (when.body_is && trimmed_ != *when.body_is) return false;
    if (when.body_has && body_.find(*when.body_has) == body_.npos) return false;
    return matches_json(when);
  }

 private:
  bool matches_json(const Condition& when) {
    if (when.at) {
      const JsonNode* const node = at(*when.at);
      if (node == nullptr || (when.equals && node->text != *when.equals)) return false;
      if (when.has && node->text.find(*when.has) == std::string_view::npos) return false;
      if (node->kind == JsonNode::Kind::null && !when.equals) return false;
    }
    if (!when.missing) return true;
    if (!is_json()) return false;
    const JsonNode* const node = at(*when.missing);
    return node == nullptr || node->kind == JsonNode::Kind::null ||
           (!node->is_scalar() && tree_.first(*node) == nullptr);
  }

  int status_;
  const http::Headers& headers_;
  std::string_view body_;
  std::string_view trimmed_;
  JsonTree tree_;
  bool parsed_ = false;
  bool json_ = false;
};

http::Milliseconds until_midnight(const std::string& zone) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Instant instant = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const Day today = *day_in_zone(instant, zone);
  const Instant midnight = *instant_of(LocalTime{(today + 1) * kNsPerDay, std::nullopt}, zone);
  return http::Milliseconds((midnight - instant) / 1'000'000 + 1'000);
}

/// Whether the same request may be answered differently a little later.
bool may_change(Outcome outcome) {
  switch (outcome) {
    case Outcome::rate_limited:
    case Outcome::server:
    case Outcome::bad_body:
    case Outcome::truncated:
      return true;
    default:
      return false;
  }
}

Judgement by_rule(const Rule& rule, Answer& answer) {
  Judgement judgement;
  judgement.outcome = rule.is;
  judgement.scope = rule.scope;
  judgement.wait = rule.wait;
  judgement.wait_from_header = rule.wait_from_header;
  if (!rule.wait_next_day.empty()) judgement.wait = until_midnight(rule.wait_next_day);
  judgement.retry = rule.retry.value_or(may_change(rule.is));
  const JsonNode* const words = rule.message.empty() ? nullptr : answer.at(rule.message);
  judgement.message = words != nullptr && words->is_scalar() ? std::string(words->text)
                                                             : std::string(answer.trimmed().substr(0, kQuotedBytes));
  return judgement;
}

Judgement plain(Outcome outcome, std::string message) {
  Judgement judgement;
  judgement.outcome = outcome;
  judgement.message = std::move(message);
  judgement.retry = may_change(outcome);
  return judgement;
}

Judgement by_status(Answer& answer) {
  const int status = answer.status();
  std::string text = fmt::format("status {}: {}", status, answer.trimmed().substr(0, kQuotedBytes));
  Judgement judgement = plain(Outcome::bad_request, std::move(text));
  if (status == 429 || status == 418) {
    judgement.outcome = status == 418 ? Outcome::banned : Outcome::rate_limited;
    judgement.scope = Scope::origin;
    judgement.wait_from_header = true;
  } else if (status == 401 || status == 403) {
    judgement.outcome = Outcome::auth;
  } else if (status >= 500) {
    judgement.outcome = Outcome::server;
  }
  judgement.retry = judgement.outcome == Outcome::rate_limited || http::is_status_worth_a_retry(status);
  return judgement;
}

Judgement by_expectation(const Preset& preset, Answer& answer) {
  const ExpectForm& expect = preset.expect;
  const auto quoted = [&](std::string_view what) {
    return plain(Outcome::bad_body, fmt::format("{} ({}): {}", what, answer.type().empty() ? "no type" : answer.type(),
                                                answer.trimmed().substr(0, kQuotedBytes)));
  };
  const bool html = starts_like(answer.trimmed(), "<!doctype html") || starts_like(answer.trimmed(), "<html") ||
                    starts_like(answer.type(), "text/html");
  if (html && !expect.html) return quoted("a page, not data");
  if (answer.trimmed().empty()) return quoted("an empty answer");
  if (!expect.types.empty() && !answer.type().empty() &&
      std::ranges::none_of(expect.types, [&](const std::string& type) { return starts_like(answer.type(), type); })) {
    return quoted("data of another type");
  }
  if (expect.first_lines.empty()) return {};
  std::string_view line = answer.trimmed().substr(0, answer.trimmed().find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool known =
      std::ranges::any_of(expect.first_lines, [&](const std::string& one) { return line.starts_with(one); });
  return known ? Judgement{} : quoted("another first line than expected");
}

}  // namespace

Judgement judge(const Preset& preset, int status, const http::Headers& headers, std::string_view body) {
  Answer answer(status, headers, body);
  for (const Rule& rule : preset.rules) {
    if (!answer.matches(rule.when)) continue;
    // A rule may say that what looks like an error is data.
    return rule.is == Outcome::ok ? by_expectation(preset, answer) : by_rule(rule, answer);
  }
  return status >= 200 && status < 300 ? by_expectation(preset, answer) : by_status(answer);
}

http::Verdict verdict_of(const Judgement& judgement) {
  if (is_complete(judgement.outcome)) return {};
  http::Verdict verdict;
  verdict.retry = judgement.retry;
  verdict.whole_origin = judgement.scope == Scope::origin;
  verdict.message = judgement.message;
  if (!judgement.wait_from_header) verdict.wait = judgement.wait;
  switch (judgement.outcome) {
    case Outcome::rate_limited:
      verdict.kind = http::Kind::rate_limited;
      break;
    case Outcome::quota:
      verdict.kind = http::Kind::quota;
      break;
    case Outcome::banned:
      verdict.kind = http::Kind::banned;
      break;
    case Outcome::server:
      verdict.kind = http::Kind::http_5xx;
      break;
    default:
      verdict.kind = http::Kind::rejected;
  }
  return verdict;
}

}  // namespace kvingest::fetch
