// The commands that concern one connection.
#include <algorithm>

#include "net/resp_session.hpp"

namespace kvingest::net {
namespace {

using Clock = std::chrono::steady_clock;

/// What names and versions of clients may hold, as Redis has it: nothing that would break a line of CLIENT LIST.
bool is_plain(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

constexpr std::string_view kNoPassword =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration "
    "is correct?";
constexpr std::string_view kWrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";
constexpr std::string_view kBadName = "ERR Client names cannot contain spaces, newlines or special characters.";

}  // namespace

void RespSession::quit() {
  reply().ok();
  end();
}

void RespSession::reset() {
  transaction_.reset();
  version_ = 2;
  name_.clear();
  if (host_.options().tokens != nullptr && !local_) {
    owner_.reset();
    parser_.limit(RespLimits::of_stranger());
  }
  reply().simple("RESET");
}

void RespSession::hello(Words words) {
  int version = version_;
  std::string name = name_;
  std::size_t at = 1;
  if (words.size() > 1) {
    std::int64_t wanted = 0;
    if (!parse_integer(words[at++], wanted)) return error("ERR Protocol version is not an integer or out of range");
    if (wanted < 2 || wanted > 3) return error("NOPROTO unsupported protocol version");
    version = static_cast<int>(wanted);
  }
  for (; at < words.size(); ++at) {
    if (same_word(words[at], "auth") && at + 2 < words.size()) {
      if (host_.options().tokens == nullptr) return error(kNoPassword);
      if (!log_in(words.subspan(at + 1, 2))) return error(kWrongPassword);
      at += 2;
    } else if (same_word(words[at], "setname") && at + 1 < words.size()) {
      name = words[++at];
      if (!is_plain(name)) return error(kBadName);
    } else {
      return error(fmt::format("ERR Syntax error in HELLO option '{}'", words[at]));
    }
  }
  if (!owner_) {
    return error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
        "<user> <pass> option can be used to authenticate the client and select the RESP protocol version at "
        "the same time");
  }
  version_ = version;
  name_ = std::move(name);
  RespWriter to = reply();
  to.map(7);
  to.bulk("server");
  to.bulk("kvingest");
  to.bulk("version");
  to.bulk("7.0.0");  // Of Redis, whose commands these are.
  to.bulk("proto");
  to.integer(version_);
  to.bulk("id");
  to.count(id_);
  to.bulk("mode");
  to.bulk("standalone");
  to.bulk("role");
  to.bulk("master");
  to.bulk("modules");
  to.array(0);
}

void RespSession::auth(Words words) {
  if (words.size() > 3) return error(kSyntaxError);
  if (host_.options().tokens == nullptr) return error(kNoPassword);
  if (log_in(words.subspan(1))) return reply().ok();
  error(kWrongPassword);
}

/// `words`: a token, or a name and its token. Redis' clients call the owner of a lone password "default".
bool RespSession::log_in(Words words) {
  const bool named = words.size() == 2 && words[0] != "default";
  auto owner = host_.options().tokens->find(words.back(), named ? std::optional(words[0]) : std::nullopt);
  if (!owner) return false;
  let_in(*std::move(owner));
  return true;
}

std::string RespSession::client_line() const {
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - since_).count();
  return fmt::format("id={} addr={} name={} age={} db=0 multi={} resp={} cmd={}\n", id_, peer_, name_, age,
                     transaction_ ? static_cast<std::int64_t>(transaction_->commands.size()) : -1, version_,
                     last_command_);
}

void RespSession::client(Words words) {
  const std::string word = lower_case(words[1]);
  RespWriter to = reply();
  if (word == "id" && words.size() == 2) return to.count(id_);
  if (word == "getname" && words.size() == 2) return name_.empty() ? to.null() : to.bulk(name_);
  if (word == "info" && words.size() == 2) return to.verbatim(client_line());
  if (word == "list") return to.verbatim(client_line());
  if (word == "setname" && words.size() == 3) {
    if (!is_plain(words[2])) return error(kBadName);
    name_ = words[2];
    return to.ok();
  }
  if (word == "setinfo" && words.size() == 4) {
    const bool known = same_word(words[2], "lib-name") || same_word(words[2], "lib-ver");
    if (!known) return error(fmt::format("ERR Unrecognized option '{}'", words[2]));
    return is_plain(words[3]) ? to.ok()
                              : error(fmt::format("ERR {} cannot contain spaces, newlines or special "
                                                  "characters.",
                                                  lower_case(words[2])));
  }
  if ((word == "no-evict" || word == "no-touch") && words.size() == 3) return to.ok();
  error(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT ID, GETNAME, SETNAME, "
                  "SETINFO, INFO or LIST.",
                  words[1]));
}

