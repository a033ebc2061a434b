#include "bench/ingest_run.hpp"

#include <simdjson.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "base/interrupt.hpp"
#include "bench/read_back.hpp"

namespace kvingest::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReadyMax{60'000};
/// How often a running child's memory is looked at: often enough to see a peak, seldom enough not to be one.
constexpr milliseconds kLookEvery{10};
/// The slowest row that is still waited for.
constexpr std::uint64_t kSlowestPerSecond = 20'000;

/// What a receiver prints when it ends; of kvingest, its ledger.
struct Printed {
  std::uint64_t received = 0;
  std::uint64_t stored = 0;
  double seconds = 0;
  std::string level;
};

Result<Printed> read_printed(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  Printed printed;
  std::string_view level;
  const bool good = parser.parse(text).get(json) == simdjson::SUCCESS &&
                    json["received"].get(printed.received) == simdjson::SUCCESS &&
                    json["seconds"].get(printed.seconds) == simdjson::SUCCESS;
  if (!good) return fail(Code::io_error, "the receiver printed no result: '{}'", text);
  if (json["stored"].get(printed.stored) != simdjson::SUCCESS) printed.stored = 0;  // Bounds store nothing.
  if (json["level"].get(level) == simdjson::SUCCESS) printed.level = level;
  return printed;
}

/// One run in progress.
class IngestRun {
 public:
  IngestRun(const IngestSetup& setup, const IngestCase& what, const std::filesystem::path& dir)
      : setup_(setup), what_(what), dir_(dir) {}

  Result<IngestMeasurement> operator()() {
    auto receiver = Child::start(receiver_command(), dir_, what_.workload());
    KV_TRY(receiver);
    double cpu_before = 0;
    if (what_.kind != IngestKind::seek_write) {
      KV_TRY(receiver->wait_for_file(ports(), kReadyMax));
      cpu_before = receiver->cpu_seconds();
      KV_TRY(feed_all(*receiver));
      if (what_.kind == IngestKind::store) receiver->signal(SIGTERM);
    }
    KV_TRY(wait_for(*receiver, *receiver));
    auto usage = receiver->usage();
    KV_TRY(usage);
    auto printed = read_printed(receiver->output());
    KV_TRY(printed);
    KV_TRY(check(*printed));
    return measurement(*printed, *usage, cpu_before);
  }

 private:
  [[nodiscard]] std::filesystem::path ports() const { return dir_ / "ports"; }
  [[nodiscard]] std::filesystem::path store_dir() const { return dir_ / "db"; }
  [[nodiscard]] std::string program(const char* name) const { return (setup_.programs / name).string(); }
  [[nodiscard]] std::uint64_t message_count() const {
    return what_.messages != 0 ? what_.messages : setup_.settings.messages;
  }
  [[nodiscard]] std::string messages() const { return std::to_string(message_count()); }

  [[nodiscard]] std::vector<std::string> receiver_command() const {
    const std::string cpu = std::to_string(setup_.placement.ingest);
    switch (what_.kind) {
      case IngestKind::discard:
        return {program("kvbench"), "discard", "--port-file", ports().string(), "--cpu", cpu};
      case IngestKind::seek_write:
        return {program("kvbench"), "seek-write", "--file", (dir_ / "records").string(),
                "--messages",       messages(),   "--cpu",  cpu};
      case IngestKind::store:
        break;
    }
    std::vector<std::string> command = {program("kvingest"),
                                        "--store",
                                        what_.store.name,
                                        "--dir",
                                        store_dir().string(),
                                        "--listen",
                                        "127.0.0.1:0",
                                        "--port-file",
                                        ports().string(),
                                        "--cpu",
                                        cpu,
                                        "--durability",
                                        what_.durability,
                                        "--json",
                                        "--quiet"};
    if (what_.format == "line") return command;
    command.insert(command.end(), {"--format", what_.format, "--key", std::string(kTradeKey)});
    if (what_.format == "csv") command.insert(command.end(), {"--columns", std::string(kTradeColumns)});
    return command;
  }

  [[nodiscard]] std::vector<std::string> feed_command(const std::string& address) const {
    const Settings& s = setup_.settings;
    std::vector<std::string> command = {program("kvfeed"),
                                        "--connect",
                                        address,
                                        "--messages",
                                        messages(),
                                        "--batch",
                                        std::to_string(what_.batch),
                                        "--cpu",
                                        std::to_string(setup_.placement.feed),
                                        "--quiet",
                                        "--json"};
    const auto add = [&command](const std::string& name, std::string value) {
      command.push_back(name);
      command.push_back(std::move(value));
    };
    if (what_.file != nullptr) add("--file", what_.file->path.string());
    if (what_.connections > 1) add("--connections", std::to_string(what_.connections));
    if (!what_.ack.empty()) {
      add("--source", "kvbench");
      add("--ack", what_.ack);
    }
    if (what_.rate > 0) {
      add("--rate", std::to_string(what_.rate));
      command.emplace_back("--latency");
    } else {
      add("--interval-us", std::to_string(s.interval_us));
    }
    return command;
  }

