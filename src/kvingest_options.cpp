#include "kvingest_options.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/thread.hpp"

namespace kvingest {
namespace {

/// The options as they are written, before they are checked against each other and the machine.
struct Written {
  std::string store = "lmdb";
  std::optional<std::string> dir;
  std::vector<std::string> listen;
  std::vector<std::string> connect;
  std::optional<std::string> resp;
  std::optional<std::size_t> resp_threads;
  std::size_t max_clients = 10'000;
  bool allow_flush = false;
  std::optional<std::string> http;
  std::optional<std::string> stop_line;
  std::string cpu = "auto";
  std::optional<int> store_cpu;
  std::string framing = "newline";
  std::string format = "line";
  bool header = false;
  std::optional<std::string> columns;
  std::optional<std::string> separator;
  bool keep_cr = false;
  std::optional<std::string> key;
  std::optional<std::string> value;
  bool force_template = false;
  std::string durability = "disk";
  std::uint64_t max_line = std::uint64_t{1} << 20;
  std::uint64_t line_bytes = std::uint64_t{256} << 20;
  std::uint64_t rejects_max = std::uint64_t{256} << 20;
  std::uint64_t queue_bytes = std::uint64_t{8} << 20;
  std::uint64_t retain_bytes = 0;
  std::chrono::milliseconds retain_age{0};
  bool strict = false;
  std::size_t max_connections = 1024;
  std::size_t max_sources = 10'000;
  std::chrono::milliseconds idle_timeout{0};
  std::chrono::milliseconds drain_timeout{5000};
  std::uint64_t messages = 0;
  std::chrono::milliseconds exit_when_idle{0};
  std::optional<std::uint64_t> demo;
  std::optional<int> feed_cpu;
  bool no_control = false;
  std::optional<std::string> token_file;
  bool insecure = false;
  bool list_stores = false;
  std::string port_file;
  bool json = false;
  bool quiet = false;
};

constexpr std::uint64_t kDemoMessages = 1'000'000;
constexpr std::string_view kDefaultListen = "127.0.0.1:5555";

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Engine* engine : engines()) names.emplace_back(engine->name);
  return names;
}

