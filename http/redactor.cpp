#include "http/redactor.hpp"

#include "http/url.hpp"

namespace kvingest::http {

void Redactor::add(std::string_view secret) {
  if (secret.empty()) return;
  const std::lock_guard lock(mutex_);
  secrets_.emplace(secret);
  secrets_.insert(percent_encoded(secret));
}

std::string Redactor::redacted(std::string_view text) const {
  std::string clean(text);
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets_) {
    for (std::size_t at = clean.find(secret); at != std::string::npos; at = clean.find(secret, at + 3)) {
      clean.replace(at, secret.size(), "***");
    }
  }
  return clean;
}

bool Redactor::found_in(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  for (const std::string& secret : secrets_) {
    if (text.find(secret) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace kvingest::http
