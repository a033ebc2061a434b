#include "http/engine.hpp"

#include <algorithm>
#include <condition_variable>

#include "base/check.hpp"
#include "base/thread.hpp"
#include "http/curl_init.hpp"
#include "http/url.hpp"

namespace kvingest::http {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kPollMax = 60s;
constexpr Clock::duration kExpiryLook = 20ms;  // How exactly Timeouts::queue is kept.
constexpr std::size_t kIdleHandlesMax = 256;
constexpr long kConcurrentStreams = 256;
constexpr long kConnectionsKept = 128;

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::unique_ptr<CURLM, MultiCloser> new_multi() {
  init_curl();
  std::unique_ptr<CURLM, MultiCloser> multi(curl_multi_init());
  KV_ASSERT(multi != nullptr);
  curl_multi_setopt(multi.get(), CURLMOPT_MAX_CONCURRENT_STREAMS, kConcurrentStreams);
  curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, kConnectionsKept);
  return multi;
}

}  // namespace

Engine::Engine(SessionOptions options)
    : options_(std::move(options)), multi_(new_multi()), backoff_(fresh_seed()), thread_([this] { run(); }) {}

Engine::~Engine() {
  stopping_ = true;
  wake();
  thread_.join();
}

void Engine::submit(Request request, std::function<void(Response)> done, std::stop_token batch) {
  auto flight = std::make_unique<Flight>();
  flight->request = std::move(request);
  flight->done = std::move(done);
  flight->batch = std::move(batch);
  flight->submitted = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(flight));
  }
  wake();
}

void Engine::look_for_cancelled() noexcept {
  look_for_cancelled_ = true;
  wake();
}

void Engine::call(std::function<void()> work) {
  KV_ASSERT(std::this_thread::get_id() != thread_.get_id());  // A verdict would wait for itself.
  std::mutex mutex;
  std::condition_variable changed;
  bool ran = false;
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back([&] {
      work();
      const std::lock_guard done(mutex);
      ran = true;
      changed.notify_one();
    });
  }
  wake();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ran; });
}

Result<void> Engine::limit(std::string_view origin_text, OriginLimits limits) {
  const auto name = origin_of(origin_text);
  KV_TRY(name);
  call([&] {
    Origin& known = origin(*name);
    known.set_limits(std::move(limits));
    connections_max_ = std::max(connections_max_, known.limits().connections);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(connections_max_));
  });
  return {};
}

Result<void> Engine::pause(std::string_view origin_text, Milliseconds time) {
  const auto name = origin_of(origin_text);
  KV_TRY(name);
  call([&] { origin(*name).pause(Clock::now() + time); });
  return {};
}

std::vector<OriginState> Engine::origins() {
  std::vector<OriginState> states;
  call([&] {
    for (const auto& [name, one] : origins_) states.push_back(one->state(Clock::now()));
  });
  return states;
}

Origin& Engine::origin(const std::string& name) {
  auto& known = origins_[name];
  if (known) return *known;
  known = std::make_unique<Origin>(name, options_.limits);
  connections_max_ = std::max(connections_max_, known->limits().connections);
  curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(connections_max_));
  return *known;
}

void Engine::run() {
  name_this_thread("kv-http");
  while (!stopping_) {
    take_submitted();
    if (look_for_cancelled_.exchange(false)) drop_cancelled();
    const auto now = Clock::now();
    release_due(now);
    expire(now);
    drop_hopeless(now);
    Clock::time_point next = std::min(admit(now), now + kPollMax);
    int running = 0;
    if (!active_.empty()) curl_multi_perform(multi_.get(), &running);
    const std::size_t before = active_.size();
    collect_done();
    stop_overdue(Clock::now());
    if (active_.size() != before) continue;  // Slots are free.
    next = std::min(next, next_due());
    const auto wait = std::chrono::ceil<Milliseconds>(next - Clock::now()).count();
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000)), nullptr);
  }
  cancel_everything();
}

void Engine::take_submitted() {
  std::deque<FlightPtr> flights;
  std::deque<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    flights.swap(submitted_);
    calls.swap(calls_);
  }
  for (auto& work : calls) work();
  for (FlightPtr& flight : flights) accept(std::move(flight));
}