void declare(cli::Command& line, Written& w) {
  line.text("store", &w.store, "NAME[,k=v...]", "engine and its options; --list-stores shows them")
      .suggest(engine_names());
  line.text("dir", &w.dir, "PATH", "store directory, created if missing (default kvdata)");
  line.flag("list-stores", &w.list_stores, "print every engine with its options and end");
  line.list("listen", &w.listen, "HOST:PORT",
            "accept producers here, also unix:PATH; repeatable (default 127.0.0.1:5555 "
            "unless --connect or --demo is given)");
  line.list("connect", &w.connect, "HOST:PORT", "pull from a feed, reconnecting with back-off; repeatable");
  line.text("stop-line", &w.stop_line, "TEXT",
            "this line ends the feed and is not stored; '' for none (default STOP for "
            "--connect, none for --listen)");
  line.text("cpu", &w.cpu, "LIST|auto|none",
            "one feed worker for each CPU named, pinned to it; auto: one on the last CPU "
            "where there are two or more");
  line.number("store-cpu", &w.store_cpu, "N", "pin the committer");
  line.choice("framing", &w.framing, {"newline", "varint"},
              "how messages are cut: LF behind, or a protobuf-style length in front of each");
  line.choice("format", &w.format, {"line", "kv", "csv", "json"}, "how a message becomes fields");
  line.flag("header", &w.header, "csv: the first line names the columns");
  line.text("columns", &w.columns, "A,B,...", "csv: names of the columns");
  line.text("separator", &w.separator, "C", "one byte between fields (default , for csv and = for kv)");
  line.flag("keep-cr", &w.keep_cr, "keep a CR before the LF");
  line.text("key", &w.key, "TEMPLATE", "how the key is made, as in {symbol}/{date} (default {seq}; {key} for kv)");
  line.text("value", &w.value, "TEMPLATE", "how the value is made (default the whole message; {value} for kv)");
  line.flag("force-template", &w.force_template, "go on with other templates than the store was made with");
  line.text("durability", &w.durability, "LEVEL",
            "what an acknowledged record survives: disk, interval:T, kernel, memory")
      .suggest({"disk", "interval:1s", "kernel", "memory"});
  line.size("max-line", &w.max_line, "a longer message is rejected and the feed goes on; at most 64M");
  line.size("line-bytes", &w.line_bytes, "budget of each worker for unfinished messages");
  line.size("rejects-max", &w.rejects_max, "bytes of rejected messages that are kept");
  line.size("queue-bytes", &w.queue_bytes, "budget for batches between workers and committer");
  line.size("retain-bytes", &w.retain_bytes, "drop the oldest arrivals when keys and values take more; 0: keep all");
  line.duration("retain-age", &w.retain_age, "drop what arrived longer ago; 0: keep all");
  line.flag("strict", &w.strict, "close a connection at its first rejected message");
  line.number("max-connections", &w.max_connections, "N", "refuse further producers", 1);
  line.number("max-sources", &w.max_sources, "N", "refuse a hello for one more source", 1);
  line.duration("idle-timeout", &w.idle_timeout, "close a connection that sent nothing for so long; 0: never");
  line.duration("drain-timeout", &w.drain_timeout, "how long stopping may wait for peers, or for space");
  line.number("messages", &w.messages, "N", "stop after N messages; 0: no limit");
  line.duration("exit-when-idle", &w.exit_when_idle, "stop when nothing came for so long; 0: never");
  line.number("demo", &w.demo, "N", "start a kvfeed of N messages beside itself, ingest them and end")
      .may_stand_alone(std::to_string(kDemoMessages));
  line.number("feed-cpu", &w.feed_cpu, "C", "pin the demo's kvfeed");
  line.flag("no-control", &w.no_control, "!kv lines are data");
  line.text("resp", &w.resp, "HOST:PORT", "serve Redis clients here (net/RESP.md), also unix:PATH");
  line.number("resp-threads", &w.resp_threads, "N",
              "threads that serve them (default one fewer than there are CPUs, 1 to 4)", 1, 64);
  line.number("max-clients", &w.max_clients, "N", "refuse further Redis clients", 1);
  line.flag("allow-flush", &w.allow_flush, "FLUSHDB erases every record");
  line.text("http", &w.http, "HOST:PORT",
            "serve a status page here, with keys, values and charts; and /status, /metrics, /healthz");
  line.text("token-file", &w.token_file, "FILE",
            "who may connect: a line each, NAME ro|rw TOKEN; read again at SIGHUP");
  line.flag("insecure", &w.insecure,
            "allow listening beyond this machine although anyone may connect and read in clear");
  line.text("port-file", &w.port_file, "FILE", "write the real addresses here when ready");
  line.flag("json", &w.json, "print the ledger as one JSON object");
  line.flag("quiet", &w.quiet, "log warnings and errors only");
}

std::string list_of_stores() {
  std::string text;
  for (const Engine* engine : engines()) {
    text += fmt::format("{:<8} {}\n", engine->name, engine->summary);
    if (!engine->missing.empty()) text += fmt::format("         not in this build: {}\n", engine->missing);
    for (const EngineOption& option : engine->options) {
      text += fmt::format("         {}={}  {}\n", option.name, option.fallback, option.meaning);
    }
  }
  return text;
}

Result<void> read_durability(std::string_view text, CommitterOptions& to) {
  constexpr std::string_view kInterval = "interval:";
  if (text.starts_with(kInterval)) {
    auto interval = parse_duration(text.substr(kInterval.size()));
    KV_TRY(interval);
    if (interval->count() == 0)
      return fail(Code::invalid_argument, "--durability {}: the interval is 0; say disk", text);
    to.level = Durability::kernel;
    to.sync_interval = *interval;
    return {};
  }
  for (const Durability level : {Durability::disk, Durability::kernel, Durability::memory}) {
    if (text == to_string(level)) {
      to.level = level;
      return {};
    }
  }
  return fail(Code::invalid_argument, "--durability {}: known are disk, interval:T (as interval:1s), kernel, memory",
              text);
}

/// "1,3-5" as {1, 3, 4, 5}.
Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t dash = part.find('-');
    const auto first = parse_count(part.substr(0, dash), 0, 65535);
    const auto last = dash == std::string_view::npos ? first : parse_count(part.substr(dash + 1), 0, 65535);
    if (!first || !last || *last < *first) return fail(Code::invalid_argument, "--cpu {}: not a list as 1,3-5", part);
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  if (cpus.empty()) return fail(Code::invalid_argument, "--cpu: an empty list; say none to pin no worker");
  return cpus;
}

Result<void> check_cpu(std::string_view option, int cpu, const std::vector<int>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) return {};
  return fail(Code::invalid_argument, "--{} {}: this process may use CPU {}", option, cpu, format_cpus(allowed));
}

