#include "http/transfer.hpp"

#include <algorithm>
#include <charconv>

#include "http/retry.hpp"
#include "http/url.hpp"

namespace kvingest::http {
namespace {

constexpr std::size_t kHeadBytesMax = 256 * 1024;
constexpr std::size_t kBodyReserveMax = 1 << 20;  // What an announced length may make us hold at once.

void set(CURL* easy, CURLoption option, long value) {
  curl_easy_setopt(easy, option, value);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

Clock::time_point after(Clock::time_point from, Milliseconds bound) {
  return bound.count() == 0 ? Clock::time_point::max() : from + bound;
}

std::string header_line(const Header& header) {
  return header.value.empty() ? header.name + ";" : header.name + ": " + header.value;
}

bool has_line_end(std::string_view text) {
  return text.find_first_of("\r\n") != std::string_view::npos;
}

}  // namespace

Transfer::Transfer(EasyHandle easy, std::unique_ptr<Flight> flight, const SessionOptions& options)
    : easy_(std::move(easy)), flight_(std::move(flight)) {
  Response& response = flight_->response;
  response.status = 0;
  response.headers.clear();
  response.body.clear();
  response.error = {};
  response.from_cache = false;
  set_options(options);
  set_headers(options);
}

void Transfer::set_options(const SessionOptions& options) {
  CURL* const easy = easy_.get();
  const Request& request = flight_->request;
  curl_easy_setopt(easy, CURLOPT_URL, flight_->url.c_str());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem_.data());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Transfer::on_connected);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, this);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_NOSIGNAL, 1);
  set(easy, CURLOPT_FOLLOWLOCATION, 0);
  set(easy, CURLOPT_HTTP_CONTENT_DECODING, 0);
  set(easy, CURLOPT_TCP_KEEPALIVE, 1);
  set(easy, CURLOPT_MAXAGE_CONN, 60);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.timeout.connect.count()));
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
  const bool h1 = options.version == HttpVersion::h1;
  set(easy, CURLOPT_HTTP_VERSION, h1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS);
  // Waiting for a connection to share serialises requests to a server that cannot share one.
  set(easy, CURLOPT_PIPEWAIT, flight_->origin->protocol() == Origin::Protocol::h1 ? 0 : 1);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  if (!options.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca_file.c_str());
  if (options.proxy) curl_easy_setopt(easy, CURLOPT_PROXY, options.proxy->c_str());
  if (request.method == "HEAD") {
    set(easy, CURLOPT_NOBODY, 1);
  } else if (request.method != "GET" || !request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
  }
}

void Transfer::set_headers(const SessionOptions& options) {
  static_cast<void>(options);
  const Request& request = flight_->request;
  Headers all;
  const bool has_accept = !find_header(request.headers, "accept").empty();
  if (!has_accept) all.push_back({"Accept", "*/*"});
  const bool home = flight_->at_home(flight_->origin->name());
  const bool encoded = request.sink == nullptr && find_header(request.headers, "accept-encoding").empty();
  if (encoded) all.push_back({"Accept-Encoding", "gzip"});
  // Another origin gets nothing of the caller's own, whose headers may be keys under any name.
  if (home) all.insert(all.end(), request.headers.begin(), request.headers.end());
  const Auth& auth = request.auth;
  if (home && auth.kind == Auth::Kind::header) all.push_back({auth.name, auth.prefix + auth.secret.reveal()});
  if (home && auth.kind == Auth::Kind::bearer) all.push_back({"Authorization", "Bearer " + auth.secret.reveal()});
  if (home && auth.kind == Auth::Kind::basic) {
    curl_easy_setopt(easy_.get(), CURLOPT_USERNAME, auth.name.c_str());
    curl_easy_setopt(easy_.get(), CURLOPT_PASSWORD, auth.secret.reveal().c_str());
  }
  if (flight_->cached && home) {
    if (!flight_->cached->etag.empty()) all.push_back({"If-None-Match", flight_->cached->etag});
    if (!flight_->cached->last_modified.empty()) {
      all.push_back({"If-Modified-Since", flight_->cached->last_modified});
    }
  }
  if (request.sink != nullptr) request.sink->attempt(all);
  for (const Header& header : all) {
    if (has_line_end(header.name) || has_line_end(header.value)) continue;  // Refused when handed in.
    curl_slist* const longer = curl_slist_append(headers_.get(), header_line(header).c_str());
    if (longer == nullptr) continue;
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }
  curl_easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
}

int Transfer::on_connected(void* self, char*, char*, int, int) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.connected_ = true;
  transfer.connected_at_ = Clock::now();
  return CURL_PREREQFUNC_OK;
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  try {
    return transfer.take_header({data, size * count}) ? size * count : 0;
  } catch (const std::exception& problem) {
    transfer.stop(Kind::sink, problem.what());
    return 0;
  }
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) noexcept {
  auto& transfer = *static_cast<Transfer*>(self);
  try {
    return transfer.take_body({data, size * count}) ? size * count : 0;
  } catch (const std::exception& problem) {
    transfer.stop(Kind::sink, problem.what());
    return 0;
  }
}

