#include "net/feed_session.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "net/feed_worker.hpp"
#include "net/first_bytes.hpp"

namespace kvingest::net {
namespace {

using Cutter = std::variant<LineCutter, VarintCutter>;

/// A control line may be longer than a message; take_data() holds messages to their own limit.
Cutter make_cutter(const FeedOptions& options) {
  const std::size_t bytes_max = std::max(options.line_bytes_max, kControlLineBytesMax);
  return options.framing == Framing::varint ? Cutter(std::in_place_type<VarintCutter>, bytes_max)
                                            : Cutter(std::in_place_type<LineCutter>, bytes_max);
}

std::uint64_t wall_clock_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

bool uses_time(const RecordPlan& plan) {
  return plan.key().contains(TextTemplate::Kind::time) ||
         (!plan.whole_message() && plan.value().contains(TextTemplate::Kind::time));
}

}  // namespace

FeedSession::FeedSession(FeedWorker& worker, std::string peer, std::uint64_t connection, FeedRole role)
    : worker_(worker),
      options_(worker.options()),
      role_(role),
      origin_(
          std::make_shared<const Origin>(Origin{std::move(peer), std::string(kUnnamedSource), connection, &worker})),
      cutter_(make_cutter(options_)),
      parser_(*options_.plan),
      uses_time_(uses_time(*options_.plan)),
      strip_cr_(options_.framing == Framing::newline && !options_.plan->keep_cr()),
      plain_bytes_max_(options_.line_bytes_max),
      stop_bytes_(stop_line().empty() ? std::numeric_limits<std::size_t>::max() / 2 : stop_line().size()),
      recognized_(role == FeedRole::pulled || !options_.control_lines || options_.framing != Framing::newline),
      let_in_(role == FeedRole::pulled || options_.tokens == nullptr) {}

void FeedSession::take(std::string_view bytes) {
  if (bytes.empty() && held_.empty()) return;
  parcel().bytes += bytes.size();
  if (uses_time_) now_ns_ = wall_clock_ns();
  if (!held_.empty() || !cutting()) {
    held_.append(bytes);
    if (!cutting()) return;
    const std::string all = std::exchange(held_, {});
    cut(all);
    return;
  }
  cut(bytes);
}

void FeedSession::cut(std::string_view bytes) {
  if (!recognized_ && !check_first_bytes(bytes)) return;
  if (!let_in_ && !check_token(bytes)) return;
  const bool fresh = !options_.take_leave && line_ >= known_lines_;
  plain_ = fresh && options_.plan->whole_line_by_seq();
  records_ = fresh && !plain_ && !header_is_due();
  const std::size_t used = std::visit([&](auto& cutter) { return cutter.cut(bytes, *this); }, cutter_);
  count_plain_lines();
  if (!ended() && used < bytes.size()) held_.assign(bytes.substr(used));
  if (std::visit([](const auto& cutter) { return cutter.broken(); }, cutter_) && !ended()) {
    turn_away("bad_frame", "a length that is no varint of at most 64 bits");
  }
}

/// Whether the stream is known to be a feed; while that is open its first bytes are held.
bool FeedSession::check_first_bytes(std::string_view& bytes) {
  std::string_view name;
  switch (recognize(bytes)) {
    case FirstBytes::undecided:
      held_.assign(bytes);
      return false;
    case FirstBytes::lines:
      recognized_ = true;
      return true;
    case FirstBytes::http:
      name = "HTTP";
      break;
    case FirstBytes::tls:
      name = "TLS";
      break;
    case FirstBytes::telnet:
      name = "telnet";
      break;
    case FirstBytes::resp:
      name = "RESP (Redis)";
      break;
  }
  turn_away("wrong_protocol",
            fmt::format("this looks like {}; here kvingest takes text lines{}", name, options_.places));
  return false;
}

void FeedSession::end_turn() {
  hand_over();
  bound_unfinished();
}

/// A last message that is not complete: of a named source it is forgotten, since it will be sent again.
void FeedSession::end(bool properly, FeedEnd why) {
  if (ended()) return;
  bounded_ = false;                   // Nothing more comes, and what is held has to go somewhere.
  if (!held_.empty() && cutting()) {  // First bytes that never became a pattern are data.
    recognized_ = true;
    cut(std::exchange(held_, {}));
    if (ended()) return;
  }
  if (!origin_->named() && !waits_for_welcome()) {
    parcel();
    if (properly && options_.framing == Framing::newline) {
      if (std::visit([](const auto& cutter) { return cutter.unfinished_bytes(); }, cutter_) > 0)
        parcel_->unterminated = 1;
      std::visit([&](auto& cutter) { cutter.finish(*this); }, cutter_);
    } else {
      struct Truncated {
        FeedSession& session;
        bool line(std::string_view message, std::uint64_t offset) const {
          return long_line(whole_long_message(message), offset);
        }
        bool long_line(const LongMessage& message, std::uint64_t offset) const {
          if (session.count_message()) session.reject(message, offset, "truncated", "the connection ended inside it");
          return false;
        }
      } truncated{*this};
      std::visit([&](auto& cutter) { cutter.finish(truncated); }, cutter_);
    }
  }
  if (!ended()) end_ = why;
  held_.clear();
  hand_over();
  worker_.change_unfinished(-static_cast<std::ptrdiff_t>(std::exchange(carried_counted_, 0)));
}

void FeedSession::lose_peer() {
  peer_lost_ = true;
  output_.clear();
}

/// What the fast path put into the batch gets its numbers: before any other message is looked at, and after the last.
void FeedSession::count_plain_lines() {
  if (plain_lines_ == 0) return;
  greeted_ = true;
  line_ += plain_lines_;
  parcel_->last_line = line_;
  parcel_->tally.received += plain_lines_;
  parcel_->tally.stored += std::exchange(plain_lines_, 0);
}

/// Nearly every message becomes a record: then there is nothing more to look at. Others take the long way.
bool FeedSession::take_parsed(std::string_view message, std::uint64_t offset) {
  const std::string_view data = strip_cr_ ? without_cr(message) : message;
  if (parser_.add(data, now_ns_, origin_->source, parcel_->batch).outcome != Outcome::stored) [[unlikely]]
    return take_line(message, offset);
  ++plain_lines_;
  return !(bounded_ && parcel_is_full());
}

bool FeedSession::take_line(std::string_view message, std::uint64_t offset) {
  count_plain_lines();
  if (!message.empty() && message.front() == '!' && options_.control_lines) {
    const LineKind kind = classify_line(message);
    if (kind == LineKind::control) {
      take_control(message, offset);
      return cutting();
    }
    if (kind == LineKind::escaped) message.remove_prefix(1);
  }
  return take_data(message, offset);
}

bool FeedSession::long_line(const LongMessage& message, std::uint64_t offset) {
  count_plain_lines();
  greeted_ = true;
  if (!count_message()) return false;
  if (line_ > known_lines_) {
    reject(message, offset, "too_long",
           fmt::format("{} bytes; at most {} (--max-line)", message.length, options_.line_bytes_max));
  }
  return cutting();
}

bool FeedSession::take_data(std::string_view message, std::uint64_t offset) {
  if (message.size() > options_.line_bytes_max) return long_line(whole_long_message(message), offset);
  greeted_ = true;
  const std::string& stop = stop_line();
  if (!stop.empty() && without_cr(message) == stop) {
    end_ = FeedEnd::stop_line;
    return false;
  }
  if (!count_message()) return false;
  if (options_.framing == Framing::newline && !options_.plan->keep_cr()) message = without_cr(message);
  if (line_ <= known_lines_) {
    take_duplicate(message);
    return true;
  }
  if (options_.plan->whole_line_by_seq() && !message.empty()) {
    parcel_->batch.put_next(message);
    ++parcel_->tally.stored;
    return true;
  }
  take_record(message, offset);
  return cutting();
}

void FeedSession::take_record(std::string_view message, std::uint64_t offset) {
  const bool had_columns = !parser_.columns().empty();
  const Verdict verdict = parse(message, parcel_->batch);
  switch (verdict.outcome) {
    case Outcome::stored:
      ++parcel_->tally.stored;
      break;
    case Outcome::blank:
      ++parcel_->tally.blank;
      break;
    case Outcome::rejected:
      if (verdict.reason == "header_changed" && !std::exchange(said_header_changed_, true)) {
        answer(ControlAnswer("error").add("code", verdict.reason).add("line", line_).add("message", verdict.detail));
      }
      reject(whole_long_message(message), offset, verdict.reason, verdict.detail);
      break;
  }
  if (!had_columns && verdict.outcome == Outcome::blank && !parser_.columns().empty())
    parcel_->columns = join_columns(parser_.columns());
}

/// What may be a header is held against what all headers of the store have to say.
Verdict FeedSession::parse(std::string_view message, WriteBatch& batch) {
  return header_is_due() ? options_.agreed_columns->add(parser_, message, now_ns_, origin_->source, batch)
                         : parser_.add(message, now_ns_, origin_->source, batch);
}

/// A line that is in the store already. A header sent again is still read, since the lines behind it need it.
void FeedSession::take_duplicate(std::string_view message) {
  if (line_ == 1 && options_.plan->header()) {
    WriteBatch nothing;
    static_cast<void>(parse(message, nothing));
  }
  ++parcel_->tally.duplicate;
}

/// Gives the next message its number; false when no more messages may be taken.
bool FeedSession::count_message() {
  if (options_.take_leave && options_.take_leave(1) == 0) {
    end_ = FeedEnd::stopped;
    return false;
  }
  parcel_->last_line = ++line_;
  ++parcel_->tally.received;
  return true;
}

void FeedSession::reject(const LongMessage& message, std::uint64_t offset, std::string_view reason,
                         std::string_view detail) {
  ++parcel_->tally.rejected;
  if (rejected_listed_ < kRejectedLinesMax) {
    rejected_lines_ += (rejected_listed_++ > 0 ? "," : "") + std::to_string(line_);
  }
  parcel_->add_reject({.peer = origin_->peer,
                       .source = origin_->source,
                       .line = line_,
                       .offset = offset,
                       .reason = std::string(reason),
                       .detail = std::string(detail),
                       .length = message.length,
                       .checksum = message.checksum,
                       .bytes = std::string(message.kept)});
  if (options_.strict && !ended())
    turn_away("rejected", fmt::format("line {}: {}: {} (--strict)", line_, reason, detail));
}

Parcel& FeedSession::parcel() {
  if (!parcel_) parcel_ = worker_.new_parcel();
  return *parcel_;
}

void FeedSession::hand_over() {
  if (!parcel_) return;
  count_plain_lines();
  if (parcel_->bytes > 0 || parcel_->tally.received > 0) {
    worker_.sink().count_received(parcel_->tally.received, std::exchange(parcel_->bytes, 0));
  }
  if (parcel_->empty()) {
    worker_.recycle(std::move(parcel_));
    return;
  }
  parcel_->origin = origin_;
  ++outstanding_;
  if (auto back = worker_.sink().submit(std::move(parcel_))) {
    answered(*back);
    worker_.recycle(std::move(back));
  }
}

void FeedSession::answered(const Parcel& parcel) {
  KV_ASSERT(outstanding_ > 0);
  --outstanding_;
  settled_ += parcel.tally;
  if (parcel.outcome == Parcel::Outcome::dropped) {
    superseded();
    if (parcel.sync) syncs_.pop_front();  // Not answered: what it asks for is not in the store.
    return;
  }
  settled_line_ = std::max(settled_line_, parcel.last_line);
  const bool given_up = parcel.outcome == Parcel::Outcome::given_up;
  if (given_up || parcel.outcome == Parcel::Outcome::failed) {
    if (given_up) {
      turn_away("not_stored", "kvingest stops while the store takes no writes; send the unanswered lines again");
    } else {
      turn_away("store_failed", "");
    }
    syncs_.clear();
    hello_.reset();
    return;
  }
  said_paused_ = false;
  if (parcel.hello) {
    if (!ended()) welcome(parcel);
    hello_.reset();
  }
  if (parcel.sync) answer_sync(parcel);
}

void FeedSession::superseded() {
  turn_away("superseded", "a newer connection has said hello for this source");
}

/// Keeps the memory of all unfinished messages within its budget: the one that goes beyond it is given up.
void FeedSession::bound_unfinished() {
  const auto count = [this] {
    const std::size_t carried = std::visit([](const auto& cutter) { return cutter.carried_bytes(); }, cutter_);
    const auto change = static_cast<std::ptrdiff_t>(carried) - static_cast<std::ptrdiff_t>(carried_counted_);
    carried_counted_ = carried;
    return worker_.change_unfinished(change);
  };
  if (count() <= options_.unfinished_bytes_max || carried_counted_ <= kLongMessageKeptBytes) return;
  std::visit([](auto& cutter) { cutter.give_up_message(); }, cutter_);
  count();
}

const std::string& FeedSession::stop_line() const noexcept {
  return role_ == FeedRole::pulled ? options_.connect_stop_line : options_.listen_stop_line;
}

}  // namespace kvingest::net
