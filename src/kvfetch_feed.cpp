#include "kvfetch_feed.hpp"

#include <charconv>

namespace kvingest::kvfetch {
namespace {

constexpr std::size_t kSendBytes = 256 * 1024;

/// The number behind ` NAME=` in an answer.
std::uint64_t number_in(std::string_view answer, std::string_view name) {
  const std::string wanted = " " + std::string(name) + "=";
  const std::size_t at = answer.find(wanted);
  std::uint64_t value = 0;
  if (at != answer.npos) {
    std::from_chars(answer.data() + at + wanted.size(), answer.data() + answer.size(), value);
  }
  return value;
}

}  // namespace

Result<std::unique_ptr<FeedTarget>> FeedTarget::connect(const feed::Address& address, Store& state,
                                                        std::stop_token stop) {
  auto stream = feed::Stream::connect(address);
  if (!stream) return fail(stream.error(), "--into tcp://{} (is kvingest listening there?)", address.text());
  return std::unique_ptr<FeedTarget>(new FeedTarget(*std::move(stream), state, std::move(stop)));
}

Result<void> FeedTarget::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = stream_.send_some(bytes);
    KV_TRY(sent);
    bytes.remove_prefix(*sent);
    if (*sent == 0 && stop_.stop_requested()) return fail(Code::busy, "stopped before kvingest took the records");
  }
  return {};
}

Result<std::string> FeedTarget::read_line() {
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    char buffer[4096];
    const auto got = stream_.receive(buffer, sizeof buffer);
    KV_TRY(got);
    if (got->ended) return fail(Code::io_error, "kvingest closed the connection before it answered");
    unread_.append(buffer, got->bytes);
    if (got->bytes == 0 && stop_.stop_requested()) return fail(Code::busy, "stopped before kvingest answered");
  }
}

Result<void> FeedTarget::wait_for_sync(const std::string& tag) {
  while (true) {
    const auto line = read_line();
    KV_TRY(line);
    if (line->starts_with("!kv error")) return fail(Code::failed, "kvingest answered: {}", *line);
    if (!line->starts_with("!kv synced") || line->find("tag=" + tag) == std::string::npos) continue;
    const std::uint64_t rejected = number_in(*line, "rejected");
    if (rejected > rejected_) {
      return fail(Code::invalid_argument,
                  "kvingest rejected {} of the records: run it with --format json and a --key of fields that they have",
                  rejected - rejected_);
    }
    return {};
  }
}

Result<void> FeedTarget::commit(std::span<const fetch::Record* const> records, const fetch::Notes& notes) {
  std::string lines;
  for (const fetch::Record* record : records) {
    lines += record->json;
    lines += '\n';
    if (lines.size() < kSendBytes) continue;
    KV_TRY(send(lines));
    lines.clear();
  }
  if (!records.empty()) {
    const std::string tag = "f" + std::to_string(++syncs_);
    KV_TRY(send(lines + "!kv sync " + tag + "\n"));
    KV_TRY(wait_for_sync(tag));
  }
  return notes_.commit({}, notes);
}

}  // namespace kvingest::kvfetch
