// The control lines of FeedSession: what each asks for, and the answers.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/quantity.hpp"
#include "kvingest/codec/varint.hpp"
#include "net/feed_session.hpp"
#include "net/feed_worker.hpp"

namespace kvingest::net {
namespace {

constexpr std::size_t kSourceNameBytesMax = 128;

bool is_source_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("._:/@-").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kSourceNameBytesMax && name.front() != '@' &&
         std::all_of(name.begin(), name.end(), allowed);
}

/// The first word of `control` that is none of `known`, or empty.
std::string unknown_word(const ControlLine& control, std::initializer_list<std::string_view> known) {
  for (const ControlLine::Word& word : control.words) {
    if (std::find(known.begin(), known.end(), word.name) == known.end() || word.name.empty()) {
      return word.name.empty() ? word.value : word.name;
    }
  }
  return {};
}

/// The first message of a stream, when all of it is there.
std::optional<std::string_view> first_message(std::string_view bytes, Framing framing) {
  if (framing == Framing::newline) {
    const std::size_t end = bytes.find('\n');
    return end == std::string_view::npos ? std::nullopt : std::optional(bytes.substr(0, end));
  }
  std::uint64_t length = 0;
  const char* const message = codec::get_varint(bytes.data(), bytes.data() + bytes.size(), length);
  if (message == nullptr || length > bytes.size()) return std::nullopt;
  const auto begin = static_cast<std::size_t>(message - bytes.data());
  return length > bytes.size() - begin ? std::nullopt : std::optional(bytes.substr(begin, length));
}

}  // namespace

void FeedSession::take_control(std::string_view message, std::uint64_t offset) {
  const auto parsed = parse_control(message);
  const std::string_view verb = parsed ? std::string_view(parsed->verb) : std::string_view();
  if (verb == "hello") return take_hello(*parsed);
  greeted_ = true;
  if (verb == "sync") return take_sync(*parsed);
  if (verb == "status") return take_status();
  if (verb == "bye") return take_bye();
  // A numbered message like any other, so that data that looked like control is not lost.
  const std::string detail = parsed ? "unknown control word '" + parsed->verb + "'" : parsed.error().text;
  if (!count_message()) return;
  if (line_ <= known_lines_) {
    ++parcel_->tally.duplicate;
    return;
  }
  answer(ControlAnswer("error").add("code", "control").add("line", line_).add("message", detail));
  reject(whole_long_message(message), offset, "control", detail);
}

void FeedSession::take_sync(const ControlLine& control) {
  if (control.words.size() > 1 || (control.words.size() == 1 && !control.words[0].name.empty())) {
    return answer(
        ControlAnswer("error").add("code", "bad_sync").add("line", line_).add("message", "sync takes one tag"));
  }
  syncs_.push_back(control.words.empty() ? std::string() : control.words[0].value);
  parcel().sync = true;
  hand_over();
  parcel();
  if (const std::string reason = worker_.paused_reason(); !reason.empty() && !syncs_.empty()) paused(reason);
}

void FeedSession::answer_sync(const Parcel& parcel) {
  ControlAnswer synced("synced");
  if (!syncs_.front().empty()) synced.add("tag", syncs_.front());
  syncs_.pop_front();
  synced.add("line", settled_line_)
      .add("stored", settled_.stored)
      .add("rejected", settled_.rejected)
      .add("blank", settled_.blank)
      .add("duplicate", settled_.duplicate)
      .add("seq", parcel.on_disk_seq)
      .add("level", to_string(parcel.level));
  if (settled_.rejected > 0) synced.add("rejected_lines", rejected_lines_);
  answer(synced);
}

/// Where tokens are asked for, the first message is a hello with one that may write; until it is whole it is held, and
/// that is not for long.
bool FeedSession::check_token(std::string_view bytes) {
  const std::optional<std::string_view> first = first_message(bytes, options_.framing);
  if (!first && bytes.size() <= 2 * kControlLineBytesMax && bounded_) {
    held_.assign(bytes);
    return false;
  }
  std::optional<TokenOwner> owner;
  if (first && classify_line(*first) == LineKind::control) {
    const auto hello = parse_control(*first);
    const auto token = hello && hello->verb == "hello" ? hello->value_of("token") : std::nullopt;
    if (token) owner = options_.tokens->find(*token);
  }
  let_in_ = owner && owner->writes;
  if (let_in_) return true;
  turn_away("unauthorized", owner ? "this token may read and not feed"
                                  : "begin with: hello token=TOKEN, with a token of the service's --token-file");
  return false;
}

