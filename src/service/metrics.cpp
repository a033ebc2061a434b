#include "service/metrics.hpp"

#include <prometheus/client_metric.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <vector>

namespace kvingest {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// From a write into the page cache to a disk that hangs.
const prometheus::Histogram::BucketBoundaries kSeconds = {10e-6, 30e-6, 100e-6, 300e-6, 1e-3, 3e-3, 10e-3,
                                                          30e-3, 0.1,   0.3,    1,      3,    10};
const prometheus::Histogram::BucketBoundaries kMessages = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
const prometheus::Histogram::BucketBoundaries kBytes = {1 << 10,   4 << 10, 16 << 10, 64 << 10,
                                                        256 << 10, 1 << 20, 4 << 20,  16 << 20};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A family of one counter or gauge.
void add(std::vector<MetricFamily>& to, MetricType type, std::string name, std::string help, double value,
         std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  if (!to.empty() && to.back().name == name) {
    to.back().metric.push_back(std::move(metric));
    return;
  }
  to.push_back({std::move(name), std::move(help), type, {std::move(metric)}});
}

void add_ledger(std::vector<MetricFamily>& to, const RunLedger& ledger) {
  const auto counter = [&to](std::string name, std::string help, std::uint64_t value) {
    add(to, MetricType::Counter, std::move(name), std::move(help), static_cast<double>(value));
  };
  const auto gauge = [&to](std::string name, std::string help, double value) {
    add(to, MetricType::Gauge, std::move(name), std::move(help), value);
  };
  const Tally& tally = ledger.tally;
  counter("kvingest_messages_received_total", "Messages cut from the feeds", tally.received);
  counter("kvingest_messages_stored_total", "Messages stored, also under a key that existed", tally.stored);
  counter("kvingest_messages_rejected_total", "Messages that could not become a record", tally.rejected);
  counter("kvingest_messages_blank_total", "Messages that held nothing to store", tally.blank);
  counter("kvingest_messages_duplicate_total", "Messages that were in the store already", tally.duplicate);
  counter("kvingest_messages_unterminated_total", "Last lines without LF of connections that closed properly",
          ledger.unterminated);
  counter("kvingest_records_expired_total", "Records dropped by --retain-bytes and --retain-age", ledger.expired);
  counter("kvingest_received_bytes_total", "Bytes taken from the feeds", ledger.bytes);
  gauge("kvingest_messages_pending", "Messages received and not yet decided", static_cast<double>(ledger.pending));
  gauge("kvingest_stored_sequence", "Last number that readers see", static_cast<double>(ledger.watermarks.stored));
  gauge("kvingest_durable_sequence", "Last number that survives what --durability names",
        static_cast<double>(ledger.watermarks.durable));
  gauge("kvingest_on_disk_sequence", "Last number that survives a power cut",
        static_cast<double>(ledger.watermarks.on_disk));
  gauge("kvingest_loss_window_records", "Records that a power cut now would lose",
        static_cast<double>(ledger.loss_records()));
  gauge("kvingest_loss_window_seconds", "Age of the oldest record that a power cut now would lose",
        seconds(ledger.loss_age(std::chrono::steady_clock::now())));
}

}  // namespace

struct Metrics::Families {
  template <class Buckets>
  static prometheus::Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help,
                                          const Buckets& buckets,
                                          const std::map<std::string, std::string>& labels = {}) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
  }

  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
  prometheus::Histogram& synced =
      histogram(registry, "kvingest_commit_seconds", "Time to write a group", kSeconds, {{"synced", "true"}});
  prometheus::Histogram& unsynced =
      histogram(registry, "kvingest_commit_seconds", "Time to write a group", kSeconds, {{"synced", "false"}});
  prometheus::Histogram& syncs =
      histogram(registry, "kvingest_sync_seconds", "Time of a sync apart from a group", kSeconds);
  prometheus::Histogram& messages =
      histogram(registry, "kvingest_group_messages", "Messages committed as one group", kMessages);
  prometheus::Histogram& bytes = histogram(registry, "kvingest_group_bytes", "Encoded bytes of a group", kBytes);
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::group_committed(std::uint64_t messages, std::uint64_t bytes, std::chrono::nanoseconds took, bool synced) {
  (synced ? families_->synced : families_->unsynced).Observe(seconds(took));
  families_->messages.Observe(static_cast<double>(messages));
  families_->bytes.Observe(static_cast<double>(bytes));
}

void Metrics::store_synced(std::chrono::nanoseconds took) {
  families_->syncs.Observe(seconds(took));
}

std::vector<Metrics::Latency> Metrics::latencies() const {
  std::vector<Latency> all;
  for (const auto& [name, histogram] : {std::pair{"commit_synced", &families_->synced},
                                        {"commit_unsynced", &families_->unsynced},
                                        {"sync", &families_->syncs}}) {
    const prometheus::ClientMetric::Histogram now = histogram->Collect().histogram;
    Latency latency{.name = name, .count = now.sample_count, .seconds = now.sample_sum};
    for (const auto& bucket : now.bucket)
      latency.up_to_seconds.emplace_back(bucket.upper_bound, bucket.cumulative_count);
    all.push_back(std::move(latency));
  }
  return all;
}

std::string Metrics::text(const Look& look) const {
  std::vector<MetricFamily> all;
  add_ledger(all, look.ledger);
  add(all, MetricType::Gauge, "kvingest_queue_bytes", "Batches between workers and committer",
      static_cast<double>(look.queue_bytes));
  add(all, MetricType::Gauge, "kvingest_connections", "Producers connected", static_cast<double>(look.connections));
  add(all, MetricType::Counter, "kvingest_connections_refused_total", "Producers turned away at a limit",
      static_cast<double>(look.connections_refused));
  for (const char* reason : {"no_space", "busy", "store_slow"}) {
    add(all, MetricType::Gauge, "kvingest_paused", "1 while reading is paused for this reason",
        look.paused == reason ? 1 : 0, {{"reason", reason}});
  }
  look.store->stats([&all](std::string_view name, std::uint64_t value) {
    add(all, MetricType::Gauge, "kvingest_store_stat", "What the engine says of itself", static_cast<double>(value),
        {{"name", std::string(name)}});
  });
  for (MetricFamily& family : families_->registry.Collect()) all.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace kvingest
