// kvfeed -- the mock server, load generator and replayer: sends lines to whoever connects (--listen), or to a kvingest
// (--connect). src/feed/ makes and sends the lines; this file is the program around it.
//
// Threads: one, pinned with --cpu.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/cli.hpp"
#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "base/port_file.hpp"
#include "base/progress.hpp"
#include "base/thread.hpp"
#include "feed/line_source.hpp"
#include "feed/resuming_push.hpp"
#include "feed/sender.hpp"
#include "feed/tcp.hpp"

namespace kvingest {
namespace {

constexpr std::string_view kStopLine = "STOP";
constexpr std::uint64_t kMessagesDefault = 1'000'000;
constexpr std::uint64_t kBatchLinesMax = 1'000'000;
constexpr std::uint64_t kIntervalUsMax = 60'000'000;
constexpr std::uint64_t kRateMax = 1'000'000'000;
constexpr std::uint64_t kConnectionsMax = 10'000;
constexpr std::chrono::milliseconds kAckDefault{100};

struct Settings {
  std::optional<std::string> listen;
  std::optional<std::string> connect;
  std::optional<std::uint64_t> messages;
  std::string message = "Benchmark Message {n}";
  bool ticks = false;
  std::uint64_t seed = 1;
  std::optional<std::string> file;
  bool no_control = false;
  std::uint64_t batch = 256;
  std::uint64_t interval_us = 0;
  std::uint64_t rate = 0;
  std::uint64_t connections = 1;
  std::optional<std::string> source;
  std::optional<std::string> token;
  std::optional<std::string> ack;
  std::chrono::milliseconds retry_for{60'000};
  bool latency = false;
  std::optional<int> cpu;
  std::optional<std::string> port_file;
  bool json = false;
  bool quiet = false;
};

void declare(cli::Command& options, Settings& s) {
  options.text("listen", &s.listen, "HOST:PORT", "serve one client here, and end with the line STOP").own_variable();
  options.text("connect", &s.connect, "HOST:PORT", "push to a kvingest here, and wait until it has made all durable")
      .own_variable();
  options.number("messages", &s.messages, "N", "how many lines to send (default 1000000; all of a file)")
      .own_variable();
  options.text("message", &s.message, "TEXT", "what to send; {n} is the line's number, from 0");
  options.flag("ticks", &s.ticks, "send synthetic trades, symbol,ts_ns,price,size");
  options.number("seed", &s.seed, "N", "which trades: each seed has its own");
  options.text("file", &s.file, "FILE", "send the lines of a file, - being stdin");
  options.flag("no-control", &s.no_control,
               "the other side has --no-control, too: no ! is put before data like `!kv x`");
  options.number("batch", &s.batch, "N", "lines a send", 1, kBatchLinesMax);
  options.number("interval-us", &s.interval_us, "U", "microseconds to sleep after each batch", 0, kIntervalUsMax);
  options.number("rate", &s.rate, "N", "lines a second, open loop; 0: as fast as they are taken", 0, kRateMax);
  options.number("connections", &s.connections, "N", "push over so many connections, a batch to each in turn", 1,
                 kConnectionsMax);
  options.text("source", &s.source, "NAME",
               "push exactly once under this name: go on after a break where the store says");
  options.text(
      "ack", &s.ack, "T|none",
      "with --source: ask to be told what is durable at most so often (default 100ms; with --latency at once)");
  options.text("token", &s.token, "TOKEN", "with --source: says who feeds; better in the environment, KVFEED_TOKEN")
      .own_variable()
      .hide_value();
  options.duration("retry-for", &s.retry_for, "with --source: give up when nothing became durable for so long");
  options.flag("latency", &s.latency, "with --source: report times from the intended send to durable");
  options.number("cpu", &s.cpu, "C", "pin to this CPU").own_variable();
  options.text("port-file", &s.port_file, "FILE", "write `feed HOST:PORT` to this file once listening").own_variable();
  options.flag("json", &s.json, "print the result as one JSON object");
  options.flag("quiet", &s.quiet, "no progress");
}

/// What is wrong with the options together, or nothing.
std::string conflict(const Settings& s) {
  if (s.listen.has_value() == s.connect.has_value()) return "give either --listen or --connect";
  if (s.ticks && s.file) return "--ticks and --file exclude each other";
  if (s.rate > 0 && s.interval_us > 0) return "--rate and --interval-us exclude each other";
  if (s.port_file && !s.listen) return "--port-file needs --listen";
  if (s.connections > 1 && !s.connect) return "--connections needs --connect";
  if (s.connections > 1 && s.source) return "--connections and --source exclude each other: a source has one";
  if (s.token && !s.source) return "--token needs --source, whose hello says it";
  if (s.ack && !s.source) return "--ack needs --source, whose lines are acknowledged";
  if (s.ack == "none" && s.latency) return "--latency needs acknowledgements, and --ack none asks for none";
  if (s.source && !s.connect) return "--source needs --connect";
  if (s.source && s.file == "-") return "--source needs lines that can be read again; stdin cannot";
  if (s.source && s.no_control) return "--source needs control lines, and --no-control says there are none";
  if (s.latency && !s.source) return "--latency needs --source, whose lines are acknowledged";
  if (s.message.find('\n') != std::string::npos) return "--message must be one line";
  return {};
}

Result<std::unique_ptr<feed::LineSource>> open_source(const Settings& s) {
  const auto control_like = s.no_control ? feed::ControlLike::keep : feed::ControlLike::escape;
  if (s.file) {
    const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    return feed::file_lines(*s.file, s.messages.value_or(all), control_like);
  }
  const std::uint64_t count = s.messages.value_or(kMessagesDefault);
  return s.ticks ? feed::trade_lines(s.seed, count) : feed::numbered_lines(s.message, count, control_like);
}

/// Listens, says where, and waits for the client. Nothing after an interrupt.
Result<std::optional<feed::Stream>> wait_for_client(const Settings& s, const feed::Address& at) {
  auto listener = feed::Listener::listen(at);
  KV_TRY(listener);
  auto place = listener->address();
  KV_TRY(place);
  if (s.port_file) KV_TRY(write_port_file(*s.port_file, std::array{ListenerPlace{"feed", *place}}));
  if (!s.quiet) log_info("listening on {}", *place);
  while (!interrupted()) {
    auto client = listener->accept();
    KV_TRY(client);
    if (*client) return client;
  }
  return std::nullopt;
}

/// None after an interrupt.
Result<std::vector<feed::Stream>> open_connections(const Settings& s, const feed::Address& address) {
  std::vector<feed::Stream> streams;
  if (s.listen) {
    auto client = wait_for_client(s, address);
    KV_TRY(client);
    if (*client) streams.push_back(**std::move(client));
    return streams;
  }
  while (streams.size() < s.connections && !interrupted()) {
    auto stream = feed::Stream::connect(address);
    if (!stream && stream.error().sys_errno == ECONNREFUSED) stream.error().text += " (is kvingest listening there?)";
    KV_TRY(stream);
    streams.push_back(*std::move(stream));
  }
  return streams;
}

/// How often to ask for acknowledgements; nothing: never.
Result<std::optional<std::chrono::milliseconds>> ack_interval(const Settings& s) {
  if (!s.ack) return s.latency ? std::chrono::milliseconds(0) : kAckDefault;
  if (s.ack == "none") return std::nullopt;
  auto interval = parse_duration(*s.ack);
  if (!interval) return fail(std::move(interval).error(), "--ack");
  return *interval;
}

/// One run and what came of it.
class Run {
 public:
  explicit Run(const Settings& settings) : s_(settings) {}

