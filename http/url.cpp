#include "http/url.hpp"

#include <curl/curl.h>

#include <memory>

#include "http/curl_init.hpp"

namespace kvingest::http {
namespace {

struct UrlCloser {
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using UrlHandle = std::unique_ptr<CURLU, UrlCloser>;

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return text;
}

Result<UrlHandle> parse(std::string_view url) {
  init_curl();
  UrlHandle handle(curl_url());
  if (!handle) return fail(Code::io_error, "no memory for an URL");
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, std::string(url).c_str(), 0);
  if (code != CURLUE_OK) return fail(Code::invalid_argument, "no URL: {}", curl_url_strerror(code));
  const std::string scheme = lower(part(handle.get(), CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https") {
    return fail(Code::invalid_argument, "scheme '{}': only http and https are spoken", scheme);
  }
  return handle;
}

}  // namespace

Result<std::string> origin_of(std::string_view url) {
  const auto handle = parse(url);
  KV_TRY(handle);
  return lower(part(handle->get(), CURLUPART_SCHEME)) + "://" + lower(part(handle->get(), CURLUPART_HOST)) + ":" +
         part(handle->get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

std::string with_params(std::string_view url, const Params& params) {
  std::string whole(url.substr(0, url.find('#')));
  bool has_query = whole.find('?') != std::string::npos;
  for (const auto& [name, value] : params) {
    if (!has_query) {
      whole += '?';
    } else if (whole.back() != '?' && whole.back() != '&') {
      whole += '&';
    }
    has_query = true;
    whole += percent_encoded(name) + "=" + percent_encoded(value);
  }
  return whole;
}

Result<std::string> resolved(std::string_view base, std::string_view location) {
  const auto handle = parse(base);
  KV_TRY(handle);
  const CURLUcode code = curl_url_set(handle->get(), CURLUPART_URL, std::string(location).c_str(), 0);
  if (code != CURLUE_OK) return fail(Code::invalid_argument, "no URL: {}", curl_url_strerror(code));
  std::string whole = part(handle->get(), CURLUPART_URL);
  KV_TRY(origin_of(whole));
  return whole;
}

Result<std::string> moved_to(std::string_view url, std::string_view origin) {
  const auto handle = parse(url);
  KV_TRY(handle);
  const auto target = parse(origin);
  KV_TRY(target);
  for (const CURLUPart which : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT}) {
    const std::string value = part(target->get(), which);
    curl_url_set(handle->get(), which, value.empty() ? nullptr : value.c_str(), 0);
  }
  return part(handle->get(), CURLUPART_URL);
}

std::string password_in(std::string_view url) {
  const auto handle = parse(url);
  return handle ? part(handle->get(), CURLUPART_PASSWORD, CURLU_URLDECODE) : std::string();
}

std::string query_value(std::string_view url, std::string_view name) {
  const auto handle = parse(url);
  if (!handle) return {};
  const std::string query = part(handle->get(), CURLUPART_QUERY);
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (one.substr(0, equals) != name || equals == std::string_view::npos) continue;
    std::string value(one.substr(equals + 1));
    int bytes = 0;
    char* decoded = curl_easy_unescape(nullptr, value.c_str(), static_cast<int>(value.size()), &bytes);
    if (decoded == nullptr) return {};
    value.assign(decoded, static_cast<std::size_t>(bytes));
    curl_free(decoded);
    return value;
  }
  return {};
}

}  // namespace kvingest::http
