#include "query/import.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/json_writer.hpp"
#include "base/posix.hpp"
#include "query/stored_ledger.hpp"
#include "record/message_parser.hpp"
#include "record/seq_in_key.hpp"
#include "record/text_escape.hpp"

namespace kvingest::query {
namespace {

constexpr std::string_view kImportSource = "@import";
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = 4 * kValueBytesMax + 8 * kKeyBytesMax;  // Every byte of both escaped.
constexpr std::uint64_t kBatchLines = 1'000;
constexpr std::size_t kRejectBytesMax = std::size_t{64} << 10;  // As of a feed.

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

class Import {
 public:
  Import(const OpenedStore& opened, const RecordPlan& plan, StoredLedger ledger, std::string_view name, ImportForm form)
      : store_(*opened.store),
        seq_keys_(opened.labels.seq_keys),
        parser_(plan),
        keep_cr_(plan.keep_cr()),
        ledger_(std::move(ledger)),
        name_(name),
        form_(form) {}

  Result<ImportReport> run(int fd) {
    std::string buffer;
    for (bool ended = false; !ended;) {
      const std::size_t before = buffer.size();
      buffer.resize(before + kReadBytes);
      const ssize_t got = ::read(fd, buffer.data() + before, kReadBytes);
      if (got < 0 && errno != EINTR) return fail(errno, "read {}", name_);
      buffer.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      ended = got == 0;
      KV_TRY(take_lines(buffer, before, ended));
    }
    KV_TRY(write_batch());
    KV_TRY(store_.sync());
    return report_;
  }

 private:
  /// Takes the lines of `buffer`, of which none ends before `searched`, and removes them.
  Result<void> take_lines(std::string& buffer, std::size_t searched, bool ended) {
    std::size_t begin = 0;
    for (std::size_t end = buffer.find('\n', searched); end != std::string::npos; end = buffer.find('\n', begin)) {
      KV_TRY(take_line(std::string_view(buffer).substr(begin, end - begin)));
      begin = end + 1;
    }
    buffer.erase(0, begin);
    if (ended && !buffer.empty()) return take_line(buffer);
    if (buffer.size() <= kLineBytesMax) return {};
    return fail(Code::too_large, "{}: line {} has more than {} bytes", name_, report_.received + 1, kLineBytesMax);
  }

  Result<void> take_line(std::string_view line) {
    ++report_.received;
    const std::uint64_t offset = offset_;
    offset_ += line.size() + 1;
    if (!keep_cr_) line = without_cr(line);
    const Verdict verdict =
        form_ == ImportForm::text ? add_row(line) : parser_.add(line, now_ns(), kImportSource, batch_);
    switch (verdict.outcome) {
      case Outcome::stored:
        ++report_.stored;
        break;
      case Outcome::blank:
        ++report_.blank;
        break;
      case Outcome::rejected:
        reject(line, offset, verdict);
        break;
    }
    return report_.received % kBatchLines == 0 ? write_batch() : Result<void>();
  }

  Verdict add_row(std::string_view line) {
    if (line.empty()) return {Outcome::blank, {}, {}};
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return bad_row("there is no tab behind the key");
    const auto key = key_from_text(line.substr(0, tab), seq_keys_);
    if (!key) return bad_row(key.error().text);
    const auto value = unescaped(line.substr(tab + 1));
    if (!value) return bad_row(value.error().text);
    if (key->empty() || key->size() > kKeyBytesMax || value->size() > kValueBytesMax) {
      return bad_row(fmt::format("a key of {} bytes and a value of {}", key->size(), value->size()));
    }
    const bool numbered = seq_keys_ && seq_of_key(*key).has_value();
    numbered ? batch_.put_next(*value) : batch_.put(*key, *value);
    return {Outcome::stored, {}, {}};
  }

  Verdict bad_row(std::string detail) {
    detail_ = std::move(detail);
    return {Outcome::rejected, "bad_row", detail_};
  }