  /// The exit code.
  int operator()(const feed::Address& address, feed::LineSource& source) {
    auto connections = open_connections(s_, address);
    if (!connections) return complain(connections.error());
    return interrupted() ? cli::kInterrupted : run_on(*connections, source);
  }

 private:
  int run_on(std::span<feed::Stream> streams, feed::LineSource& source) {
    // Paced lines are to arrive when they are due; unpaced ones travel in full packets.
    if (s_.rate > 0 || s_.interval_us > 0) {
      for (const feed::Stream& stream : streams) stream.send_at_once();
    }

    const auto start = std::chrono::steady_clock::now();
    const auto done = send(streams, source);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const int exit_code = done ? outcome() : complain(done.error());
    if (interrupted() && sent_.in_line) {  // Half a line must not look like a whole one.
      for (feed::Stream& stream : streams) stream.reset();
    }
    print_result(exit_code);
    return exit_code;
  }

  Result<void> send(std::span<feed::Stream> to, feed::LineSource& source) {
    Progress progress(s_.quiet ? nullptr : stderr, "sent", s_.file ? 0 : s_.messages.value_or(kMessagesDefault));
    const feed::Pace pace{s_.batch, std::chrono::microseconds(s_.interval_us), s_.rate};
    KV_TRY(feed::send_lines(to, source, pace, sent_, progress));
    if (interrupted()) return {};
    if (s_.listen) {
      KV_TRY(feed::send_stop(to.front(), kStopLine));
      return feed::finish_serving(to.front(), sent_, progress);
    }
    for (const feed::Stream& stream : to) KV_TRY(stream.half_close());
    for (feed::Stream& stream : to) {
      auto farewell = feed::finish_push(stream, sent_, progress);
      KV_TRY(farewell);
      errors_ += farewell->errors;
    }
    return {};
  }

