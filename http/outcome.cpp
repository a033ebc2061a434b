// What becomes of an attempt that has ended: the part of Engine that judges.
#include <algorithm>

#include "http/engine.hpp"
#include "http/url.hpp"

namespace kvingest::http {
namespace {

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool changes_nothing(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

void set_error(Response& response, Kind kind, std::string text) {
  response.error = {kind, 0, std::move(text), std::nullopt};
}

/// Failures of the server or the way to it, which the circuit breaker counts; a request that was wrong is none.
bool counts_against_origin(Kind kind, bool whole_origin) {
  switch (kind) {
    case Kind::dns:
    case Kind::connect:
    case Kind::tls:
    case Kind::connect_timeout:
    case Kind::first_byte_timeout:
    case Kind::stalled:
    case Kind::total_timeout:
    case Kind::reset:
    case Kind::protocol:
    case Kind::http_5xx:
      return true;
    default:
      return whole_origin;
  }
}

}  // namespace

Verdict by_status(const Response& response) {
  const int status = response.status;
  if ((status >= 200 && status < 300) || status == 304) return {};
  Verdict verdict;
  verdict.message = fmt::format("status {}", status);
  verdict.retry = is_status_worth_a_retry(status);
  const bool asks_to_wait = !response.header("retry-after").empty();
  if (status == 429 || status == 418 || (status == 503 && asks_to_wait)) {
    verdict.kind = status == 418 ? Kind::banned : Kind::rate_limited;
    verdict.whole_origin = true;
  } else {
    verdict.kind = status >= 500 ? Kind::http_5xx : status >= 400 ? Kind::http_4xx : Kind::redirect;
  }
  return verdict;
}

void Engine::conclude(FlightPtr flight) {
  Response& response = flight->response;
  response.url = redactor_.redacted(flight->url);
  if (response.ok()) {
    flight->origin->note_used_header(response.headers, Clock::now());
    if (is_redirect(response.status) && !response.header("location").empty()) {
      if (follow_redirect(flight)) return;
    } else if (response.status == 304 && flight->cached) {
      response.body = flight->cached->body;
      response.status = 200;
      response.from_cache = true;
      if (response.header("content-type").empty()) {
        response.headers.push_back({"Content-Type", flight->cached->content_type});
      }
    }
  }
  const Verdict verdict = judge(*flight);
  retry_or_deliver(std::move(flight), verdict);
}

bool Engine::follow_redirect(FlightPtr& flight) {
  Response& response = flight->response;
  Request& request = flight->request;
  const std::string location(response.header("location"));
  if (flight->redirects >= request.redirects_max) {
    set_error(response, Kind::redirect, fmt::format("more than {} redirects", request.redirects_max));
    return false;
  }
  auto target = resolved(flight->url, location);
  if (!target) {
    set_error(response, Kind::redirect, fmt::format("redirect to '{}': {}", location, target.error().text));
    return false;
  }
  const std::string place = *origin_of(*target);  // resolved() has looked.
  if (flight->url.starts_with("https:") && place.starts_with("http:")) {
    set_error(response, Kind::redirect, "redirect from https to http: refused");
    return false;
  }
  if (place != flight->home && redactor_.found_in(*target)) {
    set_error(response, Kind::redirect, fmt::format("redirect to {} with a secret in its address: refused", place));
    return false;
  }
  const bool keeps_body = response.status >= 307 && !request.body.empty();
  if (place != flight->home && keeps_body) {
    set_error(response, Kind::redirect, fmt::format("redirect to {} of a request with a body: refused", place));
    return false;
  }
  if (place == flight->home && request.auth.kind == Auth::Kind::query &&
      query_value(*target, request.auth.name).empty()) {
    *target = with_params(*target, {{request.auth.name, request.auth.secret.reveal()}});
  }
  if (response.status == 303 || (response.status < 303 && request.method == "POST")) {
    request.method = "GET";
    request.body.clear();
  }
  flight->origin->succeeded();
  flight->url = *std::move(target);
  ++flight->redirects;
  --flight->attempts;  // A step on the way, not another try.
  origin(place).enqueue(std::move(flight), true);
  return true;
}

Verdict Engine::judge(Flight& flight) {
  Response& response = flight.response;
  if (!response.ok()) {
    return {
        .kind = response.error.kind, .retry = is_worth_a_retry(response.error.kind), .message = response.error.text};
  }
  const bool moved_without_place = is_redirect(response.status);
  if (!flight.request.verdict || moved_without_place) return by_status(response);
  try {
    return flight.request.verdict(response);
  } catch (const std::exception& problem) {
    return {.kind = Kind::rejected, .message = fmt::format("the verdict failed: {}", problem.what())};
  }
}

void Engine::retry_or_deliver(FlightPtr flight, const Verdict& verdict) {
  Response& response = flight->response;
  Origin& from = *flight->origin;
  const RetryPolicy& policy = flight->request.retry;
  const auto now = Clock::now();
  if (verdict.kind == Kind::none) {
    from.succeeded();
    keep_in_cache(*flight);
    return deliver(std::move(flight));
  }
  if (response.ok()) set_error(response, verdict.kind, verdict.message);

  std::optional<Milliseconds> wait = verdict.wait;
  if (!wait) wait = parse_retry_after(response.header("retry-after"), std::chrono::system_clock::now());
  if (wait) wait = std::min(*wait, policy.retry_after_max);
  Milliseconds delay = wait ? *wait : backoff_.delay(policy, flight->attempts - 1);
  if (verdict.whole_origin) {
    if (!wait) delay += policy.base;  // Full jitter may be no wait at all, which a refusal is not answered with.
    from.refused(now, flight->started, now + delay, verdict.kind);
    response.error.retry_after = delay;
  }
  const bool counts = counts_against_origin(verdict.kind, verdict.whole_origin);
  if (!counts) from.succeeded();
  if (counts && from.failed(now)) {
    response.error.text +=
        fmt::format(" ({} failures in a row: the origin is left alone for a while)", from.limits().breaker_failures);
    leave_alone(from);
    return deliver(std::move(flight));
  }
  const bool in_time = policy.deadline.count() == 0 || now + delay <= flight->first_start + policy.deadline;
  const bool again = verdict.retry && flight->attempts < policy.attempts && in_time &&
                     changes_nothing(flight->request.method) && !flight->is_cancelled();
  if (!again) return deliver(std::move(flight));
  if (verdict.whole_origin) {
    from.enqueue(std::move(flight), true);
  } else {
    waiting_.emplace(now + delay, std::move(flight));
  }
}

void Engine::leave_alone(Origin& from) {
  const auto left = std::chrono::ceil<Milliseconds>(from.paused_until() - Clock::now());
  for (FlightPtr& flight : from.take_queued([](const Flight&) { return true; })) {
    flight->response.error = {
        Kind::rate_limited, 0,
        fmt::format("not sent: {} has failed {} times in a row", from.name(), from.limits().breaker_failures), left};
    deliver(std::move(flight));
  }
}

void Engine::keep_in_cache(const Flight& flight) const {
  const Response& response = flight.response;
  if (flight.cache_key.empty() || response.from_cache || response.status != 200 || flight.redirects > 0) return;
  CacheEntry entry{std::string(response.header("etag")), std::string(response.header("last-modified")),
                   std::string(response.header("content-type")), response.body};
  const bool may_be_kept = response.header("cache-control").find("no-store") == std::string_view::npos;
  if (may_be_kept && !(entry.etag.empty() && entry.last_modified.empty())) options_.cache->put(flight.cache_key, entry);
}

}  // namespace kvingest::http