  void reject(std::string_view line, std::uint64_t offset, const Verdict& verdict) {
    ++report_.rejected;
    const RejectRecord record{.peer = std::string(name_),
                              .source = std::string(kImportSource),
                              .line = report_.received,
                              .offset = offset,
                              .reason = std::string(verdict.reason),
                              .detail = std::string(verdict.detail),
                              .length = line.size(),
                              .checksum = XXH3_64bits(line.data(), line.size()),
                              .bytes = std::string(line.substr(0, kRejectBytesMax))};
    ledger_.rejects.kept_bytes += record.bytes.size();
    meta_.put_meta(reject_key(++ledger_.rejects.last_number), record.encode());
  }

  Result<void> write_batch() {
    SourceRecord& source = ledger_.sources[std::string(kImportSource)];
    Tally& total = source.total;
    total.received += report_.received - written_.received;
    total.stored += report_.stored - written_.stored;
    total.rejected += report_.rejected - written_.rejected;
    total.blank += report_.blank - written_.blank;
    if (report_.received == written_.received) return {};
    ledger_.seq = batch_.number(ledger_.seq + 1) - 1;
    batch_.append(meta_);
    batch_.put_meta(source_key(kImportSource), source.encode());
    batch_.put_meta(kMetaSeq, encode_seq(ledger_.seq));
    batch_.put_meta(kMetaRejectTotals, ledger_.rejects.encode());
    KV_TRY(store_.write(batch_, Durability::kernel));
    batch_.clear();
    meta_.clear();
    written_ = report_;
    return {};
  }

  Store& store_;
  bool seq_keys_;
  MessageParser parser_;
  bool keep_cr_;
  StoredLedger ledger_;
  std::string_view name_;
  ImportForm form_;
  ImportReport report_;
  ImportReport written_;  // As of the last batch.
  std::uint64_t offset_ = 0;
  WriteBatch batch_;
  WriteBatch meta_;
  std::string detail_;
};

Result<void> check_form(const Marker& marker, ImportForm form) {
  const auto label = marker.labels.find("key");
  const std::string key = label == marker.labels.end() ? std::string() : label->second;
  if (form == ImportForm::messages || key == "{seq}" || key.find("{seq}") == std::string::npos) return {};
  return fail(Code::invalid_argument,
              "keys here are made as {}, and only the store gives numbers: import messages with --format messages",
              key);
}

}  // namespace

Result<ImportForm> parse_import_form(std::string_view text) {
  if (text == "text") return ImportForm::text;
  if (text == "messages") return ImportForm::messages;
  return fail(Code::invalid_argument, "no import format '{}'; there are text and messages", text);
}

Result<ImportReport> import_lines(const OpenedStore& opened, int fd, std::string_view name, ImportForm form) {
  KV_TRY(check_form(opened.marker, form));
  const auto options = record_options_of(opened.marker);
  KV_TRY(options);
  const auto plan = RecordPlan::compile(*options);
  KV_TRY(plan);
  auto ledger = read_ledger(*opened.store);
  KV_TRY(ledger);
  return Import(opened, *plan, *std::move(ledger), name, form).run(fd);
}

Result<bool> print_import(const OpenedStore& opened, const std::filesystem::path& path, ImportForm form, RowForm rows,
                          Output& out) {
  File file;
  if (path != "-") {
    auto given = File::open(Posix::real(), path, O_RDONLY);
    KV_TRY(given);
    file = *std::move(given);
  }
  const auto report = import_lines(opened, file.is_open() ? file.fd() : STDIN_FILENO, path.native(), form);
  KV_TRY(report);
  if (rows == RowForm::json) {
    JsonWriter json;
    json.begin_object().field("received", report->received).field("stored", report->stored);
    json.field("rejected", report->rejected).field("blank", report->blank).end_object();
    out.text() += json.text() + "\n";
  } else {
    out.text() += fmt::format("received {}  stored {}  rejected {}  blank {}\n", report->received, report->stored,
                              report->rejected, report->blank);
  }
  KV_TRY(out.flush());
  return report->rejected == 0;
}

}  // namespace kvingest::query
