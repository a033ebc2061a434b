// kvingest/http_client.hpp -- HTTP for programs that fetch much from few places: libcurl's multi handle behind an
// interface as plain as Python's requests.
//
//   http::Session session({.user_agent = "example/1.0 (ops@example.com)"});
//   auto answer = session.get("https://api.example.com/rates", {.params = {{"base", "EUR"}}});
//   if (!answer.ok()) complain(answer.error.text);     // failures are values, never exceptions
//
//   for (auto answers = session.stream_of(requests, {.window = 64}); auto answer = answers.next();) store(*answer);
//   auto done = session.download(url, "big.zip", {.sha256 = expected});   // resumes what an earlier run left
//
// A session owns its queue: a request enters libcurl only when its origin (scheme, host and port) has a free slot, its
// rates and quotas allow it and no pause holds. An origin that refuses (429, or what a verdict calls a refusal) pauses
// as a whole. Bodies are inflated here, within bounds; a body that is cut is an error. Redirects are followed here, and
// secrets never go to another origin. No text that leaves a session holds a secret that was given to it.
//
// Threads:  a session has one thread of its own, on which verdicts, sinks and the cache are called; every method may be
//           called on any other thread. Results<> and Batch belong to their caller's thread.
// Lifetime: what a request refers to (sink, verdict, cache) outlives its response. Destroying a session cancels what is
//           not finished; every Pending gets its response first.
// Errors:   a response carries its error. What a program does wrong (no URL) is an error of kind `usage`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvingest/result.hpp"

namespace kvingest::http {

using Milliseconds = std::chrono::milliseconds;
using Params = std::vector<std::pair<std::string, std::string>>;

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

/// The value of the first header of that name, in any case; empty where there is none.
[[nodiscard]] std::string_view find_header(const Headers& headers, std::string_view name) noexcept;

/// A key, token or password. It is shown only by reveal(); a session takes it out of every text that leaves it.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] const std::string& reveal() const noexcept { return value_; }
  [[nodiscard]] bool empty() const noexcept { return value_.empty(); }

 private:
  std::string value_;
};

/// How a request says who asks. Sent to the request's own origin only.
struct Auth {
  enum class Kind : std::uint8_t { none, query, header, bearer, basic };
  Kind kind = Kind::none;
  std::string name;    ///< Of the query parameter or header; the user of basic.
  std::string prefix;  ///< Stands before the secret in a header: "Token ".
  Secret secret;
};

