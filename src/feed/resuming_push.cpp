#include "feed/resuming_push.hpp"

#include <algorithm>
#include <thread>

#include "base/interrupt.hpp"
#include "base/log.hpp"

namespace kvingest::feed {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kBackOffFirst = 20ms;
constexpr std::chrono::milliseconds kBackOffLongest = 2s;
constexpr std::chrono::milliseconds kWelcomePatience =
    10s;  // The server may be committing what an older connection sent.
constexpr std::string_view kMendable[] = {"code=too_many_connections", "code=no_descriptors", "code=store_failed",
                                          "code=not_stored"};

/// Whether connecting again can help.
bool is_final(const std::string& errors) {
  if (errors.find(" closing") == std::string::npos) return false;
  return std::none_of(std::begin(kMendable), std::end(kMendable),
                      [&](std::string_view code) { return errors.find(code) != std::string::npos; });
}

class Push {
 public:
  Push(const PushPlan& plan, Progress& progress) : plan_(plan), progress_(progress) {}

  Result<PushResult> run() {
    auto back_off = kBackOffFirst;
    auto last_gain = Clock::now();
    while (!interrupted() && !result_.complete) {
      const std::uint64_t before = result_.durable;
      bool final = false;
      KV_TRY(attempt(final));
      if (result_.complete || final) break;
      if (result_.durable > before) {
        last_gain = Clock::now();
        back_off = kBackOffFirst;
      }
      if (Clock::now() - last_gain > plan_.patience) break;
      std::this_thread::sleep_for(back_off);
      back_off = std::min(back_off * 2, kBackOffLongest);
    }
    return std::move(result_);
  }

 private:
  /// One connection. Breaks are noted in `result_.trouble`.
  Result<void> attempt(bool& final) {
    auto stream = Stream::connect(plan_.to);
    if (!stream) {
      result_.trouble = stream.error().text;
      return {};
    }
    ++result_.connections;
    if (plan_.pace.lines_per_second > 0) stream->send_at_once();
    Answers answers(*stream);
    KV_TRY(talk(*stream, answers));
    result_.durable = std::max(result_.durable, answers.acknowledged());
    auto samples = answers.take_samples();
    result_.latency.times.insert(result_.latency.times.end(), samples.times.begin(), samples.times.end());
    if (const std::string errors = answers.errors(); !errors.empty()) {
      result_.trouble = errors;
      final = is_final(errors);
    }
    return {};
  }

  Result<void> talk(Stream& stream, Answers& answers) {
    const std::string hello = fmt::format("!kv hello source={}{}{}\n", plan_.source,
                                          plan_.ack ? fmt::format(" ack={}ms", plan_.ack->count()) : "",
                                          plan_.token.empty() ? "" : " token=" + plan_.token);
    if (!send_text(stream, hello)) return {};
    const auto next = answers.wait_for_welcome(kWelcomePatience);
    if (!next) {
      result_.trouble = "the connection ended before a welcome";
      return {};
    }
    result_.durable = std::max(result_.durable, *next - 1);
    auto lines = plan_.open();
    KV_TRY(lines);
    std::uint64_t skipped = 0;
    KV_TRY(skip(**lines, *next - 1, skipped));
    Sent sent;
    const auto on_batch = [&](std::uint64_t lines_sent, Clock::time_point due) {
      if (plan_.latency) answers.expect(skipped + lines_sent, due);
      progress_.update(answers.acknowledged());
    };
    const auto done = send_lines({&stream, 1}, **lines, plan_.pace, sent, progress_, on_batch);
    result_.sent += sent.lines;
    result_.bytes += sent.bytes;
    result_.lines = std::max(result_.lines, skipped + sent.lines);
    if (!done) {
      result_.trouble = done.error().text;
      return {};
    }
    if (interrupted()) {
      if (sent.in_line) stream.reset();
      return {};
    }
    return finish(stream, answers, skipped + sent.lines);
  }

  Result<void> finish(Stream& stream, Answers& answers, std::uint64_t lines) {
    if (!send_text(stream, "!kv sync\n")) return {};
    const auto synced = answers.wait_for_synced();
    if (!synced) {
      result_.trouble = "the connection ended before the last lines were durable";
      return {};
    }
    result_.rejected = synced->rejected;
    result_.rejected_lines = synced->rejected_lines;
    result_.durable = std::max(result_.durable, synced->line);
    result_.complete = result_.durable >= lines;
    static_cast<void>(stream.half_close());  // All is said; how the connection ends does not matter.
    return {};
  }

  bool send_text(Stream& stream, std::string_view text) {
    while (!text.empty() && !interrupted()) {
      const auto sent = stream.send_some(text);
      if (!sent) {
        result_.trouble = sent.error().text;
        return false;
      }
      text.remove_prefix(*sent);
    }
    return text.empty();
  }

  static Result<void> skip(LineSource& lines, std::uint64_t count, std::uint64_t& skipped) {
    while (skipped < count) {
      auto chunk = lines.next(count - skipped);
      KV_TRY(chunk);
      if (chunk->bytes.empty()) break;  // The source has become shorter; what is in the store stays there.
      skipped += chunk->lines;
    }
    return {};
  }

  const PushPlan& plan_;
  Progress& progress_;
  PushResult result_;
};

}  // namespace

Result<PushResult> push_source(const PushPlan& plan, Progress& progress) {
  return Push(plan, progress).run();
}

}  // namespace kvingest::feed
