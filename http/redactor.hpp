// redactor.hpp -- takes secrets out of texts that people, logs and files get to see.
//
// It knows the secrets themselves, as they are and percent-encoded, so it finds them wherever a server echoes them.
//
// Threads: any.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace kvingest::http {

class Redactor {
 public:
  /// An empty secret is none.
  void add(std::string_view secret);
  [[nodiscard]] std::string redacted(std::string_view text) const;
  /// Whether a secret stands in `text`.
  [[nodiscard]] bool found_in(std::string_view text) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> secrets_;  // Guarded by mutex_.
};

}  // namespace kvingest::http
