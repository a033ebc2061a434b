// kvingest -- the service: takes TCP text feeds into an embedded store, durably.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/json_writer.hpp"
#include "base/log.hpp"
#include "base/service_manager.hpp"
#include "demo_feed.hpp"
#include "kvingest_options.hpp"

namespace kvingest {
namespace {

struct Summary {
  ServiceReport report;
  std::string durability;
  std::string store;

  [[nodiscard]] std::uint64_t durable() const { return report.ledger.watermarks.durable - report.ledger.first_seq; }
  [[nodiscard]] std::uint64_t on_disk() const {
    const RunLedger& ledger = report.ledger;
    return ledger.watermarks.on_disk > ledger.first_seq ? ledger.watermarks.on_disk - ledger.first_seq : 0;
  }
  [[nodiscard]] double rate() const {
    return report.seconds > 0 ? static_cast<double>(report.ledger.tally.received) / report.seconds : 0;
  }
};

std::string as_json(const Summary& summary) {
  const RunLedger& ledger = summary.report.ledger;
  JsonWriter json;
  json.begin_object()
      .field("received", ledger.tally.received)
      .field("stored", ledger.tally.stored)
      .field("rejected", ledger.tally.rejected)
      .field("blank", ledger.tally.blank)
      .field("duplicate", ledger.tally.duplicate)
      .field("pending", ledger.pending)
      .field("durable", summary.durable())
      .field("on_disk", summary.on_disk())
      .field("bytes", ledger.bytes)
      .field("seconds", summary.report.seconds)
      .field("messages_per_second", summary.rate())
      .field("durability", summary.durability)
      .field("level", to_string(summary.report.level))
      .field("store", summary.store)
      .end_object();
  return json.text() + "\n";
}

std::string as_text(const Summary& summary) {
  const RunLedger& ledger = summary.report.ledger;
  const Tally& tally = ledger.tally;
  return fmt::format(
      "Total Messages Ingested: {}\n"
      "received {}  stored {}  rejected {}  blank {}  duplicate {}{}  durable {}  on_disk {}\n"
      "bytes {}  seconds {:.3f}  messages/second {:.0f}  durability {}  level {}  store {}\n",
      tally.received, tally.received, tally.stored, tally.rejected, tally.blank, tally.duplicate,
      ledger.pending > 0 ? fmt::format("  pending {}", ledger.pending) : "", summary.durable(), summary.on_disk(),
      ledger.bytes, summary.report.seconds, summary.rate(), summary.durability, to_string(summary.report.level),
      summary.store);
}

/// Each producer and each client takes a descriptor, and the usual limit is below what --max-connections allows.
void allow_descriptors(std::size_t connections_max, std::size_t clients_max) {
  constexpr rlim_t kOthers = 64;  // The store's, the pages', the program's own.
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = connections_max + clients_max + kOthers;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
    log_warning("{} descriptors are allowed (ulimit -n), too few for --max-connections {}{}", limit.rlim_cur,
                connections_max, clients_max > 0 ? fmt::format(" and --max-clients {}", clients_max) : "");
  }
}

int exit_code_of(const OpenFailure& failure) {
  if (failure.part == ServicePart::listener) return cli::kIncomplete;
  // Another key template than the store's: a mistake in the command, and nothing was touched.
  return cli::kStoreUnavailable;
}

int serve(KvingestOptions options) {
  Summary summary{.durability = options.durability, .store = std::string(options.service.spec.engine->name)};
  if (!options.service.spec.engine->persistent) {
    log_warning("store {} keeps everything in memory: nothing survives this process", summary.store);
  }
  const char* const socket = std::getenv("NOTIFY_SOCKET");
  const std::string manager = socket != nullptr ? socket : "";
  DemoFeed demo;
  IngestService* running = nullptr;
  options.service.store.notice = [](std::string_view text) { log_warning("{}", text); };
  options.service.ready = [&](const std::vector<ListenerPlace>& places) -> Result<void> {
    for (const ListenerPlace& place : places) log_info("{}: listening on {}", place.name, place.address);
    if (!options.port_file.empty()) KV_TRY(write_port_file(options.port_file, places));
    notify_service_manager(manager, "READY=1\nSTATUS=ingesting");
    if (!options.demo_messages) return {};
    return demo.start(places.front().address, *options.demo_messages, options.demo_feed_cpu,
                      [&running] { running->stop(); });
  };
  options.service.stopping = [&manager] { notify_service_manager(manager, "STOPPING=1\nSTATUS=draining"); };
  auto service = IngestService::open(options.service);
  if (!service) {
    log_error("{}", service.error().error.text);
    return exit_code_of(service.error());
  }
  running = service->get();
  const Result<void> done = running->run();
  summary.report = running->report();
  const bool demo_failed = options.demo_messages && !demo.succeeded();
  const int code = done && !demo_failed ? cli::kDone : cli::kIncomplete;
  const int printed = cli::print({code, options.json ? as_json(summary) : as_text(summary), {}});
  if (!done) log_error("{}", done.error().text);
  return printed;
}

/// For a demo that was given no directory.
Result<std::filesystem::path> make_demo_dir() {
  std::string path = (std::filesystem::temp_directory_path() / "kvingest-demo-XXXXXX").native();
  if (::mkdtemp(path.data()) == nullptr) return fail(errno, "mkdtemp {}", path);
  return std::filesystem::path(path);
}

int run(int argc, char* argv[]) {
  auto read = read_options(argc, argv, environ);
  if (const auto* ending = std::get_if<cli::Ending>(&read)) return cli::print(*ending);
  auto options = std::get<KvingestOptions>(std::move(read));
  log_to_stderr("kvingest", options.quiet ? LogLevel::warning : LogLevel::info);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);   // Until the service reloads at it; a closed terminal is no reason to stop.
  std::signal(SIGXFSZ, SIG_IGN);  // A file size limit is an error of the call, not the end of the process.
  allow_descriptors(options.service.connections_max, options.service.resp ? options.service.clients_max : 0);
  if (!options.demo_messages || !options.service.store.dir.empty()) return serve(std::move(options));
  const auto demo_dir = make_demo_dir();
  if (!demo_dir) {
    log_error("{}", demo_dir.error().text);
    return cli::kIncomplete;
  }
  options.service.store.dir = *demo_dir / "kvdata";
  const int code = serve(std::move(options));
  std::error_code ignored;
  std::filesystem::remove_all(*demo_dir, ignored);
  return code;
}

}  // namespace
}  // namespace kvingest

int main(int argc, char* argv[]) {
  return kvingest::run(argc, argv);
}