Result<void> read_cpus(const Written& w, ServiceOptions& to) {
  auto allowed = allowed_cpus();
  KV_TRY(allowed);
  if (w.cpu == "none" || (w.cpu == "auto" && allowed->size() < 2)) {
    to.worker_cpus = {std::nullopt};
  } else if (w.cpu == "auto") {
    to.worker_cpus = {allowed->back()};
  } else {
    auto cpus = parse_cpu_list(w.cpu);
    KV_TRY(cpus);
    for (const int cpu : *cpus) {
      KV_TRY(check_cpu("cpu", cpu, *allowed));
      to.worker_cpus.emplace_back(cpu);
    }
  }
  if (w.store_cpu) KV_TRY(check_cpu("store-cpu", *w.store_cpu, *allowed));
  if (w.feed_cpu) KV_TRY(check_cpu("feed-cpu", *w.feed_cpu, *allowed));
  constexpr std::size_t kRespThreadsMax = 4;
  to.resp_threads = w.resp_threads.value_or(std::clamp<std::size_t>(allowed->size() - 1, 1, kRespThreadsMax));
  to.committer.cpu = w.store_cpu;
  return {};
}

/// An address to listen on, which only this machine can reach unless --insecure.
Result<net::Endpoint> read_listener(std::string_view option, const std::string& text, bool insecure) {
  auto endpoint = net::parse_endpoint(text);
  if (!endpoint) return fail(std::move(endpoint).error(), "--{}", option);
  auto addresses = net::resolve(*endpoint);
  if (!addresses) return fail(std::move(addresses).error(), "--{}", option);
  if (!net::is_local(addresses->front()) && !insecure) {
    return fail(Code::invalid_argument,
                "--{} {}: other machines could connect, and there are no tokens and no TLS; say --insecure to allow it",
                option, text);
  }
  return endpoint;
}

Result<void> read_endpoints(const Written& w, ServiceOptions& to) {
  for (const std::string& text : w.listen) {
    auto endpoint = read_listener("listen", text, w.insecure);
    KV_TRY(endpoint);
    to.listen.push_back(std::move(*endpoint));
  }
  for (const std::string& text : w.connect) {
    auto endpoint = net::parse_endpoint(text);
    if (!endpoint) return fail(std::move(endpoint).error(), "--connect");
    to.connect.push_back(std::move(*endpoint));
  }
  if (w.resp) {
    auto endpoint = read_listener("resp", *w.resp, w.insecure);
    KV_TRY(endpoint);
    to.resp = std::move(*endpoint);
    to.feed.places = fmt::format("; Redis clients are served on {}", *w.resp);
  }
  if (w.http) {
    auto endpoint = read_listener("http", *w.http, w.insecure);
    KV_TRY(endpoint);
    to.http = std::move(*endpoint);
    to.feed.places += fmt::format("; HTTP is served on {}", *w.http);
  }
  return {};
}

Result<void> read_record(const Written& w, ServiceOptions& to) {
  RecordOptions record;
  auto format = parse_message_format(w.format);
  KV_TRY(format);
  record.format = *format;
  record.header = w.header;
  record.separator = w.separator.value_or("");
  record.keep_cr = w.keep_cr;
  record.key = w.key;
  record.value = w.value;
  if (w.columns) {
    auto columns = split_columns(*w.columns);
    if (!columns) return fail(std::move(columns).error(), "--columns");
    record.columns = std::move(*columns);
  }
  auto plan = RecordPlan::compile(record);
  KV_TRY(plan);
  to.plan = std::move(*plan);
  auto seq_in_key = SeqInKey::of(to.plan.key().text());
  KV_TRY(seq_in_key);
  to.seq_in_key = std::move(*seq_in_key);
  to.store.labels = to.plan.labels();
  to.store.force_labels = w.force_template;
  return {};
}

