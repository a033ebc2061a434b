#include "service/status_pages.hpp"

#include "base/json_writer.hpp"

namespace kvingest {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t milliseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

void put_tally(JsonWriter& json, const Tally& tally) {
  json.field("received", tally.received)
      .field("stored", tally.stored)
      .field("rejected", tally.rejected)
      .field("blank", tally.blank)
      .field("duplicate", tally.duplicate);
}

void put_loss_window(JsonWriter& json, const ServiceFacts& facts, const RunLedger& ledger) {
  json.key("loss_window").begin_object().field("records", ledger.loss_records());
  json.field("milliseconds", milliseconds(ledger.loss_age(Clock::now())));
  const std::string text = facts.persistent
                               ? fmt::format("a power cut now would lose {} records, {} ms", ledger.loss_records(),
                                             milliseconds(ledger.loss_age(Clock::now())))
                               : "this store keeps nothing: all is lost with the process";
  json.field("text", text).end_object();
}

/// Age of the last commit; null before the first.
void put_commit_age(JsonWriter& json, const RunLedger& ledger) {
  json.key("last_commit_age_milliseconds");
  ledger.last_commit == Clock::time_point{} ? json.null() : json.value(milliseconds(Clock::now() - ledger.last_commit));
}

void put_sources(JsonWriter& json, const StatusLook& look) {
  json.key("sources");
  if (!look.sources) {
    json.null();
    return;
  }
  json.begin_object();
  for (const auto& [name, record] : *look.sources) {
    json.key(name).begin_object().field("next", record.line + 1);
    put_tally(json, record.total);
    json.end_object();
  }
  json.end_object();
}

/// How records are made, for who reads them.
void put_record(JsonWriter& json, const ServiceFacts& facts, const StatusLook& look) {
  json.key("record").begin_object().field("format", facts.format).field("key", facts.key);
  json.field("seq_keys", facts.seq_keys).field("has_fields", facts.has_fields).key("columns").begin_array();
  for (const std::string& column : look.columns) json.value(column);
  json.end_array().end_object();
}

void put_latencies(JsonWriter& json, const StatusLook& look) {
  json.key("latency").begin_object();
  for (const Metrics::Latency& latency : look.latencies) {
    json.key(latency.name).begin_object().field("count", latency.count).field("seconds", latency.seconds);
    json.key("up_to_seconds").begin_array();
    // The last bound is infinite, which JSON writes as null.
    for (const auto& [bound, count] : latency.up_to_seconds) json.begin_array().value(bound).value(count).end_array();
    json.end_array().end_object();
  }
  json.end_object();
}

void put_stats(JsonWriter& json, const StatusLook& look) {
  json.key("store_stats").begin_object();
  for (const auto& [name, value] : look.stats) json.field(name, value);
  json.end_object();
}

}  // namespace

std::string status_json(const ServiceFacts& facts, const StatusLook& look) {
  const RunLedger& ledger = look.ledger;
  JsonWriter json;
  json.begin_object()
      .field("store", facts.store)
      .field("dir", facts.dir)
      .field("durability", facts.durability)
      .field("level", to_string(facts.level))
      .field("uptime_milliseconds", milliseconds(Clock::now() - facts.started))
      .field("connections", look.connections)
      .field("connections_refused", look.connections_refused);
  put_tally(json, ledger.tally);
  json.field("pending", ledger.pending).field("bytes", ledger.bytes).field("expired", ledger.expired);
  json.field("unterminated", ledger.unterminated);
  json.key("watermarks")
      .begin_object()
      .field("stored", ledger.watermarks.stored)
      .field("durable", ledger.watermarks.durable)
      .field("on_disk", ledger.watermarks.on_disk)
      .end_object();
  put_loss_window(json, facts, ledger);
  json.field("queue_bytes", look.queue_bytes).field("paused", look.paused).field("paused_text", look.paused_text);
  json.field("paused_milliseconds", look.paused.empty() ? 0 : milliseconds(Clock::now() - look.paused_since));
  json.field("failed", look.failed);
  put_commit_age(json, ledger);
  put_record(json, facts, look);
  put_latencies(json, look);
  put_stats(json, look);
  put_sources(json, look);
  return json.end_object().text() + "\n";
}

bool is_healthy(const StatusLook& look) noexcept {
  return !look.failed && look.paused_text.empty();
}

std::string health_json(const StatusLook& look) {
  JsonWriter json;
  json.begin_object()
      .field("healthy", is_healthy(look))
      .field("failed", look.failed)
      .field("paused", look.paused_text.empty() ? "" : look.paused);
  put_commit_age(json, look.ledger);
  return json.end_object().text() + "\n";
}

}  // namespace kvingest