  /// Runs the feed to its end, which is when the receiver has taken everything and made it durable.
  Result<void> feed_all(Child& receiver) {
    std::string kind, address;
    std::ifstream(ports()) >> kind >> address;
    auto feed = Child::start(feed_command(address), dir_, "kvfeed");
    KV_TRY(feed);
    KV_TRY(wait_for(*feed, receiver));
    auto used = feed->usage();
    if (used) {
      feed_usage_ = *used;
      return read_latency(feed->output());
    }
    // Where the receiver failed, its own words say more than the feed's.
    auto receiver_ended = receiver.wait(milliseconds(1'000));
    KV_TRY(receiver_ended);
    if (*receiver_ended) KV_TRY(receiver.usage());
    return tl::unexpected<Error>(used.error());
  }

  Result<void> read_latency(const std::string& text) {
    if (what_.rate == 0) return {};
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    const bool good = parser.parse(text).get(json) == simdjson::SUCCESS &&
                      json["latency_us"]["p50"].get(latency_.p50_us) == simdjson::SUCCESS &&
                      json["latency_us"]["p99"].get(latency_.p99_us) == simdjson::SUCCESS &&
                      json["latency_us"]["p999"].get(latency_.p999_us) == simdjson::SUCCESS;
    if (!good) return fail(Code::io_error, "kvfeed printed no latency: '{}'", text);
    return {};
  }

  /// Waits for the end of `child`, with an eye on the memory of `watched`.
  Result<void> wait_for(Child& child, const Child& watched) {
    const auto end = std::chrono::steady_clock::now() + run_max();
    for (;;) {
      auto ended = child.wait(kLookEvery);
      KV_TRY(ended);
      if (*ended) return {};
      rss_anon_max_bytes_ = std::max(rss_anon_max_bytes_, watched.rss_anon_bytes());
      if (interrupted()) return fail(Code::io_error, "interrupted");
      if (std::chrono::steady_clock::now() > end)
        return fail(Code::io_error, "{}: not done within {} s", what_.text(), run_max().count());
    }
  }

  [[nodiscard]] std::chrono::seconds run_max() const {
    const Settings& s = setup_.settings;
    const std::uint64_t slept = message_count() / what_.batch * s.interval_us / 1'000'000 * 2;
    return std::chrono::seconds(60 + message_count() / kSlowestPerSecond + slept);
  }

  [[nodiscard]] Result<void> check_store(std::uint64_t sent) const {
    const KeyedBy keyed_by = what_.format == "line" ? KeyedBy::number : KeyedBy::trade;
    if (what_.file != nullptr) return check_lines(store_dir(), sent, what_.file->digest, keyed_by);
    if (what_.connections > 1) return check_lines(store_dir(), sent, numbered_digest(sent), keyed_by);
    return check_records(store_dir(), sent);
  }

  Result<void> check(const Printed& printed) const {
    const std::uint64_t sent = message_count();
    if (printed.received != sent)
      return fail(Code::corrupt, "{}: {} messages were sent, {} received", what_.text(), sent, printed.received);
    if (what_.kind != IngestKind::store) return {};
    if (printed.stored != sent)
      return fail(Code::corrupt, "{}: {} messages were sent, {} stored", what_.text(), sent, printed.stored);
    // What a store in memory held is gone with its process; for those the ledger is all there is.
    if (!what_.store.engine->persistent) return {};
    if (auto right = check_store(sent); !right) return fail(right.error(), "{}", what_.text());
    return {};
  }

  [[nodiscard]] IngestMeasurement measurement(const Printed& printed, const Usage& usage, double cpu_before) const {
    IngestMeasurement m;
    m.seconds = printed.seconds;
    m.rate = static_cast<double>(printed.received) / printed.seconds;
    m.cpu_share = (usage.user_seconds + usage.system_seconds - cpu_before) / printed.seconds;
    m.rss_anon_max_bytes = rss_anon_max_bytes_;
    m.usage = usage;
    m.feed = feed_usage_;
    m.level = printed.level;
    m.latency = latency_;
    return m;
  }

  const IngestSetup& setup_;
  const IngestCase& what_;
  const std::filesystem::path& dir_;
  std::uint64_t rss_anon_max_bytes_ = 0;
  Latency latency_;
  Usage feed_usage_;
};

}  // namespace

std::string IngestCase::workload() const {
  switch (kind) {
    case IngestKind::discard:
      return "discard";
    case IngestKind::seek_write:
      return "seek_write";
    case IngestKind::store:
      break;
  }
  return name.empty() ? "line" : name;
}

std::string IngestCase::text() const {
  if (kind == IngestKind::seek_write) return "bare loop of lseek and write";
  const std::string subject = kind == IngestKind::discard ? "discard" : store.name + " at " + durability;
  return fmt::format("{}{}, {} lines a send", subject, name.empty() ? "" : ", " + name, batch);
}

Result<IngestMeasurement> run_ingest(const IngestSetup& setup, const IngestCase& what,
                                     const std::filesystem::path& dir) {
  return IngestRun(setup, what, dir)();
}

}  // namespace kvingest::bench
