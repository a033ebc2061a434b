#include "http/load/noted_cache.hpp"

#include <array>

namespace kvingest::fetch {
namespace {

constexpr std::size_t kKeptBytesMax = std::size_t{4} << 20;

}  // namespace

std::optional<http::CacheEntry> NotedCache::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = offered_.find(key);
  return found == offered_.end() ? std::nullopt : std::optional(found->second);
}

void NotedCache::put(std::string_view key, const http::CacheEntry& entry) {
  if (entry.body.size() > kKeptBytesMax) return;
  const std::lock_guard lock(mutex_);
  fresh_.insert_or_assign(std::string(key), entry);
}

// The note is the URL, ETag, Last-Modified and Content-Type, a line each, and the body. None of them holds a line end.
void NotedCache::offer(std::string_view note) {
  std::array<std::string, 4> lines;
  for (std::string& line : lines) {
    const std::size_t end = note.find('\n');
    if (end == note.npos) return;
    line = note.substr(0, end);
    note.remove_prefix(end + 1);
  }
  const std::lock_guard lock(mutex_);
  offered_.insert_or_assign(lines[0], http::CacheEntry{lines[1], lines[2], lines[3], std::string(note)});
}

std::optional<std::string> NotedCache::take(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto node = fresh_.extract(key);
  if (node.empty()) return std::nullopt;
  const http::CacheEntry& entry = node.mapped();
  return key + "\n" + entry.etag + "\n" + entry.last_modified + "\n" + entry.content_type + "\n" + entry.body;
}

}  // namespace kvingest::fetch