/// What is wrong with a request, or nothing.
static std::string mistake_in(const Request& request) {
  const auto breaks = [](std::string_view text) { return text.find_first_of("\r\n\0", 0, 3) != text.npos; };
  for (const Header& header : request.headers) {
    if (header.name.empty() || breaks(header.name) || breaks(header.value)) {
      return fmt::format("header '{}': a name is needed, and no line end may be in it", header.name);
    }
  }
  if (breaks(request.method) || request.method.empty() || request.method.find(' ') != std::string::npos) {
    return "the method is none";
  }
  if (breaks(request.auth.name) || breaks(request.auth.secret.reveal())) return "a line end in a secret or its name";
  if (request.sink != nullptr && request.cache) return "a request with a sink is not cached";
  return {};
}

static bool tells_a_secret(std::string_view header) {
  std::string lower(header);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower.find("auth") != lower.npos || lower.find("key") != lower.npos || lower.find("token") != lower.npos ||
         lower.find("cookie") != lower.npos || lower.find("secret") != lower.npos;
}

void Engine::accept(FlightPtr flight) {
  Request& request = flight->request;
  redactor_.add(request.auth.secret.reveal());
  redactor_.add(password_in(request.url));
  for (const Header& header : request.headers) {
    if (tells_a_secret(header.name)) redactor_.add(header.value);
  }
  flight->url = with_params(request.url, request.params);
  const auto home = origin_of(flight->url);
  std::string mistake = home ? mistake_in(request) : home.error().text;
  if (!mistake.empty()) {
    flight->response.url = redactor_.redacted(flight->url);
    flight->response.error = {Kind::usage, 0, std::move(mistake), std::nullopt};
    return deliver(std::move(flight));
  }
  flight->home = *home;
  if (request.cache && options_.cache != nullptr && request.method == "GET") {
    flight->cache_key = redactor_.redacted(flight->url);
    flight->cached = options_.cache->get(flight->cache_key);
    flight->response.cache_key = flight->cache_key;
  }
  if (request.auth.kind == Auth::Kind::query) {
    flight->url = with_params(flight->url, {{request.auth.name, request.auth.secret.reveal()}});
  }
  flight->response.url = redactor_.redacted(flight->url);
  queue_bounds_ = queue_bounds_ || request.timeout.queue.count() > 0;
  flight->on_stop.emplace(request.stop, [this] { look_for_cancelled(); });
  flight->on_batch_stop.emplace(flight->batch, [this] { look_for_cancelled(); });
  Origin& from = origin(flight->home);
  from.enqueue(std::move(flight), false);
}

void Engine::drop_cancelled() {
  const auto cancelled = [](const Flight& flight) { return flight.is_cancelled(); };
  std::vector<FlightPtr> dropped;
  for (auto& [name, one] : origins_) {
    for (FlightPtr& flight : one->take_queued(cancelled)) dropped.push_back(std::move(flight));
  }
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (!cancelled(*at->second)) {
      ++at;
      continue;
    }
    dropped.push_back(std::move(at->second));
    at = waiting_.erase(at);
  }
  std::vector<Transfer*> stopped;
  for (auto& [easy, transfer] : active_) {
    if (cancelled(transfer->flight())) stopped.push_back(transfer.get());
  }
  for (Transfer* transfer : stopped) dropped.push_back(detach(*transfer, CURLE_OK, Error{}));
  for (FlightPtr& flight : dropped) {
    flight->response.error = {Kind::cancelled, 0, "cancelled", std::nullopt};
    deliver(std::move(flight));
  }
}

void Engine::release_due(Clock::time_point now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    FlightPtr flight = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    Origin& target = *flight->origin;
    target.enqueue(std::move(flight), true);
  }
}

void Engine::expire(Clock::time_point now) {
  if (!queue_bounds_ || now < next_expiry_look_) return;
  next_expiry_look_ = now + kExpiryLook;
  for (auto& [name, one] : origins_) {
    auto late = one->take_queued([now](const Flight& flight) {
      const Milliseconds bound = flight.request.timeout.queue;
      return bound.count() > 0 && flight.attempts == 0 && flight.submitted + bound <= now;
    });
    for (FlightPtr& flight : late) {
      const auto bound = flight->request.timeout.queue.count();
      flight->response.error = {Kind::queue_timeout, 0, fmt::format("not sent within {} ms", bound), std::nullopt};
      deliver(std::move(flight));
    }
  }
}

void Engine::drop_hopeless(Clock::time_point now) {
  for (auto& [name, one] : origins_) {
    while (FlightPtr flight = one->next_hopeless(now)) deliver(std::move(flight));
  }
}

