#include "net/resp_store_commands.hpp"

#include <algorithm>
#include <charconv>

#include "net/resp_session.hpp"
#include "record/key_prefix.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kPageRows = 1'000;  // What one scan of a store walks, as all callers have it.
constexpr std::size_t kPageBytes = std::size_t{1} << 20;
constexpr std::int64_t kScanCountMax = 10'000;  // COUNT is a hint.
constexpr std::string_view kNoOrder = "ERR this store keeps no order: it cannot be scanned";

struct ScanRequest {
  std::uint64_t cursor = 0;
  std::optional<std::string> pattern;
  std::size_t count = 10;
  bool strings = true;  // TYPE asks for what there is.
  int version = 2;
};

/// Reads SCAN's words; the text of the error where they are wrong.
std::string read_scan(Words words, ScanRequest& request) {
  const std::string_view cursor = words[1];
  const auto [end, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), request.cursor);
  if (cursor.empty() || error != std::errc() || end != cursor.data() + cursor.size()) return "ERR invalid cursor";
  for (std::size_t i = 2; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return std::string(kSyntaxError);
    const std::string option = lower_case(words[i]);
    if (option == "match") {
      request.pattern = words[i + 1];
    } else if (option == "type") {
      request.strings = same_word(words[i + 1], "string");
    } else if (option == "count") {
      std::int64_t count = 0;
      if (!parse_integer(words[i + 1], count)) return std::string(kNotAnInteger);
      if (count < 1) return std::string(kSyntaxError);
      request.count = static_cast<std::size_t>(std::min(count, kScanCountMax));
    } else {
      return std::string(kSyntaxError);
    }
  }
  return {};
}

/// The keys behind `after`, up to the request's count, and the next cursor.
std::string scan_answer(const Store& store, ScanCursors& cursors, const ScanRequest& request,
                        const std::optional<std::string>& after) {
  const std::string prefix = request.pattern ? glob_prefix(*request.pattern) : std::string();
  const std::optional<std::string> last = end_of_prefix(prefix);
  std::optional<std::string> first;
  if (!prefix.empty()) first = prefix;
  if (after && (!first || *first <= *after)) first = *after + '\0';
  std::vector<std::string> keys;
  std::string reached;
  std::size_t walked = 0;
  std::size_t bytes = 0;
  bool more = false;
  Range range{.first = first, .last = last};
  Result<std::size_t> rows = 0;
  if (!first || !last || *first < *last) {
    rows = store.scan(range, [&](std::string_view key, std::string_view value) {
      more = walked == request.count || bytes > kPageBytes;
      if (more) return false;
      ++walked;
      bytes += key.size() + value.size();
      reached = key;
      if (request.strings && (!request.pattern || glob_match(*request.pattern, key))) keys.emplace_back(key);
      return true;
    });
  }
  std::string text;
  RespWriter to(text, request.version);
  if (!rows) {
    to.error(error_text(rows.error()));
    return text;
  }
  to.array(2);
  to.bulk(std::to_string(more ? cursors.keep(reached) : 0));
  to.array(keys.size());
  for (const std::string& key : keys) to.bulk(key);
  return text;
}

/// The key that a cursor stands for, looked for among all keys; nothing where it is gone.
Result<std::optional<std::string>> find_cursor(const Store& store, std::uint64_t cursor) {
  std::optional<std::string> found;
  std::optional<std::string> first;
  while (true) {
    std::string reached;
    const auto rows =
        store.scan(Range{.first = first, .limit = kPageRows}, [&](std::string_view key, std::string_view) {
          reached = key;
          if (cursor_of(key) == cursor) found = key;
          return !found;
        });
    KV_TRY(rows);
    if (found || *rows < kPageRows) return found;
    first = std::move(reached) + '\0';
  }
}

/// Reads KV.RANGE's words; the text of the error where they are wrong.
std::string read_range(Words words, const RespOptions& options, RangeRequest& request) {
  if (!words[1].empty()) request.first = range_key(words[1], options.seq_keys);
  if (!words[2].empty()) request.last = range_key(words[2], options.seq_keys);
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (same_word(words[i], "rev")) {
      request.reverse = true;
    } else if (same_word(words[i], "limit") && i + 1 < words.size()) {
      std::int64_t limit = 0;
      if (!parse_integer(words[++i], limit) || limit < 0) return std::string(kNotAnInteger);
      request.limit = static_cast<std::uint64_t>(limit);
    } else {
      return std::string(kSyntaxError);
    }
  }
  return {};
}

}  // namespace

std::string range_answer(const Store& store, const RangeRequest& request, int version) {
  std::string rows;
  RespWriter row(rows, version);
  std::optional<std::string> first = request.first;
  std::optional<std::string> last = request.last;
  std::uint64_t passed = 0;
  std::string text;
  RespWriter to(text, version);
  while (passed < request.limit && (!first || !last || *first < *last)) {
    const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(kPageRows, request.limit - passed));
    const Range range{.first = first, .last = last, .reverse = request.reverse, .limit = limit};
    std::string reached;
    const std::size_t before = rows.size();
    const auto page = store.scan(request.space, range, [&](std::string_view key, std::string_view value) {
      row.bulk(key);
      row.bulk(value);
      reached = key;
      return rows.size() - before < kPageBytes && rows.size() <= kReplyBytesMax;
    });
    if (!page) {
      to.error(error_text(page.error()));
      return text;
    }
    passed += *page;
    if (rows.size() > kReplyBytesMax && passed > 1) {
      to.error(kTooLargeReply);
      return text;
    }
    if (request.page || (*page < limit && rows.size() - before < kPageBytes)) break;
    if (request.reverse) {
      last = std::move(reached);
    } else {
      first = std::move(reached) + '\0';
    }
  }
  to.array(2 * static_cast<std::size_t>(passed));
  return text + rows;
}

void run_scan(RespSession& session, Words words) {
  const RespOptions& options = session.host().options();
  ScanRequest request{.version = session.reply().version()};
  if (!options.ordered) return session.error(kNoOrder);
  if (const std::string problem = read_scan(words, request); !problem.empty()) return session.error(problem);
  ScanCursors& cursors = session.host().cursors();
  const auto after = request.cursor == 0 ? std::nullopt : cursors.find(request.cursor);
  if (request.cursor == 0 || after) {
    session.output() += scan_answer(*options.store, cursors, request, after);
    return;
  }
  session.run_aside([&store = *options.store, &cursors, request = std::move(request)]() -> std::string {
    const auto found = find_cursor(store, request.cursor);
    if (found) return scan_answer(store, cursors, request, *found);
    std::string text;
    RespWriter(text, request.version).error(error_text(found.error()));
    return text;
  });
}

void run_range(RespSession& session, Words words) {
  const RespOptions& options = session.host().options();
  RangeRequest request;
  if (!options.ordered) return session.error(kNoOrder);
  if (const std::string problem = read_range(words, options, request); !problem.empty()) return session.error(problem);
  const int version = session.reply().version();
  if (request.limit <= kPageRows) {
    session.output() += range_answer(*options.store, request, version);
    return;
  }
  session.run_aside([&store = *options.store, request = std::move(request), version] {
    return range_answer(store, request, version);
  });
}

void run_dbsize(RespSession& session, Words) {
  session.run_aside([&store = *session.host().options().store, version = session.reply().version()] {
    const auto count = store.count();
    std::string text;
    RespWriter to(text, version);
    count ? to.count(*count) : to.error(error_text(count.error()));
    return text;
  });
}

}  // namespace kvingest::net
