#include "query/rejects.hpp"

#include <chrono>

#include "base/json_writer.hpp"
#include "query/stored_ledger.hpp"
#include "record/message_parser.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {
namespace {

void append_line(std::string& to, std::uint64_t number, const RejectRecord& reject) {
  to += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:016x}\t{}\n", number, escaped(reject.source), reject.line,
                    reject.offset, escaped(reject.peer), reject.reason, reject.length, reject.checksum,
                    escaped(reject.detail));
}

void append_object(std::string& to, std::uint64_t number, const RejectRecord& reject) {
  JsonWriter json;
  json.begin_object().field("number", number).field("source", reject.source).field("line", reject.line);
  json.field("offset", reject.offset).field("peer", reject.peer).field("reason", reject.reason);
  json.field("detail", reject.detail).field("length", reject.length);
  json.field("xxh3", fmt::format("{:016x}", reject.checksum)).field("bytes", reject.bytes).end_object();
  to += json.text();
}

/// Writes rejects back as records, a batch for each page of them.
class Replay {
 public:
  Replay(Store& store, const RecordPlan& plan, StoredLedger ledger)
      : store_(store), parser_(plan), ledger_(std::move(ledger)) {}

  Result<ReplayReport> run() {
    const auto walked = walk_rejects(
        store_, [this](std::uint64_t number, const RejectRecord& reject) { take(number, reject); },
        [this] { return write_page(); });
    KV_TRY(walked);
    return report_;
  }

 private:
  void take(std::uint64_t number, const RejectRecord& reject) {
    // A message that its connection broke off looks whole and is not.
    if (reject.length != reject.bytes.size() || reject.reason == "truncated") {
      ++report_.truncated;
      return;
    }
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch());  // It becomes a record now.
    const Verdict verdict = parser_.add(reject.bytes, static_cast<std::uint64_t>(now.count()), reject.source, records_);
    if (verdict.outcome == Outcome::rejected) {
      ++report_.rejected;
      return;
    }
    const bool stored = verdict.outcome == Outcome::stored;
    ++(stored ? report_.stored : report_.blank);
    Tally& tally = ledger_.sources[reject.source].total;
    --tally.rejected;
    ++(stored ? tally.stored : tally.blank);
    ledger_.rejects.kept_bytes -= reject.bytes.size();
    meta_.erase_meta(reject_key(number));
    changed_ = true;
  }

  Result<bool> write_page() {
    if (!changed_) return true;
    ledger_.seq = records_.number(ledger_.seq + 1) - 1;
    records_.append(meta_);
    for (const auto& [name, source] : ledger_.sources) records_.put_meta(source_key(name), source.encode());
    records_.put_meta(kMetaSeq, encode_seq(ledger_.seq));
    records_.put_meta(kMetaRejectTotals, ledger_.rejects.encode());
    KV_TRY(store_.write(records_, Durability::disk));
    records_.clear();
    meta_.clear();
    changed_ = false;
    return true;
  }

  Store& store_;
  MessageParser parser_;
  StoredLedger ledger_;
  ReplayReport report_;
  WriteBatch records_;
  WriteBatch meta_;
  bool changed_ = false;
};

}  // namespace

Result<void> list_rejects(const Store& store, RowForm form, Output& out) {
  const bool json = form == RowForm::json;
  bool first = true;
  if (json) out.text() += "{\"rejects\":[";
  const auto walked = walk_rejects(
      store,
      [&](std::uint64_t number, const RejectRecord& reject) {
        if (json && !first) out.text() += ',';
        first = false;
        json ? append_object(out.text(), number, reject) : append_line(out.text(), number, reject);
      },
      [&]() -> Result<bool> {
        KV_TRY(out.flush_some());
        return out.is_wanted();
      });
  KV_TRY(walked);
  if (json) out.text() += "]}\n";
  return out.flush();
}

Result<void> export_rejects(const Store& store, Output& out) {
  const auto walked = walk_rejects(
      store,
      [&](std::uint64_t, const RejectRecord& reject) {
        out.text() += reject.bytes;
        out.text() += '\n';
      },
      [&]() -> Result<bool> {
        KV_TRY(out.flush_some());
        return out.is_wanted();
      });
  KV_TRY(walked);
  return out.flush();
}

Result<ReplayReport> replay_rejects(Store& store, const RecordPlan& plan) {
  auto ledger = read_ledger(store);
  KV_TRY(ledger);
  return Replay(store, plan, *std::move(ledger)).run();
}

Result<void> print_replay(Store& store, const RecordPlan& plan, RowForm form, Output& out) {
  const auto report = replay_rejects(store, plan);
  KV_TRY(report);
  if (form == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("stored", report->stored).field("blank", report->blank);
    json.field("rejected", report->rejected).field("truncated", report->truncated).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() += fmt::format("stored {}  blank {}  rejected again {}  truncated {}\n", report->stored, report->blank,
                              report->rejected, report->truncated);
  }
  return out.flush();
}

}  // namespace kvingest::query
