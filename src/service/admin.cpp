#include "service/admin.hpp"

#include <charconv>

#include "net/resp_store_commands.hpp"

namespace kvingest {
namespace {

Result<Space> space_of(std::string_view word) {
  if (net::same_word(word, "records")) return Space::records;
  if (net::same_word(word, "meta")) return Space::meta;
  return fail(Code::invalid_argument, "KV.ADMIN: '{}' is neither records nor meta", word);
}

}  // namespace

const Admin::Row Admin::kRows[8] = {
    {"marker", 1, false, &Admin::marker}, {"count", 1, false, &Admin::count},    {"get", 3, false, &Admin::get},
    {"range", 6, false, &Admin::range},   {"stats", 1, false, &Admin::stats},    {"verify", 1, false, &Admin::verify},
    {"backup", 2, true, &Admin::backup},  {"compact", 1, true, &Admin::compact},
};

Result<void> Admin::run(const std::vector<std::string>& words, bool local, net::RespWriter& to) const {
  for (const Row& row : kRows) {
    if (!net::same_word(words[0], row.word)) continue;
    if (words.size() != row.words) {
      return fail(Code::invalid_argument, "KV.ADMIN {} takes {} words, not {}", words[0], row.words - 1,
                  words.size() - 1);
    }
    if (row.local && !local) {
      return fail(Code::invalid_argument, "KV.ADMIN {} writes files, and is served through DIR/control.sock only",
                  words[0]);
    }
    return (this->*row.run)(words, to);
  }
  return fail(Code::invalid_argument,
              "KV.ADMIN {}: known are MARKER, COUNT, GET, RANGE, STATS, VERIFY, BACKUP and COMPACT", words[0]);
}

Result<void> Admin::marker(const std::vector<std::string>&, net::RespWriter& to) const {
  to.array(4);
  to.bulk(marker_.engine);
  to.count(marker_.format_version);
  to.bulk(marker_.created);
  to.array(2 * marker_.labels.size());
  for (const auto& [name, value] : marker_.labels) {
    to.bulk(name);
    to.bulk(value);
  }
  return {};
}

Result<void> Admin::count(const std::vector<std::string>&, net::RespWriter& to) const {
  const auto records = store_.count();
  KV_TRY(records);
  to.count(*records);
  return {};
}

Result<void> Admin::get(const std::vector<std::string>& words, net::RespWriter& to) const {
  const auto space = space_of(words[1]);
  KV_TRY(space);
  const auto found = store_.get(*space, words[2], [&](std::string_view value) { to.bulk(value); });
  KV_TRY(found);
  if (!*found) to.null();
  return {};
}

Result<void> Admin::range(const std::vector<std::string>& words, net::RespWriter& to) const {
  const auto space = space_of(words[1]);
  KV_TRY(space);
  net::RangeRequest request{.space = *space, .reverse = net::same_word(words[5], "rev"), .page = true};
  if (!words[2].empty()) request.first = words[2];
  if (!words[3].empty()) request.last = words[3];
  std::int64_t limit = 0;
  if (!net::parse_integer(words[4], limit) || limit < 0 || (!request.reverse && !net::same_word(words[5], "fwd"))) {
    return fail(Code::invalid_argument, "KV.ADMIN RANGE: '{} {}' is no limit with FWD or REV", words[4], words[5]);
  }
  request.limit = static_cast<std::uint64_t>(limit);
  to.text() += net::range_answer(store_, request, to.version());
  return {};
}

Result<void> Admin::stats(const std::vector<std::string>&, net::RespWriter& to) const {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  store_.stats([&](std::string_view name, std::uint64_t value) { all.emplace_back(name, value); });
  to.array(2 * all.size());
  for (const auto& [name, value] : all) {
    to.bulk(name);
    to.count(value);
  }
  return {};
}

Result<void> Admin::verify(const std::vector<std::string>&, net::RespWriter& to) const {
  const auto report = store_.verify();
  KV_TRY(report);
  to.array(3);
  to.count(report->records);
  to.count(report->bytes_checked);
  to.bulk(report->torn_tail);
  return {};
}

Result<void> Admin::backup(const std::vector<std::string>& words, net::RespWriter& to) const {
  KV_TRY(store_.backup(words[1]));
  to.ok();
  return {};
}

Result<void> Admin::compact(const std::vector<std::string>&, net::RespWriter& to) const {
  KV_TRY(committer_.while_at_rest([](Store& store) { return store.compact(); }));
  to.ok();
  return {};
}

}  // namespace kvingest