void RespSession::admin(Words words) {
  if (!host_.options().admin) return error("ERR KV.ADMIN is not served here");
  run_aside([&options = host_.options(), local = local_, version = version_,
             list = std::vector<std::string>(words.begin() + 1, words.end())]() -> std::string {
    std::string text;
    RespWriter to(text, version);
    const auto done = options.admin(list, local, to);
    if (done) return text;
    text.clear();
    to.error(error_text(done.error()));
    return text;
  });
}

// ---- KV.TAIL

std::optional<Clock::time_point> RespSession::tail_until() const noexcept {
  return tail_ ? tail_->until : std::nullopt;
}

void RespSession::tail(Words words) {
  constexpr std::int64_t kCountMax = 1'000;
  const RespOptions& options = host_.options();
  if (!options.ordered || !options.seq_in_key.leads()) {
    return error("ERR KV.TAIL follows arrival numbers, so it needs a store whose keys begin with {seq}");
  }
  Tail tail{.seq = host_.sink().status().stored, .count = 100};
  std::int64_t number = 0;
  if (parse_integer(words[1], number) && number >= 0) {
    tail.seq = static_cast<std::uint64_t>(number);
  } else if (words[1] != "$") {
    return error("ERR KV.TAIL begins after an arrival number, or at $ for now");
  }
  bool blocks = false;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return error(kSyntaxError);
    if (!parse_integer(words[i + 1], number) || number < 0) return error(kNotAnInteger);
    if (same_word(words[i], "count")) {
      tail.count = static_cast<std::size_t>(std::clamp<std::int64_t>(number, 1, kCountMax));
    } else if (same_word(words[i], "block")) {
      constexpr std::int64_t kBlockMsMax = std::int64_t{1} << 40;  // What a clock can be put forward by.
      blocks = true;
      if (number > 0) tail.until = Clock::now() + std::chrono::milliseconds(std::min(number, kBlockMsMax));
    } else {
      return error(kSyntaxError);
    }
  }
  if (answer_tail(tail)) return;
  if (!blocks) return reply().null_array();
  tail_ = std::make_unique<Tail>(tail);
}

/// Answers with the records behind tail.seq: the last number, and the entries. False where there are none.
bool RespSession::answer_tail(Tail& tail) {
  const RespOptions& options = host_.options();
  const std::string first = options.seq_in_key.first_key(tail.seq + 1);
  const std::string last = options.seq_in_key.end_key();
  std::string rows;
  RespWriter row(rows, version_);
  std::size_t count = 0;
  const Range range{.first = first, .last = last, .limit = 10 * tail.count};
  const auto walked = options.store->scan(range, [&](std::string_view key, std::string_view value) {
    const auto seq = options.seq_in_key.find(key);
    if (!seq) return true;  // Written by a client, between the feed's keys.
    tail.seq = *seq;
    row.bulk(key);
    row.bulk(value);
    return ++count < tail.count && rows.size() < kOutputBytesMax;
  });
  if (!walked) {
    error(error_text(walked.error()));
    return true;
  }
  if (count == 0) return false;
  RespWriter to = reply();
  to.array(2);
  to.count(tail.seq);
  to.array(2 * count);
  output_ += rows;
  return true;
}

void RespSession::tail_again(Clock::time_point now) {
  if (!tail_) return;
  const bool late = tail_->until && *tail_->until <= now;
  const bool answered = answer_tail(*tail_);
  if (!answered && !late) return;
  if (!answered) reply().null_array();
  tail_.reset();
}

}  // namespace kvingest::net
