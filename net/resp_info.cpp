// INFO and CONFIG GET: the service as monitoring and redis-cli ask for it.
#include <algorithm>
#include <set>
#include <vector>

#include "net/resp_scan.hpp"
#include "net/resp_session.hpp"
#include "net/resp_store_commands.hpp"

namespace kvingest::net {
namespace {

/// The text under one heading.
struct Section {
  std::string_view name;
  std::string lines;

  void add(std::string_view key, std::string_view value) { lines += fmt::format("{}:{}\r\n", key, value); }
  void add(std::string_view key, std::uint64_t value) { lines += fmt::format("{}:{}\r\n", key, value); }
};

std::string info_text(const RespOptions& options, const FeedStatus& status, const std::set<std::string>& wanted) {
  std::vector<Section> sections{{"Server", {}},    {"Clients", {}}, {"Persistence", {}},
                                {"Ingestion", {}}, {"Store", {}},   {"Keyspace", {}}};
  sections[0].add("redis_version", "7.0.0");
  sections[0].add("redis_mode", "standalone");
  for (const auto& [name, value] : options.facts) sections[0].add(name, value);
  sections[1].add("connected_clients", options.clients ? options.clients() : 0);
  sections[2].add("loading", 0);
  sections[2].add("stored", status.stored);
  sections[2].add("durable", status.durable);
  sections[2].add("on_disk", status.on_disk);
  sections[3].add("received", status.received);
  sections[3].add("pending", status.pending);
  sections[3].add("queue_bytes", status.queue_bytes);
  sections[3].add("paused", status.paused);
  options.store->stats([&](std::string_view name, std::uint64_t value) { sections[4].add(name, value); });
  const auto asked = [&](std::string_view name) {
    return wanted.empty() || wanted.contains("all") || wanted.contains("default") || wanted.contains("everything") ||
           wanted.contains(lower_case(name));
  };
  if (asked(sections[5].name)) {  // It may walk the store.
    if (const auto count = options.store->count(); count && *count > 0) {
      sections[5].add("db0", fmt::format("keys={},expires=0,avg_ttl=0", *count));
    }
  }
  std::string text;
  for (const Section& section : sections) {
    if (!asked(section.name)) continue;
    if (!text.empty()) text += "\r\n";
    text += fmt::format("# {}\r\n{}", section.name, section.lines);
  }
  return text;
}

}  // namespace

void run_info(RespSession& session, Words words) {
  std::set<std::string> wanted;
  for (const std::string_view word : words.subspan(1)) wanted.insert(lower_case(word));
  session.run_aside([&options = session.host().options(), status = session.host().sink().status(),
                     wanted = std::move(wanted), version = session.reply().version()] {
    std::string text;
    RespWriter(text, version).verbatim(info_text(options, status, wanted));
    return text;
  });
}

void answer_config(Words words, const RespOptions& options, RespWriter& to) {
  if (!same_word(words[1], "get")) {
    return to.error(
        fmt::format("ERR CONFIG {} is not supported: settings are given when kvingest is started", words[1]));
  }
  if (words.size() < 3) return to.error("ERR wrong number of arguments for 'config|get' command");
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < options.settings.size(); ++i) {
    const bool asked = std::ranges::any_of(words.subspan(2), [&](std::string_view pattern) {
      return glob_match(lower_case(pattern), options.settings[i].first);
    });
    if (asked) found.push_back(i);
  }
  to.map(found.size());
  for (const std::size_t i : found) {
    to.bulk(options.settings[i].first);
    to.bulk(options.settings[i].second);
  }
}

}  // namespace kvingest::net