  [[nodiscard]] int outcome() const {
    if (interrupted()) {
      log_warning("interrupted after {} lines", sent_.lines);
      return cli::kInterrupted;
    }
    if (errors_.empty()) return cli::kDone;
    log_error("the server answered: {}", errors_);
    return cli::kIncomplete;
  }

  [[nodiscard]] int complain(const Error& error) const {
    log_error("{}; sent {} lines, {} bytes", error.text, sent_.lines, sent_.bytes);
    return cli::kIncomplete;
  }

  void print_result(int exit_code) const {
    const double rate = seconds_ > 0 ? static_cast<double>(sent_.lines) / seconds_ : 0;
    if (s_.json) {
      JsonWriter json;
      json.begin_object().field("sent", sent_.lines).field("bytes", sent_.bytes).field("seconds", seconds_);
      json.field("messages_per_second", rate).field("complete", exit_code == cli::kDone).end_object();
      fmt::print("{}\n", json.text());
    } else {
      fmt::print("sent {}  bytes {}  seconds {:.3f}  messages/second {:.0f}\n", sent_.lines, sent_.bytes, seconds_,
                 rate);
    }
  }

  const Settings& s_;
  feed::Sent sent_;
  std::string errors_;  // Of all connections.
  double seconds_ = 0;
};

/// The p-th part of sorted times, in microseconds.
double percentile_us(const std::vector<std::chrono::nanoseconds>& sorted, double p) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1));
  return std::chrono::duration<double, std::micro>(sorted[at]).count();
}

