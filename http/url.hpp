// url.hpp -- what a client has to know about URLs: their origin, their parts, what they become.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "kvingest/http_client.hpp"
#include "kvingest/result.hpp"

namespace kvingest::http {

/// "scheme://host:port", in lower case, with the port always there. Fails with: invalid_argument (no http URL).
[[nodiscard]] Result<std::string> origin_of(std::string_view url);

/// Every byte but letters, digits and -._~ as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text);

/// `url` with `params` behind its query and before its fragment, which is dropped.
[[nodiscard]] std::string with_params(std::string_view url, const Params& params);

/// What `location` means on the page `base`. Fails with: invalid_argument.
[[nodiscard]] Result<std::string> resolved(std::string_view base, std::string_view location);

/// `url` with the scheme, host and port of `origin`. Fails with: invalid_argument.
[[nodiscard]] Result<std::string> moved_to(std::string_view url, std::string_view origin);

/// The password in `url`, decoded; empty where there is none.
[[nodiscard]] std::string password_in(std::string_view url);

/// The value of a query parameter, decoded; empty where there is none.
[[nodiscard]] std::string query_value(std::string_view url, std::string_view name);

}  // namespace kvingest::http
