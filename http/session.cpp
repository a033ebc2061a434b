#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "base/check.hpp"
#include "http/engine.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

namespace {

bool same_name(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view find_header(const Headers& headers, std::string_view name) noexcept {
  for (const Header& header : headers) {
    if (same_name(header.name, name)) return header.value;
  }
  return {};
}

std::string_view to_string(Kind kind) noexcept {
  switch (kind) {
    case Kind::none:
      return "none";
    case Kind::usage:
      return "usage";
    case Kind::cancelled:
      return "cancelled";
    case Kind::queue_timeout:
      return "queue_timeout";
    case Kind::dns:
      return "dns";
    case Kind::connect:
      return "connect";
    case Kind::tls:
      return "tls";
    case Kind::connect_timeout:
      return "connect_timeout";
    case Kind::first_byte_timeout:
      return "first_byte_timeout";
    case Kind::stalled:
      return "stalled";
    case Kind::total_timeout:
      return "total_timeout";
    case Kind::reset:
      return "reset";
    case Kind::protocol:
      return "protocol";
    case Kind::truncated:
      return "truncated";
    case Kind::too_large:
      return "too_large";
    case Kind::bomb:
      return "bomb";
    case Kind::bad_encoding:
      return "bad_encoding";
    case Kind::redirect:
      return "redirect";
    case Kind::bad_range:
      return "bad_range";
    case Kind::sink:
      return "sink";
    case Kind::http_4xx:
      return "http_4xx";
    case Kind::http_5xx:
      return "http_5xx";
    case Kind::rate_limited:
      return "rate_limited";
    case Kind::quota:
      return "quota";
    case Kind::banned:
      return "banned";
    case Kind::rejected:
      return "rejected";
  }
  return "none";
}

// ---- Pending --------------------------------------------------------------------------------------------------------

struct Pending::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Response> response;  // Guarded by mutex.
  std::stop_source stop;
  std::optional<std::stop_callback<std::function<void()>>> callers_stop;
};

Response Pending::get() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->response.has_value(); });
  return *std::move(state_->response);
}

bool Pending::ready() const {
  const std::lock_guard lock(state_->mutex);
  return state_->response.has_value();
}

void Pending::cancel() {
  state_->stop.request_stop();
}

// ---- Results --------------------------------------------------------------------------------------------------------

namespace {

/// Where the session's thread leaves responses for their batch. Shared: a batch may end before its last response.
struct Inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Response> arrived;  // Guarded by mutex.
};

}  // namespace

struct Results::State {
  Engine& engine;
  Source source;
  BatchOptions options;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();  // With the session's thread.
  std::stop_source stop;
  std::size_t submitted = 0;
  std::size_t under_way = 0;
  bool ended = false;  // No more is asked of the source.
  std::optional<std::stop_callback<std::function<void()>>> callers_stop;

  void submit_more() {
    while (!ended && under_way < std::max(options.window, 1U)) {
      std::optional<Request> request = source();
      if (!request) return;
      engine.submit(
          *std::move(request),
          [inbox = inbox, index = submitted](Response response) {
            response.index = index;
            const std::lock_guard lock(inbox->mutex);
            inbox->arrived.push_back(std::move(response));
            inbox->changed.notify_one();
          },
          stop.get_token());
      ++submitted;
      ++under_way;
    }
  }
};

Results::Results(Engine& engine, Source source, BatchOptions options)
    : state_(new State{.engine = engine, .source = std::move(source), .options = std::move(options)}) {
  state_->callers_stop.emplace(state_->options.stop, [state = state_.get()] { state->stop.request_stop(); });
}
Results::Results(Results&&) noexcept = default;
Results& Results::operator=(Results&&) noexcept = default;

Results::~Results() {
  if (!state_) return;
  cancel();
  state_->ended = true;
  while (state_->under_way > 0) static_cast<void>(next());
}

bool Results::ready() const {
  const std::lock_guard lock(state_->inbox->mutex);
  return !state_->inbox->arrived.empty();
}

void Results::cancel() {
  state_->stop.request_stop();
}

std::optional<Response> Results::next() {
  State& state = *state_;
  if (state.stop.stop_requested() && state.under_way == 0) return std::nullopt;
  if (!state.stop.stop_requested()) state.submit_more();
  if (state.under_way == 0) return std::nullopt;
  std::unique_lock lock(state.inbox->mutex);
  state.inbox->changed.wait(lock, [&] { return !state.inbox->arrived.empty(); });
  Response response = std::move(state.inbox->arrived.front());
  state.inbox->arrived.pop_front();
  --state.under_way;
  return response;
}

// ---- Session --------------------------------------------------------------------------------------------------------

Session::Session(SessionOptions options) : engine_(std::make_unique<Engine>(std::move(options))) {}
Session::~Session() = default;

Response Session::get(std::string url, Request request) {
  request.url = std::move(url);
  return this->request(std::move(request));
}

Response Session::request(Request request) {
  return send(std::move(request)).get();
}

Pending Session::send(Request request) {
  auto state = std::make_shared<Pending::State>();
  state->callers_stop.emplace(request.stop, [raw = state.get()] { raw->stop.request_stop(); });
  request.stop = state->stop.get_token();
  engine_->submit(std::move(request), [state](Response response) {
    const std::lock_guard lock(state->mutex);
    state->response = std::move(response);
    state->changed.notify_all();
  });
  return Pending(std::move(state));
}

Batch Session::gather(std::vector<Request> requests, BatchOptions options) {
  Batch batch;
  batch.responses.resize(requests.size());
  std::vector<std::string> tags;
  for (const Request& request : requests) tags.push_back(request.tag);
  const auto on_done = options.on_done;
  const bool fail_fast = options.fail_fast;
  std::vector<bool> arrived(requests.size());
  Results results = stream_of(std::move(requests), std::move(options));
  while (auto response = results.next()) {
    if (response->ok()) ++batch.succeeded;
    batch.bytes += response->body.size();
    if (on_done) on_done(*response);
    if (fail_fast && !response->ok()) results.cancel();
    const std::size_t index = response->index;
    arrived[index] = true;
    batch.responses[index] = *std::move(response);
  }
  for (std::size_t i = 0; i < arrived.size(); ++i) {  // Never handed in, because the batch was cancelled before.
    if (arrived[i]) continue;
    batch.responses[i].index = i;
    batch.responses[i].tag = tags[i];
    batch.responses[i].error = {Kind::cancelled, 0, "cancelled before it was sent", std::nullopt};
  }
  return batch;
}

Results Session::stream_of(std::vector<Request> requests, BatchOptions options) {
  auto at = std::make_shared<std::size_t>(0);  // A std::function is copied with what it holds.
  auto all = std::make_shared<std::vector<Request>>(std::move(requests));
  return stream_of(
      [at, all]() -> std::optional<Request> {
        if (*at == all->size()) return std::nullopt;
        return std::move((*all)[(*at)++]);
      },
      std::move(options));
}

Results Session::stream_of(Results::Source source, BatchOptions options) {
  return Results(*engine_, std::move(source), std::move(options));
}

Result<void> Session::limit(std::string_view origin, OriginLimits limits) {
  return engine_->limit(origin, std::move(limits));
}

Result<void> Session::pause(std::string_view origin, Milliseconds time) {
  return engine_->pause(origin, time);
}

std::vector<OriginState> Session::origins() const {
  return engine_->origins();
}

std::string Session::redact(std::string_view text) const {
  return engine_->redactor().redacted(text);
}

}  // namespace kvingest::http
