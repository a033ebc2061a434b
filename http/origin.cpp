#include "http/origin.hpp"

#include <algorithm>
#include <charconv>

namespace kvingest::http {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kPaceFirst = 25ms;
constexpr Clock::duration kPaceMax = 10s;
constexpr Clock::duration kPaceGone = 1ms;

}  // namespace

Origin::Origin(std::string name, OriginLimits limits) : name_(std::move(name)) {
  set_limits(std::move(limits));
  if (name_.starts_with("http:")) protocol_ = Protocol::h1;  // Without TLS nothing negotiates another one.
}

void Origin::set_limits(OriginLimits limits) {
  limits_ = std::move(limits);
  limits_.in_flight = std::max(limits_.in_flight, 1U);
  limits_.connections = std::max(limits_.connections, 1U);
  window_ = limits_.in_flight;
  rates_.clear();
  for (const Rate& rate : limits_.rates) rates_.emplace_back(rate);
}

void Origin::enqueue(std::unique_ptr<Flight> flight, bool in_front) {
  auto& queue = queue_[flight->request.priority];
  flight->origin = this;
  if (in_front) {
    queue.push_front(std::move(flight));
  } else {
    queue.push_back(std::move(flight));
  }
  ++queued_;
}

std::vector<std::unique_ptr<Flight>> Origin::take_queued(const std::function<bool(const Flight&)>& wanted) {
  std::vector<std::unique_ptr<Flight>> taken;
  for (auto& [priority, queue] : queue_) {
    for (auto& flight : queue) {
      if (wanted(*flight)) taken.push_back(std::move(flight));
    }
    std::erase(queue, nullptr);
  }
  queued_ -= taken.size();
  std::erase_if(queue_, [](const auto& one) { return one.second.empty(); });
  return taken;
}

unsigned Origin::window() const noexcept {
  // The first request to an unknown server shows what it speaks: many at once would each open a connection.
  if (protocol_ == Protocol::unknown || probing_ || slow_) return 1;
  const auto adapted = std::max(1U, static_cast<unsigned>(window_));
  return protocol_ == Protocol::h1 ? std::min(adapted, limits_.connections) : adapted;
}

Clock::time_point Origin::allowed_at(Clock::time_point now, std::uint64_t cost) {
  Clock::time_point at = std::max(now, paused_until_);
  if (sent_ > 0) at = std::max(at, last_start_ + std::max<Clock::duration>(limits_.spacing, pace_));
  for (RateWindow& rate : rates_) at = std::max(at, rate.when(now, cost));
  const auto wall = std::chrono::system_clock::now();
  for (Quota& quota : limits_.quotas) {
    at = std::max(at, now + std::chrono::duration_cast<Clock::duration>(when_allowed(quota, cost, wall) - wall));
  }
  return at;
}

std::unique_ptr<Flight> Origin::next_to_start(Clock::time_point now, Clock::time_point& next) {
  if (queued_ == 0 || in_flight_ >= window()) return nullptr;
  auto& queue = queue_.begin()->second;
  const std::uint64_t cost = queue.front()->request.cost;
  const Clock::time_point at = allowed_at(now, cost);
  if (at > now) {
    next = std::min(next, at);
    return nullptr;
  }
  auto flight = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) queue_.erase(queue_.begin());
  --queued_;
  ++in_flight_;
  ++sent_;
  last_start_ = now;
  for (RateWindow& rate : rates_) rate.take(now, cost);
  for (Quota& quota : limits_.quotas) take(quota, cost, std::chrono::system_clock::now());
  return flight;
}

std::unique_ptr<Flight> Origin::next_hopeless(Clock::time_point now) {
  if (queued_ == 0) return nullptr;
  const auto first = queue_.begin();
  const Request& request = first->second.front()->request;
  const Clock::time_point at = allowed_at(now, request.cost);
  if (request.retry.deadline.count() == 0 || at <= now + request.retry.deadline) return nullptr;
  auto flight = std::move(first->second.front());
  first->second.pop_front();
  if (first->second.empty()) queue_.erase(first);
  --queued_;
  const auto wait = std::chrono::ceil<Milliseconds>(at - now);
  flight->response.error.kind = paused_until_ > now ? refused_as_ : Kind::quota;
  flight->response.error.text = fmt::format("not sent: {} takes no more for {} s", name_, (wait.count() + 999) / 1000);
  flight->response.error.retry_after = wait;
  return flight;
}

void Origin::succeeded() {
  failures_in_row_ = 0;
  probing_ = false;
  window_ = std::min<double>(limits_.in_flight, window_ + 1 / std::max(window_, 1.0));
  pace_ = pace_ < kPaceGone ? Clock::duration(0) : pace_ - pace_ / 64;
}

void Origin::refused(Clock::time_point now, Clock::time_point started, Clock::time_point until, Kind kind) {
  ++refused_;
  refused_as_ = kind;
  pause(until);
  if (started <= refused_at_) return;  // Sent before the last refusal was known.
  refused_at_ = now;
  window_ = std::max(1.0, window_ / 2);
  if (limits_.rates.empty() && limits_.spacing.count() == 0) {
    pace_ = std::clamp(pace_ * 2, kPaceFirst, kPaceMax);
  }
}

bool Origin::failed(Clock::time_point now) {
  if (++failures_in_row_ < limits_.breaker_failures) return false;
  probing_ = true;
  failures_in_row_ = limits_.breaker_failures - 1;  // The probe decides.
  pause(now + limits_.breaker_pause);
  return true;
}

void Origin::note_used_header(const Headers& headers, Clock::time_point now) {
  if (!limits_.used_header || limits_.used_header->budget == 0) return;
  const std::string_view text = find_header(headers, limits_.used_header->name);
  std::uint64_t used = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), used).ec != std::errc{}) return;
  const double part = static_cast<double>(used) / static_cast<double>(limits_.used_header->budget);
  slow_ = part >= limits_.used_header->slow_at;
  if (part >= limits_.used_header->stop_at) pause(now + 60s);
}

OriginState Origin::state(Clock::time_point now) const {
  OriginState state;
  state.origin = name_;
  state.protocol = protocol_ == Protocol::h1 ? "h1" : protocol_ == Protocol::h2 ? "h2" : "";
  state.in_flight = in_flight_;
  state.window = window();
  state.sent = sent_;
  state.refused = refused_;
  state.quotas = limits_.quotas;
  if (paused_until_ > now) state.paused_for = std::chrono::ceil<Milliseconds>(paused_until_ - now);
  return state;
}

}  // namespace kvingest::http
