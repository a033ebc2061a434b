#include "http/curl_init.hpp"

#include <curl/curl.h>

#include "base/check.hpp"

namespace kvingest::http {

void init_curl() {
  // Never undone: other code of the process may use libcurl, too.
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  KV_ASSERT(done == CURLE_OK);
}

}  // namespace kvingest::http
