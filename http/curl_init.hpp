// curl_init.hpp -- libcurl's one global initialization, done before its first use in this process.
//
// Threads: any.
#pragma once

namespace kvingest::http {

void init_curl();

}  // namespace kvingest::http