/// Zero: no bound.
struct Timeouts {
  Milliseconds connect{10'000};     ///< Name, connection and TLS together.
  Milliseconds first_byte{30'000};  ///< From the request to the first byte of the answer.
  Milliseconds idle{15'000};        ///< Without a byte after that.
  Milliseconds total{120'000};      ///< One attempt.
  Milliseconds queue{0};            ///< Waiting for a slot, a rate or the end of a pause before the first attempt.
};

struct RetryPolicy {
  unsigned attempts = 5;                    ///< At most so many, the first included.
  Milliseconds base{500};                   ///< A wait is random, up to base * 2^n: "full jitter".
  Milliseconds delay_max{60'000};           ///< Bounds base * 2^n.
  Milliseconds retry_after_max{3'600'000};  ///< Bounds what a server may ask for.
  Milliseconds deadline{600'000};           ///< From the first attempt to the last, waits included.
};

/// What went wrong with a request. The set is closed.
enum class Kind : std::uint8_t {
  none,
  usage,               ///< The caller's mistake: an URL that is none.
  cancelled,           ///< By its stop_token, or with the session.
  queue_timeout,       ///< Never sent: Timeouts::queue.
  dns,                 ///< No such host, or no answer about it.
  connect,             ///< Refused, unreachable.
  tls,                 ///< The handshake failed, or the certificate is not to be trusted.
  connect_timeout,     ///< Timeouts::connect.
  first_byte_timeout,  ///< Timeouts::first_byte.
  stalled,             ///< Timeouts::idle.
  total_timeout,       ///< Timeouts::total.
  reset,               ///< The connection broke, or the server ended it early.
  protocol,            ///< What came is no HTTP.
  truncated,           ///< The body ended before its announced or its own end.
  too_large,           ///< Beyond Request::body_bytes_max.
  bomb,                ///< Inflated to more than Request::inflate_ratio_max times its size.
  bad_encoding,        ///< Content-Encoding names what the body is not, or what was not asked for.
  redirect,            ///< A loop, too many, from https to http, or with a secret in its address.
  bad_range,           ///< A part of a file that is not the part asked for.
  sink,                ///< The caller's sink refused the body.
  http_4xx,
  http_5xx,
  rate_limited,  ///< Refused for now; Error::retry_after says until when.
  quota,         ///< Refused for long: what a day or month allows is used up.
  banned,        ///< The origin sent us away.
  rejected,      ///< A verdict: the answer is none, whatever its status.
};
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

struct Error {
  Kind kind = Kind::none;
  int curl_code = 0;  ///< CURLcode, 0 where none was involved.
  std::string text;   ///< For people; holds no secret.
  std::optional<Milliseconds> retry_after;
};

struct Timing {
  Milliseconds queued{0};  ///< From send() to the first attempt.
  Milliseconds first_byte{0};
  Milliseconds total{0};  ///< Of the last attempt.
};

struct Response {
  std::size_t index = 0;  ///< Of the request in its batch.
  std::string tag;        ///< Of the request.
  std::string url;        ///< The last one asked, secrets taken out.
  int status = 0;         ///< 0: none came.
  Headers headers;
  std::string body;
  Error error;
  unsigned attempts = 0;
  bool from_cache = false;    ///< 304: the body is the one that was kept.
  bool proven_whole = false;  ///< The body's end was announced; else it is where the connection ended.
  std::string cache_key;      ///< Under which the session's cache was asked; empty where it was not.
  Timing timing;

  /// The transfer was sound, the status is 2xx (or 304 with a kept body), and the verdict agreed.
  [[nodiscard]] bool ok() const noexcept { return error.kind == Kind::none; }
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept { return find_header(headers, name); }
};

/// What an answer is worth, said by by_status() or by a source that knows better (many errors have status 200).
struct Verdict {
  Kind kind = Kind::none;
  bool retry = false;
  bool whole_origin = false;         ///< A refusal of all that is asked there: nothing is sent until `wait` is over.
  std::optional<Milliseconds> wait;  ///< Absent: Retry-After, else back-off.
  std::string message;               ///< The server's own words.
};
[[nodiscard]] Verdict by_status(const Response& response);

/// Where a body goes instead of into Response::body. Called on the session's thread.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// Before each attempt: may add headers, such as Range.
  virtual void attempt(Headers& headers) { static_cast<void>(headers); }
  /// The head of an answer whose body follows. Returns false where the body is not for the sink: then it is kept in
  /// the response, as without a sink, and judged. An error ends the request.
  virtual Result<bool> begin(int status, const Headers& headers) = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
};

enum class HttpVersion : std::uint8_t { h2_over_tls, h1 };

struct Request {
  std::string url;
  Params params;  ///< Appended to the URL, percent-encoded.
  Headers headers;
  Auth auth;
  std::string method = "GET";
  std::string body;
  Timeouts timeout;
  RetryPolicy retry;
  unsigned redirects_max = 10;
  std::size_t body_bytes_max = std::size_t{64} << 20;  ///< Inflated. Not with a sink.
  unsigned inflate_ratio_max = 200;
  unsigned cost = 1;   ///< Units of the origin's rates and quotas.
  int priority = 0;    ///< Higher goes first within its origin.
  bool cache = false;  ///< Ask with the validators that the session's cache holds, and keep the answer there.
  std::string tag;
  std::function<Verdict(const Response&)> verdict;  ///< Empty: by_status().
  BodySink* sink = nullptr;
  std::stop_token stop;
};

/// "5/1m": so many units in any span of that length. Fails with: invalid_argument.
struct Rate {
  std::uint64_t units = 0;
  Milliseconds per{0};
};
[[nodiscard]] Result<Rate> parse_rate(std::string_view text);

/// A budget that outlives the session: its owner keeps `used` and `since`.
struct Quota {
  Rate rate;
  std::uint64_t used = 0;
  std::chrono::system_clock::time_point since;  ///< When the span of `used` began.
};

/// A header in which an origin tells how much of a budget is used.
struct UsedHeader {
  std::string name;
  std::uint64_t budget = 0;
  double slow_at = 0.7;  ///< From this part of the budget on, one request at a time.
  double stop_at = 0.9;  ///< From here on none until a minute is over.
};

struct OriginLimits {
  std::vector<Rate> rates;
  std::vector<Quota> quotas;
  unsigned in_flight = 8;    ///< Requests at once; over HTTP/1, connections bound them, too.
  unsigned connections = 6;  ///< Over HTTP/1.
  Milliseconds spacing{0};   ///< At least so long between two requests.
  std::optional<UsedHeader> used_header;
  unsigned breaker_failures = 10;      ///< After so many failures in a row the origin is left alone...
  Milliseconds breaker_pause{30'000};  ///< ...for so long, and what waits for it fails.
};

/// What a session has learned about an origin.
struct OriginState {
  std::string origin;
  std::string protocol;  ///< "h1", "h2" or empty.
  unsigned in_flight = 0;
  unsigned window = 0;  ///< Requests at once, as adapted.
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;
  Milliseconds paused_for{0};  ///< From now on.
  std::vector<Quota> quotas;
};

/// An answer kept for asking whether it still holds.
struct CacheEntry {
  std::string etag;
  std::string last_modified;
  std::string content_type;
  std::string body;
};
/// Called on the session's thread. Keys hold no secrets.
class Cache {
 public:
  virtual ~Cache() = default;
  virtual std::optional<CacheEntry> get(std::string_view key) = 0;
  virtual void put(std::string_view key, const CacheEntry& entry) = 0;
};

struct SessionOptions {
  std::string user_agent = "kvingest";
  std::filesystem::path ca_file;  ///< Empty: the system's. Certificates are always verified.
  /// Unset: as the environment says (https_proxy and the like, read by libcurl); empty: none.
  std::optional<std::string> proxy;
  HttpVersion version = HttpVersion::h2_over_tls;
  unsigned in_flight_max = 256;  ///< Over all origins.
  Cache* cache = nullptr;
  OriginLimits limits;  ///< Of origins for which limit() was not called.
};

struct BatchOptions {
  unsigned window = 64;                          ///< Requests that are under way or whose responses wait to be taken.
  std::function<void(const Response&)> on_done;  ///< gather(): called on the caller's thread as each finishes.
  bool fail_fast = false;                        ///< gather(): the first failure cancels the rest.
  std::stop_token stop;                          ///< Cancels all of the batch.
};

struct Batch {
  std::vector<Response> responses;  ///< In the order of the requests.
  std::size_t succeeded = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] bool complete() const noexcept { return succeeded == responses.size(); }
};

struct DownloadOptions {
  bool resume = true;  ///< Go on where FILE.part, left by an earlier run, ends.
  std::string sha256;  ///< Hexadecimal; empty: not checked.
  std::function<void(std::uint64_t bytes, std::uint64_t total)>
      progress;  ///< On the session's thread; total 0: unknown.
};

struct Download {
  Response response;
  std::uint64_t bytes = 0;         ///< Of the whole file.
  std::uint64_t resumed_from = 0;  ///< How many of them an earlier attempt had left.
  [[nodiscard]] bool ok() const noexcept { return response.ok(); }
};

class Engine;

/// A response that will come.
class Pending {
 public:
  struct State;
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// Waits for the response. Once.
  [[nodiscard]] Response get();
  [[nodiscard]] bool ready() const;
  void cancel();

 private:
  std::shared_ptr<State> state_;  // Shared with the session's thread, whichever ends first.
};

/// Responses as they finish. At most BatchOptions::window are on their way, so the caller's loop is the back-pressure.
class Results {
 public:
  using Source = std::function<std::optional<Request>()>;
  Results(Engine& engine, Source source, BatchOptions options);
  Results(Results&&) noexcept;
  Results& operator=(Results&&) noexcept;
  ~Results();  ///< Cancels what is under way and waits for it.

  /// The next response; nothing when none is under way and the source gives no more. A source that gave none is asked
  /// again by the next call.
  [[nodiscard]] std::optional<Response> next();
  /// next() would return at once.
  [[nodiscard]] bool ready() const;
  void cancel();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Session {
 public:
  explicit Session(SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Sends and waits. `request.url` is ignored by get().
  [[nodiscard]] Response get(std::string url, Request request = {});
  [[nodiscard]] Response request(Request request);
  [[nodiscard]] Pending send(Request request);

  /// All of them; responses in the order of the requests.
  [[nodiscard]] Batch gather(std::vector<Request> requests, BatchOptions options = {});
  [[nodiscard]] Results stream_of(std::vector<Request> requests, BatchOptions options = {});
  [[nodiscard]] Results stream_of(Results::Source source, BatchOptions options = {});

  /// Into `file`, by way of FILE.part and FILE.part.info, which stay when it fails and let a later call go on.
  [[nodiscard]] Download download(std::string url, const std::filesystem::path& file, DownloadOptions options = {},
                                  Request request = {});

  /// `origin` is SCHEME://HOST[:PORT]. Fails with: invalid_argument.
  Result<void> limit(std::string_view origin, OriginLimits limits);
  /// Nothing is sent to `origin` for so long. Like limit() and origins(), not for verdicts, sinks and caches: they run
  /// on the thread that would do it.
  Result<void> pause(std::string_view origin, Milliseconds time);
  [[nodiscard]] std::vector<OriginState> origins() const;
  /// `text` without the secrets of this session's requests.
  [[nodiscard]] std::string redact(std::string_view text) const;

  [[nodiscard]] Engine& engine() noexcept { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace kvingest::http
