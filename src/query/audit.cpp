#include "query/audit.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "query/pages.hpp"
#include "record/seq_in_key.hpp"
#include "record/text_escape.hpp"
#include "storage/store_directory.hpp"

namespace kvingest::query {
namespace {

constexpr std::size_t kDifferencesMax = 20;
constexpr std::uint64_t kSeenMax = std::uint64_t{1} << 36;  // 8 GiB of bits.

class Auditor {
 public:
  Auditor(const OpenedStore& opened, SeqInKey seq_in_key, StoredLedger ledger)
      : store_(*opened.store), seq_in_key_(seq_in_key) {
    audit_.ledger = std::move(ledger);
    audit_.seq_in_key = seq_in_key_.is_known();
  }

  Result<Audit> run() {
    check_sources();
    KV_TRY(check_rejects());
    KV_TRY(count_records());
    if (seq_in_key_.is_known()) {
      check_numbers();
    } else {
      check_count();
    }
    return std::move(audit_);
  }

 private:
  template <class... Args>
  void differs(fmt::format_string<Args...> text, Args&&... args) {
    if (audit_.differences.size() < kDifferencesMax) {
      audit_.differences.push_back(fmt::format(text, std::forward<Args>(args)...));
    }
  }

  void check_sources() {
    for (const auto& [name, source] : audit_.ledger.sources) {
      const Tally& tally = source.total;
      const std::uint64_t sum = tally.stored + tally.rejected + tally.blank + tally.duplicate;
      if (sum != tally.received)
        differs("source {}: received {}, but its classes add up to {}", name, tally.received, sum);
    }
    const std::uint64_t stored = audit_.ledger.total().stored;
    if (stored != audit_.ledger.seq) differs("stored {}, but the last number given is {}", stored, audit_.ledger.seq);
  }

  Result<void> check_rejects() {
    std::uint64_t bytes = 0;
    const auto walked = walk_rejects(
        store_,
        [&](std::uint64_t, const RejectRecord& reject) {
          ++audit_.rejects_kept;
          bytes += reject.bytes.size();
        },
        [] { return Result<bool>(true); });
    KV_TRY(walked);
    const std::uint64_t found = audit_.rejects_kept + audit_.ledger.rejects.unkept;
    const std::uint64_t rejected = audit_.ledger.total().rejected;
    if (found != rejected) differs("rejected {}, but {} rejects are kept or known to be unkept", rejected, found);
    if (bytes != audit_.ledger.rejects.kept_bytes) {
      differs("rejects hold {} bytes, where {} are noted", bytes, audit_.ledger.rejects.kept_bytes);
    }
    return {};
  }

  Result<void> count_records() {
    const std::uint64_t last = audit_.ledger.seq;
    if (seq_in_key_.is_known() && !seq_in_key_.leads()) {
      if (last >= kSeenMax) return fail(Code::unsupported, "audit: {} numbers are more than fit into memory", last);
      seen_.resize(last + 1);
    }
    const auto walked = walk_pages(
        store_, Space::records, {}, [&](std::string_view key, std::string_view) { count(key); },
        [] { return Result<bool>(true); });
    KV_TRY(walked);
    audit_.records = *walked;
    const auto now = read_ledger(store_);
    KV_TRY(now);
    if (now->seq != last) return fail(Code::busy, "audit: records came in meanwhile; audit a store at rest");
    return {};
  }

  void count(std::string_view key) {
    const auto seq = seq_in_key_.find(key);
    if (!seq) return;
    ++audit_.numbered;
    if (*seq == 0 || *seq > audit_.ledger.seq) {
      differs("key {} holds a number that was never given; the last one is {}", escaped(key), audit_.ledger.seq);
    } else if (seq_in_key_.leads() ? *seq <= last_ : seen_[*seq]) {
      differs("key {} holds a number that another key holds, too", escaped(key));
    } else if (seq_in_key_.leads()) {
      last_ = *seq;
    } else {
      seen_[*seq] = true;
    }
  }

  void check_numbers() {
    std::uint64_t stored = 0;
    // Keys of Redis clients are not made by the template.
    for (const auto& [name, source] : audit_.ledger.sources) stored += name == kRespSource ? 0 : source.total.stored;
    const RemovedTotals& removed = audit_.ledger.removed;
    const std::uint64_t erased = removed.erased - std::min(removed.erased, removed.unnumbered);
    if (audit_.numbered + erased + removed.expired != stored) {
      differs("stored {}, erased {} and expired {}, but {} numbered records are there", stored, erased, removed.expired,
              audit_.numbered);
    }
  }

