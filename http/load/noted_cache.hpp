// noted_cache.hpp -- answers kept among the notes of a job, so that a span that is not settled yet is asked about and
// not fetched again where it has not changed. One answer for each series, and only for such a span.
//
// Threads: get() and put() on the session's, the rest on the job's.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "kvingest/http_client.hpp"

namespace kvingest::fetch {

class NotedCache final : public http::Cache {
 public:
  std::optional<http::CacheEntry> get(std::string_view key) override;
  void put(std::string_view key, const http::CacheEntry& entry) override;

  /// Takes what an earlier run noted. What cannot be read is as if it were not there: it is fetched.
  void offer(std::string_view note);
  /// The note for the answer that came under `key`; nothing where none came that may be kept.
  [[nodiscard]] std::optional<std::string> take(const std::string& key);

 private:
  std::mutex mutex_;
  std::map<std::string, http::CacheEntry, std::less<>> offered_;  // Guarded by mutex_, as is the next one.
  std::map<std::string, http::CacheEntry, std::less<>> fresh_;
};

}  // namespace kvingest::fetch