void FeedSession::take_hello(const ControlLine& control) {
  if (greeted_) return turn_away("late_hello", "hello is the first line, once");
  greeted_ = true;
  if (const std::string word = unknown_word(control, {"source", "from", "ack", "token"}); !word.empty()) {
    return turn_away("bad_hello", "hello does not know '" + word + "'; it takes source=, from=, ack=, token=");
  }
  const std::string source(control.value_of("source").value_or(kUnnamedSource));
  if (source != kUnnamedSource && !is_source_name(source)) {
    return turn_away("bad_source", "a name is 1 to 128 of A-Z a-z 0-9 . _ : / @ - and does not begin with @");
  }
  Hello hello;
  if (const auto from = control.value_of("from")) {
    const auto number = parse_count(*from, 1);
    if (!number || source == kUnnamedSource)
      return turn_away("bad_from", "from= takes a line number and needs source=");
    hello.from = *number;
  }
  if (const auto ack = control.value_of("ack")) {
    const auto interval = parse_duration(*ack);
    if (!interval) return turn_away("bad_ack", interval.error().text);
    ack_interval_ = *interval;
  }
  const Origin& old = *origin_;
  origin_ = std::make_shared<const Origin>(Origin{old.peer, source, old.connection, old.inbox});
  hello_ = hello;
  plain_ = records_ = false;  // What follows may be in the store already; cut() looks again.
  parcel().hello = true;
  hand_over();
  parcel();
}

/// The committer's answer to the hello.
void FeedSession::welcome(const Parcel& parcel) {
  const Hello hello = *hello_;
  if (parcel.outcome == Parcel::Outcome::refused) {
    turn_away(parcel.refusal, "the service takes no more sources (--max-sources)");
  } else if (hello.from && *hello.from > parcel.next_line) {
    turn_away("gap", fmt::format("from={} but the next line is {}", *hello.from, parcel.next_line));
  } else {
    known_lines_ = parcel.next_line - 1;
    line_ = hello.from ? *hello.from - 1 : known_lines_;
    settled_line_ = acked_line_ = line_;
    if (parcel.columns && line_ > 0) {
      if (auto columns = split_columns(*parcel.columns)) parser_.set_columns(std::move(*columns));
    }
    answer(ControlAnswer("welcome")
               .add("source", origin_->source)
               .add("next", parcel.next_line)
               .add("format", to_string(options_.plan->format()))
               .add("max_line", options_.line_bytes_max));
  }
}

void FeedSession::take_status() {
  const FeedStatus status = worker_.sink().status();
  ControlAnswer text("status");
  text.add("received", status.received)
      .add("pending", status.pending)
      .add("stored", status.stored)
      .add("durable", status.durable)
      .add("on_disk", status.on_disk)
      .add("queue_bytes", status.queue_bytes);
  if (!status.paused.empty()) text.add("paused", status.paused);
  answer(text);
}

void FeedSession::take_bye() {
  syncs_.emplace_back();
  parcel().sync = true;
  end_ = FeedEnd::peer;
  hand_over();
}

void FeedSession::paused(std::string_view reason) {
  if (reason.empty() || said_paused_ || syncs_.empty()) return;
  said_paused_ = true;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  answer(ControlAnswer("paused")
             .add("reason", reason)
             .add("since", static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count())));
}

std::optional<std::chrono::steady_clock::time_point> FeedSession::acknowledge(
    std::chrono::steady_clock::time_point now) {
  if (!ack_interval_ || settled_line_ <= acked_line_) return std::nullopt;
  const auto due = acked_at_ + *ack_interval_;
  if (acked_at_ != std::chrono::steady_clock::time_point{} && now < due) return due;
  acked_line_ = settled_line_;
  acked_at_ = now;
  answer(ControlAnswer("ack").add("line", acked_line_));
  return std::nullopt;
}

void FeedSession::answer(const ControlAnswer& text) {
  if (peer_lost_) return;
  const std::string line = text.line();
  if (options_.framing == Framing::newline) {
    output_ += line;
    return;
  }
  const std::string_view message = std::string_view(line).substr(0, line.size() - 1);
  char length[codec::kVarint64BytesMax];
  output_.append(length, static_cast<std::size_t>(codec::put_varint(length, message.size()) - length)).append(message);
}

/// Says why and ends the input. What was received before is still committed.
void FeedSession::turn_away(std::string_view code, std::string_view message) {
  if (std::exchange(turned_away_, true)) return;
  ControlAnswer error("error");
  error.add("code", code).add("line", line_);
  if (!message.empty()) error.add("message", message);
  answer(error.add("closing"));
  if (!ended()) end_ = FeedEnd::peer;
}

}  // namespace kvingest::net