void print_push(const Settings& s, const feed::PushResult& done, double seconds) {
  auto times = done.latency.times;
  std::sort(times.begin(), times.end());
  if (s.json) {
    JsonWriter json;
    json.begin_object().field("sent", done.sent).field("bytes", done.bytes).field("durable", done.durable);
    json.field("rejected", done.rejected).field("rejected_lines", done.rejected_lines);
    json.field("connections", done.connections).field("seconds", seconds);
    if (s.latency) {
      json.key("latency_us").begin_object().field("samples", times.size());
      for (const auto& [name, p] :
           {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1.0}}) {
        json.field(name, percentile_us(times, p));
      }
      json.end_object();
    }
    json.field("complete", done.complete).end_object();
    fmt::print("{}\n", json.text());
    return;
  }
  fmt::print("sent {}  durable {}  rejected {}{}  connections {}  bytes {}  seconds {:.3f}\n", done.sent, done.durable,
             done.rejected, done.rejected_lines.empty() ? "" : " (lines " + done.rejected_lines + ")", done.connections,
             done.bytes, seconds);
  if (s.latency) {
    fmt::print("send to durable, us: p50 {:.0f}  p90 {:.0f}  p99 {:.0f}  p99.9 {:.0f}  max {:.0f}  samples {}\n",
               percentile_us(times, 0.5), percentile_us(times, 0.9), percentile_us(times, 0.99),
               percentile_us(times, 0.999), percentile_us(times, 1.0), times.size());
  }
}

/// Pushes a named source; the exit code.
int push_named(const Settings& s, const feed::Address& address, std::optional<std::chrono::milliseconds> ack) {
  const feed::PushPlan plan{.to = address,
                            .source = *s.source,
                            .token = s.token.value_or(""),
                            .open = [&s] { return open_source(s); },
                            .pace = {s.batch, std::chrono::microseconds(s.interval_us), s.rate},
                            .patience = s.retry_for,
                            .ack = ack,
                            .latency = s.latency};
  const auto start = std::chrono::steady_clock::now();
  Progress progress(s.quiet ? nullptr : stderr, "durable", s.file ? 0 : s.messages.value_or(kMessagesDefault));
  const auto done = feed::push_source(plan, progress);
  progress.clear();
  if (!done) {
    log_error("{}", done.error().text);
    return cli::kIncomplete;
  }
  print_push(s, *done, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (done->complete) return cli::kDone;
  if (interrupted()) return cli::kInterrupted;
  log_error("not all lines are durable: {}", done->trouble);
  return cli::kIncomplete;
}

int run_kvfeed(int argc, char** argv) {
  Settings settings;
  cli::CommandLine line("kvfeed",
                        "Sends a text feed: numbered messages, synthetic trades or a file, as lines over TCP.");
  declare(line.root(), settings);
  line.example("--connect 127.0.0.1:5555 --file data.csv", "sends a file and waits until all of it is stored");
  line.example("--connect 127.0.0.1:5555 --ticks --messages 1000000 --rate 50000", "sends trades at a steady rate");
  line.example("--listen 127.0.0.1:5556 --messages 1000000", "waits for kvingest --connect and sends numbered lines");
  if (const auto ending = line.parse(argc, argv, environ)) return cli::print(*ending);
  if (const std::string wrong = conflict(settings); !wrong.empty()) return cli::print(line.usage_error(wrong));
  const auto address = feed::Address::parse(settings.listen ? *settings.listen : settings.connect.value_or(""));
  if (!address) return cli::print(line.usage_error(address.error().text));

  const auto ack = ack_interval(settings);
  if (!ack) return cli::print(line.usage_error(ack.error().text));

  log_to_stderr("kvfeed", LogLevel::info);
  catch_interrupts();
  if (settings.cpu) {
    const auto pinned = pin_this_thread(*settings.cpu);
    if (!pinned && pinned.error().code == Code::invalid_argument)
      return cli::print(line.usage_error("--cpu: " + pinned.error().text));
    if (!pinned) {
      log_error("{}", pinned.error().text);
      return cli::kIncomplete;
    }
  }
  auto source = open_source(settings);
  if (!source) {
    log_error("{}", source.error().text);
    return cli::kIncomplete;
  }
  if (settings.source) return push_named(settings, *address, *ack);
  return Run(settings)(*address, **source);
}

}  // namespace
}  // namespace kvingest

int main(int argc, char** argv) {
  return kvingest::cli::finish_results(kvingest::run_kvfeed(argc, argv));
}