  void check_count() {
    const std::uint64_t stored = audit_.ledger.total().stored;
    const RemovedTotals& removed = audit_.ledger.removed;
    const std::uint64_t known = audit_.records + removed.erased + removed.expired;
    if (known > stored) {
      differs("stored {}, erased {} and expired {}, but {} records are there", stored, removed.erased, removed.expired,
              audit_.records);
    } else {
      audit_.overwritten = stored - known;
    }
  }

  const Store& store_;
  SeqInKey seq_in_key_;
  Audit audit_;
  std::uint64_t last_ = 0;  // Number of the key before, where keys begin with it.
  std::vector<bool> seen_;  // Else: numbers met.
};

void append_tally(JsonWriter& json, const Tally& tally) {
  json.field("received", tally.received).field("stored", tally.stored).field("rejected", tally.rejected);
  json.field("blank", tally.blank).field("duplicate", tally.duplicate);
}

std::string as_json(const Audit& audit) {
  JsonWriter json;
  json.begin_object().field("balanced", audit.differences.empty()).field("records", audit.records);
  if (audit.seq_in_key) json.field("numbered", audit.numbered);
  if (!audit.seq_in_key) json.field("overwritten", audit.overwritten);
  json.field("templates_differ", audit.templates_differ);
  json.field("last_seq", audit.ledger.seq);
  json.field("erased", audit.ledger.removed.erased).field("expired", audit.ledger.removed.expired);
  append_tally(json, audit.ledger.total());
  json.field("rejects_kept", audit.rejects_kept).field("rejects_unkept", audit.ledger.rejects.unkept);
  json.key("sources").begin_array();
  for (const auto& [name, source] : audit.ledger.sources) {
    json.begin_object().field("source", name).field("line", source.line);
    append_tally(json, source.total);
    json.end_object();
  }
  json.end_array().key("differences").begin_array();
  for (const std::string& difference : audit.differences) json.value(difference);
  json.end_array().end_object();
  return json.text() + "\n";
}

std::string as_text(const Audit& audit) {
  std::string text;
  const auto line = [&](std::string_view name, const Tally& tally) {
    text += fmt::format("{}: received {}  stored {}  rejected {}  blank {}  duplicate {}\n", name, tally.received,
                        tally.stored, tally.rejected, tally.blank, tally.duplicate);
  };
  for (const auto& [name, source] : audit.ledger.sources) line("source " + escaped(name), source.total);
  line("total", audit.ledger.total());
  text += fmt::format("records {}  last number {}  erased {}  expired {}  rejects kept {}  unkept {}", audit.records,
                      audit.ledger.seq, audit.ledger.removed.erased, audit.ledger.removed.expired, audit.rejects_kept,
                      audit.ledger.rejects.unkept);
  text += audit.seq_in_key ? fmt::format("  numbered {}\n", audit.numbered)
                           : fmt::format("  overwritten {}\n", audit.overwritten);
  if (audit.templates_differ)
    text += "the key template was changed by force: records are counted, and no number is looked for in their keys\n";
  for (const std::string& difference : audit.differences) text += "difference: " + difference + "\n";
  return text + (audit.differences.empty() ? "balanced\n" : "not balanced\n");
}

}  // namespace

Result<Audit> audit(const OpenedStore& opened) {
  const auto& labels = opened.marker.labels;
  const bool differ = labels.contains("key" + std::string(kReplacedLabelSuffix));
  const auto label = labels.find("key");
  auto seq_in_key = SeqInKey::of(label == labels.end() || differ ? std::string_view() : label->second);
  KV_TRY(seq_in_key);
  auto ledger = read_ledger(*opened.store);
  KV_TRY(ledger);
  auto found = Auditor(opened, *seq_in_key, *std::move(ledger)).run();
  KV_TRY(found);
  found->templates_differ = differ;
  return found;
}

Result<bool> print_audit(const OpenedStore& opened, RowForm form, Output& out) {
  const auto found = audit(opened);
  KV_TRY(found);
  out.text() += form == RowForm::json ? as_json(*found) : as_text(*found);
  KV_TRY(out.flush());
  return found->differences.empty();
}

}  // namespace kvingest::query