Clock::time_point Engine::admit(Clock::time_point now) {
  Clock::time_point next = Clock::time_point::max();
  for (auto& [name, one] : origins_) {
    while (one->has_queued() && active_.size() < options_.in_flight_max) {
      FlightPtr flight = one->next_to_start(now, next);
      if (!flight) break;
      start(std::move(flight), now);
    }
    if (queue_bounds_ && one->has_queued()) next = std::min(next, now + kExpiryLook);
  }
  if (!waiting_.empty()) next = std::min(next, waiting_.begin()->first);
  return next;
}

void Engine::start(FlightPtr flight, Clock::time_point now) {
  if (flight->attempts == 0 && flight->redirects == 0) {
    flight->first_start = now;
    flight->response.timing.queued = std::chrono::duration_cast<Milliseconds>(now - flight->submitted);
  }
  ++flight->attempts;
  flight->started = now;
  EasyHandle easy;
  if (!idle_.empty()) {
    easy = std::move(idle_.back());
    idle_.pop_back();
  } else {
    easy.reset(curl_easy_init());
    KV_ASSERT(easy != nullptr);
  }
  auto transfer = std::make_unique<Transfer>(std::move(easy), std::move(flight), options_);
  CURL* const handle = transfer->easy();
  const CURLMcode added = curl_multi_add_handle(multi_.get(), handle);
  KV_ASSERT(added == CURLM_OK);
  active_.emplace(handle, std::move(transfer));
}

Engine::FlightPtr Engine::detach(Transfer& transfer, CURLcode code, std::optional<Error> error) {
  CURL* const easy = transfer.easy();
  curl_multi_remove_handle(multi_.get(), easy);
  if (error) {
    transfer.flight().response.error = *std::move(error);
  } else {
    transfer.finish(code);
  }
  FlightPtr flight = transfer.take_flight();
  const auto took = Clock::now() - flight->started;
  flight->response.timing.total = std::chrono::duration_cast<Milliseconds>(took);
  flight->response.attempts = flight->attempts;
  flight->origin->finished();
  EasyHandle handle = transfer.take_easy();
  active_.erase(easy);
  if (idle_.size() < kIdleHandlesMax) idle_.push_back(std::move(handle));
  return flight;
}

void Engine::collect_done() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found = active_.find(message->easy_handle);
    const CURLcode code = message->data.result;
    if (found != active_.end()) conclude(detach(*found->second, code, std::nullopt));
  }
}

void Engine::stop_overdue(Clock::time_point now) {
  std::vector<std::pair<Transfer*, Error>> overdue;
  for (auto& [easy, transfer] : active_) {
    if (auto error = transfer->timed_out(now)) overdue.emplace_back(transfer.get(), *std::move(error));
  }
  for (auto& [transfer, error] : overdue) conclude(detach(*transfer, CURLE_OK, std::move(error)));
}

Clock::time_point Engine::next_due() const {
  Clock::time_point next = Clock::time_point::max();
  for (const auto& [easy, transfer] : active_) next = std::min(next, transfer->due());
  return next;
}

void Engine::cancel_everything() {
  {
    const std::lock_guard lock(mutex_);
    for (FlightPtr& flight : submitted_) waiting_.emplace(Clock::time_point{}, std::move(flight));
    submitted_.clear();
  }
  for (auto& [name, one] : origins_) {
    for (FlightPtr& flight : one->take_queued([](const Flight&) { return true; })) {
      waiting_.emplace(Clock::time_point{}, std::move(flight));
    }
  }
  while (!active_.empty()) {
    waiting_.emplace(Clock::time_point{}, detach(*active_.begin()->second, CURLE_OK, Error{}));
  }
  for (auto& [due, flight] : waiting_) {
    flight->response.error = {Kind::cancelled, 0, "the session ended", std::nullopt};
    deliver(std::move(flight));
  }
  waiting_.clear();
  idle_.clear();
}

void Engine::deliver(FlightPtr flight) {
  flight->on_stop.reset();
  flight->on_batch_stop.reset();
  Response& response = flight->response;
  response.tag = flight->request.tag;
  response.error.text = redactor_.redacted(response.error.text);
  auto done = std::move(flight->done);
  Response out = std::move(response);
  flight.reset();
  done(std::move(out));
}

}  // namespace kvingest::http