bool Transfer::stop(Kind kind, std::string text) {
  stopped_.kind = kind;
  stopped_.text = std::move(text);
  return false;
}

bool Transfer::take_header(std::string_view line) {
  const auto now = Clock::now();
  Response& response = flight_->response;
  if (!first_byte_) {
    first_byte_ = true;
    response.timing.first_byte = std::chrono::duration_cast<Milliseconds>(now - flight_->started);
  }
  last_byte_at_ = now;
  head_bytes_ += line.size();
  if (head_bytes_ > kHeadBytesMax) {
    return stop(Kind::protocol, fmt::format("the head of the answer is larger than {} bytes", kHeadBytesMax));
  }
  if (line.starts_with("HTTP/")) {  // Also behind an interim answer (100, 103), whose headers are not this one's.
    response.headers.clear();
    flight_->origin->set_protocol(line.starts_with("HTTP/2") ? Origin::Protocol::h2 : Origin::Protocol::h1);
    const std::size_t space = line.find(' ');
    response.status = 0;
    if (space != std::string_view::npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), response.status);
    }
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || body_begun_) return true;  // The empty line, or a trailer.
  response.headers.push_back(
      {std::string(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1)))});
  return true;
}

bool Transfer::begin_body() {
  body_begun_ = true;
  Response& response = flight_->response;
  const Request& request = flight_->request;
  if (request.sink != nullptr) {
    const auto wanted = request.sink->begin(response.status, response.headers);
    if (!wanted) return stop(wanted.error().code == Code::corrupt ? Kind::bad_range : Kind::sink, wanted.error().text);
    to_sink_ = *wanted;
  }
  const std::uint64_t bytes_max = to_sink_ ? 0 : request.body_bytes_max;
  std::uint64_t announced = 0;
  const std::string_view length = response.header("content-length");
  std::from_chars(length.data(), length.data() + length.size(), announced);
  if (bytes_max != 0 && announced > bytes_max) {
    return stop(Kind::too_large, fmt::format("the body has {} bytes, and at most {} are taken", announced, bytes_max));
  }
  if (!to_sink_) response.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(announced, kBodyReserveMax)));
  const Kind wrong = decoder_.begin(response.header("content-encoding"), bytes_max, request.inflate_ratio_max);
  return wrong == Kind::none || stop(wrong, decoder_.problem());
}

bool Transfer::take_body(std::string_view bytes) {
  last_byte_at_ = Clock::now();
  if (!body_begun_ && !begin_body()) return false;
  const Kind wrong = decoder_.write(bytes, [this](std::string_view decoded) -> Result<void> {
    if (to_sink_) return flight_->request.sink->write(decoded);
    flight_->response.body += decoded;
    return {};
  });
  return wrong == Kind::none || stop(wrong, decoder_.problem());
}

Clock::time_point Transfer::due() const {
  const Timeouts& bounds = flight_->request.timeout;
  const auto total = after(flight_->started, bounds.total);
  if (!connected_) return std::min(total, after(flight_->started, bounds.connect));
  if (!first_byte_) return std::min(total, after(connected_at_, bounds.first_byte));
  return std::min(total, after(last_byte_at_, bounds.idle));
}

std::optional<Error> Transfer::timed_out(Clock::time_point now) const {
  if (due() > now) return std::nullopt;
  const Timeouts& bounds = flight_->request.timeout;
  const auto error = [](Kind kind, std::string_view what, Milliseconds bound) {
    return Error{kind, 0, fmt::format("{} within {} ms", what, bound.count()), std::nullopt};
  };
  if (after(flight_->started, bounds.total) <= now) return error(Kind::total_timeout, "not complete", bounds.total);
  if (!connected_) return error(Kind::connect_timeout, "not connected", bounds.connect);
  if (!first_byte_) return error(Kind::first_byte_timeout, "no answer", bounds.first_byte);
  return error(Kind::stalled, "the answer stalled: no byte", bounds.idle);
}

void Transfer::finish(CURLcode code) {
  Response& response = flight_->response;
  if (code == CURLE_OK && !body_begun_ && !begin_body()) code = CURLE_WRITE_ERROR;
  const bool announced = !response.header("content-length").empty() || !response.header("transfer-encoding").empty();
  const bool framed = flight_->origin->protocol() == Origin::Protocol::h2;
  const bool compressed = !response.header("content-encoding").empty();  // Its own end is checked.
  response.proven_whole = announced || framed || compressed;
  if (stopped_.kind != Kind::none) {
    response.error = std::move(stopped_);
  } else if (code != CURLE_OK) {
    response.error.kind = kind_of_curl(code, connected_);
    response.error.curl_code = code;
    response.error.text = problem_[0] != '\0' ? problem_.data() : curl_easy_strerror(code);
  } else if (const Kind wrong = decoder_.finish(); wrong != Kind::none) {
    response.error.kind = wrong;
    response.error.text = decoder_.problem();
  }
}

EasyHandle Transfer::take_easy() {
  curl_easy_reset(easy_.get());
  return std::move(easy_);
}

}  // namespace kvingest::http