Result<void> read_limits(const Written& w, ServiceOptions& to) {
  if (w.max_line == 0 || w.max_line > kValueBytesMax) {
    return fail(Code::invalid_argument, "--max-line {}: from 1 to {}", format_size(w.max_line),
                format_size(kValueBytesMax));
  }
  if (w.queue_bytes == 0) return fail(Code::invalid_argument, "--queue-bytes 0: nothing could ever be read");
  to.feed.line_bytes_max = w.max_line;
  to.feed.unfinished_bytes_max = w.line_bytes;
  to.feed.framing = w.framing == "varint" ? net::Framing::varint : net::Framing::newline;
  to.feed.strict = w.strict;
  to.feed.idle_timeout = w.idle_timeout;
  if (w.token_file && w.no_control) {
    return fail(Code::invalid_argument, "--token-file with --no-control: a producer could not say its token");
  }
  if (w.token_file) {
    net::TokenBook tokens;
    if (auto loaded = tokens.load(*w.token_file); !loaded) return fail(std::move(loaded).error(), "--token-file");
    to.token_file = *w.token_file;
  }
  to.connections_max = w.max_connections;
  to.clients_max = w.max_clients;
  to.allow_flush = w.allow_flush;
  to.committer.sources_max = w.max_sources;
  to.feed.control_lines = !w.no_control;
  to.feed.listen_stop_line = w.stop_line.value_or("");
  to.feed.connect_stop_line = w.stop_line.value_or("STOP");
  to.feed.drain_timeout = w.drain_timeout;
  to.committer.queue_bytes = w.queue_bytes;
  to.committer.rejects_bytes_max = w.rejects_max;
  to.messages_max = w.messages;
  to.exit_when_idle = w.exit_when_idle;
  return {};
}

/// The oldest records are the first in key order. An engine in memory can be asked: opening it makes nothing.
Result<void> check_order(const StoreSpec& spec) {
  if (spec.engine->persistent) return {};
  const auto store = open_store(spec, {});
  KV_TRY(store);
  if ((*store)->capabilities().ordered) return {};
  return fail(Code::invalid_argument,
              "--store {}: it keeps no order, in which --retain-bytes and --retain-age could find the oldest records; "
              "choose another store (--list-stores), or keep all",
              spec.engine->name);
}

Result<void> read_retention(const Written& w, ServiceOptions& to) {
  RetentionOptions& retention = to.committer.retention;
  retention.bytes_max = w.retain_bytes;
  retention.age = w.retain_age;
  if (!retention.enabled()) return {};
  KV_TRY(check_order(to.spec));
  if (!to.seq_in_key.leads()) {
    return fail(Code::invalid_argument,
                "--key {}: with --retain-bytes or --retain-age keys begin with {{seq}}, so that the oldest are found",
                to.plan.key().text());
  }
  retention.seq_in_key = to.seq_in_key;
  return {};
}

/// Fills in what was not given and follows from the rest.
void settle(Written& w) {
  if (w.listen.empty() && w.demo) w.listen = {"127.0.0.1:0"};
  if (w.listen.empty() && w.connect.empty()) w.listen = {std::string(kDefaultListen)};
  if (!w.dir && !w.demo) w.dir = "kvdata";
  if (!w.separator && w.format == "csv") w.separator = ",";
  if (!w.separator && w.format == "kv") w.separator = "=";
}

Result<KvingestOptions> check(const Written& w) {
  KvingestOptions to;
  auto spec = parse_store_spec(w.store);
  if (!spec) return fail(std::move(spec).error(), "--store {}", w.store);
  to.service.spec = std::move(*spec);
  KV_TRY(read_durability(w.durability, to.service.committer));
  KV_TRY(read_cpus(w, to.service));
  KV_TRY(read_record(w, to.service));
  KV_TRY(read_limits(w, to.service));
  KV_TRY(read_retention(w, to.service));
  KV_TRY(read_endpoints(w, to.service));
  to.durability = to.service.durability = w.durability;
  to.port_file = w.port_file;
  to.json = w.json;
  to.quiet = w.quiet;
  to.demo_messages = w.demo;
  to.demo_feed_cpu = w.feed_cpu;
  to.service.store.dir = w.dir.value_or("");
  return to;
}

}  // namespace

std::variant<KvingestOptions, cli::Ending> read_options(int argc, const char* const* argv,
                                                        const char* const* environment) {
  Written written;
  cli::CommandLine line("kvingest", "Takes TCP text feeds into an embedded store, durably.");
  declare(line.root(), written);
  KvingestOptions options;
  line.check_with([&]() -> Result<void> {
    if (written.list_stores) return {};
    settle(written);
    auto checked = check(written);
    KV_TRY(checked);
    options = std::move(*checked);
    return {};
  });
  line.example("--store lmdb --dir kvdata --format csv --header --key '{symbol}/{date}'",
               "takes csv from whoever connects to 127.0.0.1:5555, as `nc -N 127.0.0.1 5555 < FILE` does");
  line.example("--connect 127.0.0.1:5556 --durability interval:1s", "pulls from a feed and syncs each second");
  line.example("--demo", "starts a feed beside itself, ingests a million lines and prints the rate");
  if (auto ending = line.parse(argc, argv, environment)) return std::move(*ending);
  if (written.list_stores) return cli::Ending{cli::kDone, list_of_stores(), {}};
  return options;
}

}  // namespace kvingest
