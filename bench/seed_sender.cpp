// What a pause after each send costs a feed: batches of 1 and of 256 lines, without a pause and with one of a
// microsecond, and how often feed and receiver are switched for it.
#include <algorithm>

#include "base/interrupt.hpp"
#include "bench/ingest_run.hpp"
#include "bench/seed.hpp"
#include "bench/statistics.hpp"
#include "bench/table.hpp"

namespace kvingest::bench {
namespace {

constexpr std::uint64_t kUsualSends = 20'000;

struct SenderRow {
  IngestCase what;
  Settings settings;
  std::vector<IngestMeasurement> runs = {};
  std::string failure = {};

  template <class Figure>
  [[nodiscard]] std::vector<double> values(Figure&& figure) const {
    std::vector<double> all;
    for (const IngestMeasurement& run : runs) all.push_back(static_cast<double>(figure(run)));
    return all;
  }
  [[nodiscard]] double sends() const { return static_cast<double>(what.messages) / static_cast<double>(what.batch); }
};

Result<void> run_once(const Bench& bench, SenderRow& row) {
  const std::filesystem::path dir = bench.work_dir / "sender";
  std::error_code error;
  std::filesystem::create_directory(dir, error);
  if (error) return fail(error.value(), "create {}", dir.native());
  auto measured = run_ingest({row.settings, bench.placement, bench.programs}, row.what, dir);
  std::filesystem::remove_all(dir, error);
  if (error) return fail(error.value(), "remove {}", dir.native());
  if (interrupted()) return fail(Code::io_error, "interrupted");
  if (measured)
    row.runs.push_back(*std::move(measured));
  else
    row.failure = measured.error().text;
  return {};
}

void report(Bench& bench, const std::vector<SenderRow>& rows) {
  Table table(fmt::format("seed: a pause after each send, median of {}", rows.front().runs.size()),
              {"receiver", "pause us", "lines", "M lines/s", "us/send", "feed vol.", "inv.", "recv. vol.", "inv."}, 1);
  for (const SenderRow& row : rows) {
    const std::string receiver = row.what.kind == IngestKind::discard ? "discard" : "kvingest, null";
    Subject subject{.suite = "seed", .workload = "sender, " + receiver};
    subject.variant = fmt::format("{} lines, pause of {} us", row.what.batch, row.settings.interval_us);
    if (!row.failure.empty()) {
      bench.results.add_failure(subject, "ns_per_send", "ns", row.failure);
      table.note(fmt::format("{}: {}", receiver, row.failure));
      continue;
    }
    const auto rate = row.values([](const IngestMeasurement& m) { return m.rate; });
    const auto ns = row.values([&](const IngestMeasurement& m) { return m.seconds * 1e9 / row.sends(); });
    std::vector<std::string> cells = {receiver, std::to_string(row.settings.interval_us),
                                      std::to_string(row.what.batch), fmt::format("{:.3f}", median(rate) / 1e6),
                                      fmt::format("{:.2f}", median(ns) / 1e3)};
    bench.results.add(subject, "messages_each_second", "1/s", rate);
    bench.results.add(subject, "ns_per_send", "ns", ns);
    const auto add_switches = [&](const char* name, auto figure) {
      const auto values =
          row.values([&](const IngestMeasurement& m) { return static_cast<double>(figure(m)) * 1'000 / row.sends(); });
      bench.results.add(subject, name, "1", values);
      cells.push_back(fmt::format("{:.1f}", median(values)));
    };
    add_switches("feed_voluntary", [](const IngestMeasurement& m) { return m.feed.voluntary_switches; });
    add_switches("feed_involuntary", [](const IngestMeasurement& m) { return m.feed.involuntary_switches; });
    add_switches("receiver_voluntary", [](const IngestMeasurement& m) { return m.usage.voluntary_switches; });
    add_switches("receiver_involuntary", [](const IngestMeasurement& m) { return m.usage.involuntary_switches; });
    table.add(std::move(cells));
  }
  table.note("vol., inv.: context switches of the whole process for a thousand sends: it waited; it was taken");
  table.note("off its CPU. A pause of a microsecond takes what the kernel's timers make of it, often 50 or more.");
  bench.tables += table.text() + "\n";
}

}  // namespace

Result<void> run_seed_sender(Bench& bench) {
  auto null_store = parse_stores("null");
  KV_TRY(null_store);
  std::vector<SenderRow> rows;
  for (const IngestKind kind : {IngestKind::discard, IngestKind::store}) {
    for (const std::uint64_t interval_us : {0U, 1U}) {
      for (const std::uint64_t batch : {1U, 256U}) {
        IngestCase what{.kind = kind, .store = null_store->front(), .durability = "memory", .batch = batch};
        what.messages = batch * bench.sizes({kUsualSends}).front();
        Settings settings = bench.settings;
        settings.interval_us = interval_us;
        rows.push_back({std::move(what), std::move(settings)});
      }
    }
  }
  for (std::uint64_t repeat = 0; repeat < bench.settings.repeat; ++repeat) {
    if (repeat > 0 && bench.deadline_passed()) break;
    for (SenderRow& row : rows) {
      if (row.failure.empty()) KV_TRY(run_once(bench, row));
    }
  }
  report(bench, rows);
  return {};
}

}  // namespace kvingest::bench
