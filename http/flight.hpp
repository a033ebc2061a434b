// flight.hpp -- a request from when it is handed in until its response is handed out.
//
// Threads: made by the caller, then the session's thread alone.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "http/rate_limit.hpp"
#include "kvingest/http_client.hpp"

namespace kvingest::http {

class Origin;

struct Flight {
  Request request;
  std::function<void(Response)> done;  ///< Called once, on the session's thread.

  std::string url;   ///< What the next attempt asks; redirects change it.
  std::string home;  ///< The origin that may see the request's secrets.
  Origin* origin = nullptr;
  unsigned redirects = 0;

  Clock::time_point submitted;
  Clock::time_point first_start;
  Clock::time_point started;  ///< The present attempt.
  unsigned attempts = 0;
  std::optional<CacheEntry> cached;
  std::string cache_key;

  Response response;      ///< Of the present or last attempt.
  std::stop_token batch;  ///< Of the batch it is part of.
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  std::optional<std::stop_callback<std::function<void()>>> on_batch_stop;

  [[nodiscard]] bool at_home(const std::string& present) const { return present == home; }
  [[nodiscard]] bool is_cancelled() const { return request.stop.stop_requested() || batch.stop_requested(); }
};

}  // namespace kvingest::http
