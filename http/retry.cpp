#include "http/retry.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace kvingest::http {
namespace {

constexpr double kSecondsMax = 1e9;  // Some thirty years: a larger number is cut, so that no arithmetic overflows.

bool is_number(std::string_view text) {
  bool digit = false;
  bool point = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      digit = true;
    } else if (text[i] == '.' && !point) {
      point = true;
    } else if (text[i] != '-' || i != 0) {
      return false;
    }
  }
  return digit;
}

}  // namespace

std::optional<Milliseconds> parse_retry_after(std::string_view value, std::chrono::system_clock::time_point now) {
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  const std::string text(value);
  if (is_number(text)) {
    const double seconds = std::clamp(std::strtod(text.c_str(), nullptr), 0.0, kSecondsMax);
    return Milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  }
  const time_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  const auto left = std::chrono::system_clock::from_time_t(date) - now;
  return std::max(Milliseconds(0), std::chrono::ceil<Milliseconds>(left));
}

Kind kind_of_curl(int code, bool connected) noexcept {
  switch (code) {
    case CURLE_OK:
      return Kind::none;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return Kind::usage;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Kind::dns;
    case CURLE_COULDNT_CONNECT:
      return Kind::connect;
    case CURLE_OPERATION_TIMEDOUT:
      return connected ? Kind::total_timeout : Kind::connect_timeout;
    case CURLE_PARTIAL_FILE:
      return Kind::truncated;
    case CURLE_SSL_CONNECT_ERROR:
      return connected ? Kind::reset : Kind::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
      return Kind::tls;
    case CURLE_BAD_CONTENT_ENCODING:
      return Kind::bad_encoding;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return code == CURLE_WEIRD_SERVER_REPLY ? Kind::protocol : Kind::reset;
    default:
      return Kind::reset;  // Sending, receiving, nothing received: 52, 55, 56 and their like.
  }
}

bool is_worth_a_retry(Kind kind) noexcept {
  switch (kind) {
    case Kind::dns:
    case Kind::connect:
    case Kind::connect_timeout:
    case Kind::first_byte_timeout:
    case Kind::stalled:
    case Kind::total_timeout:
    case Kind::reset:
    case Kind::truncated:
    case Kind::bad_encoding:
    case Kind::bad_range:
      return true;
    default:
      return false;
  }
}

bool is_status_worth_a_retry(int status) noexcept {
  switch (status) {
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return status >= 520 && status <= 524;
  }
}

Milliseconds Backoff::delay(const RetryPolicy& policy, unsigned failures) {
  std::int64_t most = std::max<std::int64_t>(policy.base.count(), 1);
  for (unsigned i = 0; i < failures && most < policy.delay_max.count(); ++i) most *= 2;
  most = std::min<std::int64_t>(most, std::max<std::int64_t>(policy.delay_max.count(), 1));
  return Milliseconds(std::uniform_int_distribution<std::int64_t>(0, most)(random_));
}

}  // namespace kvingest::http
