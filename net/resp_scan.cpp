#include "net/resp_scan.hpp"

#include <xxhash.h>

#include <algorithm>

namespace kvingest::net {
namespace {

/// Matches one byte against the set at the front of `pattern`, behind its '['; takes the set off.
bool match_set(std::string_view& pattern, unsigned char byte) noexcept {
  const bool inverted = pattern.starts_with('^');
  if (inverted) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() > 1) {
      pattern.remove_prefix(1);
      found = found || static_cast<unsigned char>(pattern.front()) == byte;
      pattern.remove_prefix(1);
    } else if (pattern.size() > 2 && pattern[1] == '-') {
      const auto [least, most] =
          std::minmax({static_cast<unsigned char>(pattern[0]), static_cast<unsigned char>(pattern[2])});
      found = found || (byte >= least && byte <= most);
      pattern.remove_prefix(3);
    } else {
      found = found || static_cast<unsigned char>(pattern.front()) == byte;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);  // A set that is not closed goes to the end.
  return found != inverted;
}

/// Takes the front of `pattern`, which is no '*', and holds it against `byte`.
bool match_one(std::string_view& pattern, char byte) noexcept {
  const char first = pattern.front();
  pattern.remove_prefix(1);
  if (first == '?') return true;
  if (first == '[') return match_set(pattern, static_cast<unsigned char>(byte));
  if (first != '\\' || pattern.empty()) return first == byte;
  const char escaped = pattern.front();
  pattern.remove_prefix(1);
  return escaped == byte;
}

}  // namespace

// Only the last '*' is ever tried again: what an earlier one could take instead, the last one can, too.
bool glob_match(std::string_view pattern, std::string_view text) noexcept {
  std::string_view after_star;
  std::string_view retry_text;
  bool has_star = false;
  while (!text.empty()) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      retry_text = text;
      has_star = true;
      if (pattern.empty()) return true;
      continue;
    }
    if (!pattern.empty() && match_one(pattern, text.front())) {
      text.remove_prefix(1);
      continue;
    }
    if (!has_star) return false;
    retry_text.remove_prefix(1);
    text = retry_text;
    pattern = after_star;
  }
  while (pattern.starts_with('*')) pattern.remove_prefix(1);
  return pattern.empty();
}

std::string glob_prefix(std::string_view pattern) {
  std::string prefix;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char byte = pattern[i];
    if (byte == '*' || byte == '?' || byte == '[') break;
    if (byte == '\\' && i + 1 < pattern.size()) ++i;
    prefix += pattern[i];
  }
  return prefix;
}

std::uint64_t cursor_of(std::string_view key) noexcept {
  const std::uint64_t hash = XXH3_64bits(key.data(), key.size()) >> 12U;
  return std::max<std::uint64_t>(hash, 1);
}

std::optional<std::string> ScanCursors::find(std::uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  const auto at = keys_.find(cursor);
  if (at == keys_.end()) return std::nullopt;
  return at->second;
}

std::uint64_t ScanCursors::keep(std::string_view key) {
  const std::uint64_t cursor = cursor_of(key);
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = keys_.try_emplace(cursor, key);
  if (!fresh) {
    at->second = key;
    return cursor;
  }
  order_.push_back(cursor);
  if (order_.size() > kKeptMax) {
    keys_.erase(order_.front());
    order_.pop_front();
  }
  return cursor;
}

}  // namespace kvingest::net
